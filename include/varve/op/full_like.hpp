// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/fwd.hpp>

namespace varve {

namespace detail {
/// The value under all interpreters.
template <value X>
constexpr auto const& base_value(X const& x) {
  if constexpr (is_seen<X>) return base_value(x.value);
  else return x;
}
/// Filled with a number, of a shape, and for the rest like another value.
template <value X, class S, number N>
constexpr auto full_of(X const& x, S const& shape, N v) {
  using B = backend<typename decltype(base_tag<X>())::type>;
  if constexpr (requires { B::full_on(base_value(x), v, shape); }) {
    return B::full_on(base_value(x), v, shape);
  } else {
    auto r = B::full(shape, type_fact(x), v);
    if constexpr (requires { r.made_like(base_value(x)); }) r.made_like(base_value(x));
    return r;
  }
}
} // namespace detail

/// A value filled with a number, with the shape and dtype of another (`torch.full_like`). It is a constant: seen through no interpreter.
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    return detail::full_of(x, shape_of(x), v);
  }
} full_like{};

/// Zeros with the shape and dtype of another value.
inline constexpr struct zeros_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 0);
  }
} zeros_like{};

/// Ones with the shape and dtype of another value.
inline constexpr struct ones_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 1);
  }
} ones_like{};

} // namespace varve
