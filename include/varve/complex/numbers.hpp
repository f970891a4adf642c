// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/complex/operators.hpp>

#include <complex>

/// @file
/// Arithmetic of tensors with single numbers of type `std::complex`. These raise no precision: a float32 tensor times a
/// complex number is complex64.
namespace varve {

namespace detail {
/// Returns a number in the precision of the tensor that it is combined with. It is made by operators, so that traces
/// record it.
template <class X, class T>
auto complex_number_beside(X const& x, std::complex<T> const& c) {
  bool const wide = x.dtype() == dtype::float64 || x.dtype() == dtype::complex128;
  dtype const part = wide ? dtype::float64 : dtype::float32;
  return complex(full(dims{}, c.real(), part), full(dims{}, c.imag(), part));
}
} // namespace detail

template <std::derived_from<tensor> X, std::floating_point T>
auto operator+(X const& x, std::complex<T> const& c) {
  return add(x, detail::complex_number_beside(x, c));
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator+(std::complex<T> const& c, X const& x) {
  return add(detail::complex_number_beside(x, c), x);
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator-(X const& x, std::complex<T> const& c) {
  return sub(x, detail::complex_number_beside(x, c));
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator-(std::complex<T> const& c, X const& x) {
  return sub(detail::complex_number_beside(x, c), x);
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator*(X const& x, std::complex<T> const& c) {
  return mul(x, detail::complex_number_beside(x, c));
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator*(std::complex<T> const& c, X const& x) {
  return mul(detail::complex_number_beside(x, c), x);
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator/(X const& x, std::complex<T> const& c) {
  return div(x, detail::complex_number_beside(x, c));
}
template <std::derived_from<tensor> X, std::floating_point T>
auto operator/(std::complex<T> const& c, X const& x) {
  return div(detail::complex_number_beside(x, c), x);
}

} // namespace varve
