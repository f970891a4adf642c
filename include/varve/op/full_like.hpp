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
} // namespace detail

/// A value filled with a number, with the shape and dtype of another (`torch.full_like`). It is a constant: seen through no interpreter.
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    using B = backend<typename decltype(detail::base_tag<X>())::type>;
    if constexpr (requires { B::full_on(detail::base_value(x), to_dims(shape_of(x)), v); }) return B::full_on(detail::base_value(x), to_dims(shape_of(x)), v);
    else return of_shape(x, shape_of(x), v);
  }
  /// ... of another shape.
  template <value X, fact S, number N>
  static constexpr auto of_shape(X const& x, S const& sizes, N v) {
    using B = backend<typename decltype(detail::base_tag<X>())::type>;
    if constexpr (requires { B::full_on(detail::base_value(x), to_dims(sizes), v); }) return B::full_on(detail::base_value(x), to_dims(sizes), v);
    else return made(x, B::full(sizes, type_fact(x), v));
  }

private:
  template <class X, class R>
  static constexpr auto made(X const& x, R r) {
    if constexpr (requires { r.made_like(detail::base_value(x)); }) r.made_like(detail::base_value(x));
    return r;
  }
} full_like{};

/// Zeros with the shape and dtype of another value.
inline constexpr struct zeros_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 0);
  }
} zeros_like{};

/// Zeros of a shape, with the dtype of a value (`Tensor.new_zeros`).
inline constexpr struct new_zeros_t {
  template <value X, fact S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    return full_like.of_shape(x, sizes, 0);
  }
} new_zeros{};

/// Ones with the shape and dtype of another value.
inline constexpr struct ones_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 1);
  }
} ones_like{};

} // namespace varve
