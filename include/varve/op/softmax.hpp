// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/amax.hpp>
#include <limits>
#include <varve/op/abs.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/matmul.hpp>

namespace varve {

namespace detail {
/// Greatest elements along axes as constants, 0 where they are infinite, so that subtracting them makes exponentials safe.
template <class X, class A>
constexpr auto safe_maximum(X const& x, A const& axes) {
  auto const m = amax(detach(x), axes, keepdim);
  return where(eq(abs(m), std::numeric_limits<double>::infinity()), 0, m);
}
} // namespace detail

/// log(sum(exp(x))) along axes without overflow (`torch.logsumexp`); -inf for axes of -inf only.
inline constexpr struct logsumexp_t {
  template <value X, class A, class K = ints<0>>
  constexpr auto operator()(X const& x, A const& axes, K const& keep = {}) const {
    auto const m = detail::safe_maximum(x, axes);
    auto const s = sum(exp(sub(x, m)), axes, keep);
    return add(log(s), detail::reshape_to(m, shape_of(s)));
  }
} logsumexp{};

/// exp(x) / sum(exp(x)) along one axis.
inline constexpr struct softmax_t {
  template <value X, class A>
  constexpr auto operator()(X const& x, A const& axis) const {
    auto const e = exp(sub(x, amax(detach(x), axis, keepdim)));
    return div(e, sum(e, axis, keepdim));
  }
} softmax{};

/// Logarithm of `softmax`, without overflow or loss.
inline constexpr struct log_softmax_t {
  template <value X, class A>
  constexpr auto operator()(X const& x, A const& axis) const {
    auto const z = sub(x, amax(detach(x), axis, keepdim));
    return sub(z, log(sum(exp(z), axis, keepdim)));
  }
} log_softmax{};

} // namespace varve
