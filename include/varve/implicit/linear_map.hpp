// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/solution.hpp>
#include <varve/transform/jacobian.hpp>

/// @file
/// Linear maps that depend on data. A map m has
///
/// - `m.apply(v, data)`, its product with a vector; `m.transposed(v, data)`, that of its transpose;
/// - `m.matrix(data, like)`, the whole matrix, by as many products as there are columns; `like` is such a vector.
namespace varve::implicit::detail {

/// Functions of a vector, with data behind it. Captured values must be arguments of static functions that transforms
/// differentiate, or they would be at the level of the transform.
template <class P>
struct residual_of {
  [[no_unique_address]] P p;
  template <class V, class Data, class... Unread>
  constexpr auto operator()(V const& v, Data const& data, Unread const&...) const {
    return p.residual(v, data);
  }
};
/// The derivative of a function of residuals. The point at which it is taken is the first of the data.
template <class P>
struct jacobian_of {
  [[no_unique_address]] P p;

  template <class V, class Data>
  constexpr auto apply(V const& v, Data const& data) const {
    using X = std::remove_cvref_t<decltype(head_of(data))>;
    return jvp(closure(residual_of<P>{p}, tail_of(data)), std::tuple<X>(head_of(data)), std::tuple<V>(v)).second;
  }
  template <class V, class Data>
  constexpr auto transposed(V const& v, Data const& data) const {
    return std::get<0>(vjp(closure(residual_of<P>{p}, tail_of(data), v), head_of(data)).second(v));
  }
  template <class Data, class V>
  constexpr auto matrix(Data const& data, V const&) const {
    return jacfwd(closure(residual_of<P>{p}, tail_of(data)))(head_of(data));
  }
};
/// A function of residuals that is linear itself.
template <class P>
struct product_by {
  [[no_unique_address]] P p;

  template <class V, class Data>
  constexpr auto apply(V const& v, Data const& data) const {
    return p.residual(v, data);
  }
  template <class V, class Data>
  constexpr auto transposed(V const& v, Data const& data) const {
    return std::get<0>(vjp(closure(residual_of<P>{p}, data, v), varve::detail::constant_zeros(v)).second(v));
  }
  template <class Data, class V>
  constexpr auto matrix(Data const& data, V const& like) const {
    return jacfwd(closure(residual_of<P>{p}, data))(varve::detail::constant_zeros(like));
  }
};
template <class M>
struct transpose_of {
  [[no_unique_address]] M m;

  template <class V, class Data>
  constexpr auto apply(V const& v, Data const& data) const {
    return m.transposed(v, data);
  }
  template <class V, class Data>
  constexpr auto transposed(V const& v, Data const& data) const {
    return m.apply(v, data);
  }
  template <class Data, class V>
  constexpr auto matrix(Data const& data, V const& like) const {
    return transpose(m.matrix(data, like));
  }
};
template <class M>
constexpr transpose_of<M> transposed_map(M const& m) {
  return {m};
}
template <class M>
constexpr M transposed_map(transpose_of<M> const& t) {
  return t.m;
}

} // namespace varve::implicit::detail
