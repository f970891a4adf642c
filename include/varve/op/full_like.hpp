// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/dispatch/integer_range.hpp>
#include <varve/fwd.hpp>

namespace varve {

namespace detail {
/// Returns the value below all interpreters.
template <value X>
constexpr auto const& base_value(X const& x) {
  if constexpr (is_seen<X>) return base_value(x.value);
  else return x;
}
} // namespace detail

namespace detail {
/// A value filled with a number, with the dtype of another value. It is a constant: no interpreter wraps it, and all
/// slices of a mapped value share it, so that rules compute nothing for it.
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
/// Constant zeros with the shape and dtype of another value.
struct constant_zeros_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return constant_like(x, shape_of(x), 0);
  }
};
inline constexpr constant_zeros_t constant_zeros{};
/// Constant ones with the shape and dtype of another value.
struct constant_ones_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return constant_like(x, shape_of(x), 1);
  }
};
inline constexpr constant_ones_t constant_ones{};
} // namespace detail

/// Returns a value of the given sizes filled with a number, with the dtype of x (`Tensor.new_full`). If x is a tensor
/// seen through `vmap`, the result is mapped as well, so that mapped values can be written into it; only then x is an
/// operand. Static values, which are written by assignment, get a constant. Attributes {shape, {dtype}}.
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

/// Returns a value filled with a number, with the shape and dtype of x (`torch.full_like`). It is mapped where x is
/// (`new_full`).
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    return new_full(x, shape_of(x), v);
  }
} full_like{};

/// Returns zeros with the shape and dtype of another value.
inline constexpr struct zeros_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 0);
  }
} zeros_like{};

/// Returns zeros of a shape, with the dtype of a value (`Tensor.new_zeros`).
inline constexpr struct new_zeros_t {
  template <value X, fact S>
  constexpr auto operator()(X const& x, S const& sizes) const {
    return new_full(x, sizes, 0);
  }
} new_zeros{};

/// Returns ones with the shape and dtype of another value.
inline constexpr struct ones_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 1);
  }
} ones_like{};

} // namespace varve
