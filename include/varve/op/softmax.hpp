// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/amax.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/to.hpp>

#include <limits>

namespace varve {

namespace detail {
/// Greatest elements along axes as constants, 0 where they are infinite, so that subtracting them makes exponentials
/// safe.
template <class X, class A>
constexpr auto safe_maximum(X const& x, A const& axes) {
  auto const m = amax(detach(x), axes, keepdim);
  return where(eq(abs(m), std::numeric_limits<double>::infinity()), 0, m);
}
/// `f(x)`, or `g(x)` where x has no elements: nothing has no maximum.
template <class X, class F, class G>
constexpr auto unless_empty(X const& x, F const& f, G const& g) {
  return choose(same_fact(on_dims([](dims const& s) { return dims{numel(s) == 0}; }, shape_of(x)), ints<1>{}), g, f, x);
}
} // namespace detail

/// log(sum(exp(x))) along axes without overflow (`torch.logsumexp`); -inf for axes of -inf only. Of integers and truth
/// values it is that of the default dtype.
inline constexpr struct logsumexp_t : composite_operator<logsumexp_t> {
  static constexpr auto op_name = "logsumexp";
  template <value X, class A, class K = ints<0>>
  static constexpr auto body(X const& x, A const& axes, K const& keep = {}) {
    auto const shifted = [&](auto const& v) {
      auto const m = detail::safe_maximum(v, axes);
      auto const s = sum(exp(sub(v, m)), axes, keep);
      return add(log(s), detail::reshape_to(m, shape_of(s)));
    };
    auto const of_floating = [&](auto const& v) {
      return detail::unless_empty(v, shifted, [&](auto const& e) { return log(sum(exp(e), axes, keep)); });
    };
    // Integers are converted first, as in PyTorch: a difference of them would wrap around.
    auto const of_integers = [&](auto const& v) {
      return of_floating(to(v, ints<static_cast<index_t>(default_dtype)>{}));
    };
    return choose(detail::is_floating_fact(x), of_floating, of_integers, x);
  }
} logsumexp{};

/// exp(x) / sum(exp(x)) along one axis. Integers are refused.
inline constexpr struct softmax_t : composite_operator<softmax_t> {
  static constexpr auto op_name = "softmax";
  static constexpr bool keeps_dtype_of_out = true;
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    detail::needs_floating<softmax_t>(x);
    auto const shifted = [&](auto const& v) {
      auto const e = exp(sub(v, amax(detach(v), axis, keepdim)));
      return mul(e, reciprocal(sum(e, axis, keepdim))); // one division for each sum, which is at least 1
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} softmax{};

/// Logarithm of `softmax`, without overflow or loss. Integers are refused.
inline constexpr struct log_softmax_t : composite_operator<log_softmax_t> {
  static constexpr auto op_name = "log_softmax";
  static constexpr bool keeps_dtype_of_out = true;
  template <value X, class A>
  static constexpr auto body(X const& x, A const& axis) {
    detail::needs_floating<log_softmax_t>(x);
    auto const shifted = [&](auto const& v) {
      auto const z = sub(v, amax(detach(v), axis, keepdim));
      return sub(z, log(sum(exp(z), axis, keepdim)));
    };
    return detail::unless_empty(x, shifted, [](auto const& v) { return exp(v); });
  }
} log_softmax{};

} // namespace varve
