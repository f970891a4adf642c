// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/where.hpp>

namespace varve {

namespace detail {
/// Where a bound replaces `v`, given `beyond(v, bound)`, which says where `v` lies outside: everywhere if it is NaN.
template <value V, value B, class F>
constexpr auto is_replaced(V const& v, B const& bound, F const& beyond) {
  if constexpr (!number<B>) {
    auto const unless_nan = [&](auto const& b) { return where(eq(b, b), beyond(v, b), true); };
    return choose(is_floating_fact(bound), unless_nan, [&](auto const& b) { return beyond(v, b); }, bound);
  } else if constexpr (std::is_floating_point_v<B>) {
    return bound == bound ? beyond(v, bound) : eq(v, v); // a NaN of `v` itself may stay
  } else {
    return beyond(v, bound);
  }
}
} // namespace detail

/// `clamp(x, min, max)`: x limited to [min, max]; either bound may be `none`. NaN stays; a bound that is NaN gives NaN;
/// max wins where min > max. A bound beyond the range of an integer result counts as the end of the range. The
/// derivative passes inside and at the bounds (torch.clamp).
inline constexpr struct clamp_t : composite_operator<clamp_t> {
  static constexpr auto op_name = "clamp";
  template <value X, class Lo, class Hi = none_t>
  static constexpr auto body(X const& x, Lo const& low, Hi const& high = {}) {
    static_assert(!(is_none<Lo> && is_none<Hi>), "varve: clamp needs at least one of min and max");
    auto raise = [](auto const& v, auto const& lo) {
      return where(detail::is_replaced(v, lo, lt), detail::within_range_of(op_name, v, lo), v);
    };
    auto lower = [](auto const& v, auto const& hi) {
      return where(detail::is_replaced(v, hi, gt), detail::within_range_of(op_name, v, hi), v);
    };
    if constexpr (is_none<Lo>) {
      return lower(x, high);
    } else if constexpr (is_none<Hi>) {
      return raise(x, low);
    } else {
      auto const from_below = [&](auto const& v) { return lower(raise(v, low), high); };
      // Of integers and a floating max the result is floating: what min may exceed is its dtype.
      auto const from_above = [&](auto const& v) { return from_below(lower(v, high)); };
      return choose(
          detail::is_floating_fact(x), from_below,
          [&](auto const& v) { return choose(detail::is_floating_fact(high), from_above, from_below, v); }, x);
    }
  }
} clamp{};

} // namespace varve
