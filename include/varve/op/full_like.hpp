// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/dispatch/integer_range.hpp>
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

namespace detail {
/// A value filled with a number, with the dtype of another. It is a constant: seen through no interpreter, and the same
/// for all slices of a mapped value, so that rules spend nothing on it.
struct constant_like_t {
  template <value X, fact S, number N>
  constexpr auto operator()(X const& x, S const& sizes, N v) const {
    using B = backend<typename decltype(base_tag<X>())::type>;
    if constexpr (requires { B::full_on(base_value(x), to_dims(sizes), v); })
      return B::full_on(base_value(x), to_dims(sizes), v);
    else return made(x, B::full(sizes, type_fact(x), v));
  }

private:
  template <class X, class R>
  static constexpr auto made(X const& x, R r) {
    if constexpr (requires { r.made_like(base_value(x)); }) r.made_like(base_value(x));
    return r;
  }
};
inline constexpr constant_like_t constant_like{};
/// ... zeros, of the shape of the other.
struct constant_zeros_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return constant_like(x, shape_of(x), 0);
  }
};
inline constexpr constant_zeros_t constant_zeros{};
/// ... ones.
struct constant_ones_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return constant_like(x, shape_of(x), 1);
  }
};
inline constexpr constant_ones_t constant_ones{};
} // namespace detail

/// A value filled with a number, with the dtype of another (`Tensor.new_full`), which is an operand only where it is a
/// tensor seen through `vmap`: there the result is mapped as well, so that it can be written into with mapped values.
/// Static values, which are written by assignment, get a constant. Attributes {shape, {dtype}}.
inline constexpr struct new_full_t {
  static constexpr auto op_name = "new_full";
  template <value X, fact S, number N>
  constexpr auto operator()(X const& x, S const& sizes, N v) const {
    using B = backend<typename decltype(detail::base_tag<X>())::type>;
    detail::require_element("full", v, dtype_of(x));
    if constexpr (requires { B::is_mapped(x); })
      if (B::is_mapped(x)) return bind<new_full_t>(to_dims(sizes), type_fact(x))(x, v);
    return detail::constant_like(x, sizes, v);
  }
} new_full{};

/// A value filled with a number, with the shape and dtype of another (`torch.full_like`), mapped where that is
/// (`new_full`).
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    return new_full(x, shape_of(x), v);
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
    return new_full(x, sizes, 0);
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
