// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

#include <limits>

namespace varve {

namespace detail {
/// Returns where a bound replaces `v`: where `beyond(v, bound)` is true, and everywhere if the bound is NaN.
template <value V, value B, class F>
constexpr auto is_replaced(V const& v, B const& bound, F const& beyond) {
  if constexpr (!number<B>) {
    auto const unless_nan = [&](auto const& b) { return where(eq(b, b), beyond(v, b), true); };
    return choose(is_floating_fact(bound), unless_nan, [&](auto const& b) { return beyond(v, b); }, bound);
  } else if constexpr (std::is_floating_point_v<B>) {
    return bound == bound ? beyond(v, bound) : eq(v, v); // a NaN in `v` itself may stay
  } else {
    return beyond(v, bound);
  }
}
/// The same result as the composition below, for floating numbers and bounds that are not NaN.
struct limit_both {
  template <class V>
  VARVE_INLINE V operator()(V const& x, V const& low, V const& high) const {
    if constexpr (kernel::is_batch<V>) { // avoids flags as SIMD lanes
      using T = kernel::element_t<V>;
      V const raised = kernel::select<T>(x < low, low, x);
      return kernel::select<T>(raised > high, high, raised);
    } else {
      V const raised = kernel::where(kernel::lt(x, low), low, x);
      return kernel::where(kernel::gt(raised, high), high, raised);
    }
  }
};
template <class = void>
inline constexpr pointwise_info limits_in_one_pass{
    "clamp",
    3,
    0,
    false,
    false,
    true,
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &kernel::contiguous<float, float, limit_both, 3>,
     &kernel::contiguous<double, double, limit_both, 3>, nullptr, nullptr},
    {{{kernel::beside<float, limit_both, 3, 6>()}}, {{kernel::beside<double, limit_both, 3, 6>()}}}};
/// Returns a bound as a tensor; a missing bound becomes `none`, which limits nothing.
template <class B>
tensor bound_of(B const& b, double none) {
  if constexpr (is_none<B>) return tensor::from_number(none);
  else return tensor::from_number(b);
}
template <class B>
constexpr bool is_plain_bound(B const& b) {
  if constexpr (is_none<B>) return true;
  else if constexpr (number<B>) return b == b;
  else return false;
}
/// True if a tensor without observers is limited by numbers. Then one pass suffices, without flags in memory.
template <class X>
bool limits_at_once(X const& x) {
  return are_unwatched(&x, 1) && (x.dtype() == dtype::float32 || x.dtype() == dtype::float64) && !x.is_number() &&
         are_built_in<lt_t, gt_t, where_t>();
}
template <class X, class Lo, class Hi>
X limited(X const& x, Lo const& low, Hi const& high) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  X const from = detail::bound_of(low, -infinity), to = detail::bound_of(high, infinity);
  X const* const all[] = {&x, &from, &to};
  return detail::run_pointwise(detail::limits_in_one_pass<>, all);
}
} // namespace detail

/// `clamp(x, min, max)`: x limited to [min, max]. Either bound may be `none`. NaN stays NaN; a NaN bound yields NaN;
/// max wins where min > max. A bound beyond the range of an integer result counts as the end of the range. The gradient
/// passes inside and at the bounds, as in torch.clamp.
inline constexpr struct clamp_t : composite_operator<clamp_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "clamp";
  template <value X, class Lo, class Hi = none_t>
  static constexpr auto body(X const& x, Lo const& low, Hi const& high = {}) {
    detail::needs_real(op_name, x, low, high);
    static_assert(!(is_none<Lo> && is_none<Hi>), "varve: clamp needs at least one of min and max");
    if constexpr (std::is_same_v<X, tensor> && (is_none<Lo> || number<Lo>) && (is_none<Hi> || number<Hi>))
      if (detail::is_plain_bound(low) && detail::is_plain_bound(high) && detail::limits_at_once(x))
        return detail::limited(x, low, high);
    auto raise = [](auto const& v, auto const& lo) {
      return where(detail::is_replaced(v, lo, lt), detail::within_range_of(op_name, v, lo), v);
    };
    auto lower = [](auto const& v, auto const& hi) {
      return where(detail::is_replaced(v, hi, gt), detail::within_range_of(op_name, v, hi), v);
    };
    if constexpr (is_none<Lo> && is_none<Hi>) {
      return x; // stops further errors after the message
    } else if constexpr (is_none<Lo>) {
      return lower(x, high);
    } else if constexpr (is_none<Hi>) {
      return raise(x, low);
    } else {
      auto const from_below = [&](auto const& v) { return lower(raise(v, low), high); };
      // With integer x and a floating max the result is floating: min only has to fit that dtype.
      auto const from_above = [&](auto const& v) { return from_below(lower(v, high)); };
      auto const limited = choose(
          detail::is_floating_fact(x), from_below,
          [&](auto const& v) { return choose(detail::is_floating_fact(high), from_above, from_below, v); }, x);
      if constexpr (number<Lo> || number<Hi>) return limited;
      else return detail::in_common_type_of(limited, x, low, high); // for pairs the dtype may be wider
    }
  }
} clamp{};

} // namespace varve
