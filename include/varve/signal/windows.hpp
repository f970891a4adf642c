// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/ranges.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sin.hpp>
#include <varve/op/sum.hpp>
#include <varve/special/bessel.hpp>

#include <initializer_list>

/// @file
/// Window functions (`torch.signal.windows`): `m` numbers that decrease towards both ends. Symmetric windows are for
/// filters. The others are one period, the window for m + 1 without its last number. Dtypes are float32 and float64.
namespace varve::windows {

namespace detail {
/// Returns `f(numbers)` for m numbers from `start` in steps of `step`. A single number is 1.
template <class T, class F>
T window(char const* op, index_t m, double start, double step, dtype type, F const& f) {
  if (m < 0) refuse::argument_is_invalid(op, "the length must not be negative");
  if (!is_floating(type) || is_compact(type)) refuse::dtype_is_not_supported(op, name(type));
  if (m <= 1) return ones(dims{m}, type);
  return to(T(f(varve::detail::stepped<T>(m, start, step, dtype::float64))), type);
}
inline double count(index_t m, bool symmetric) { return static_cast<double>(symmetric ? m - 1 : m); }
constexpr double pi = 3.1415926535897932384626433832795;
} // namespace detail

/// The sum of (-1)^i a[i] cos(2 pi i k / n) for k below m, where n is m - 1 if symmetric, otherwise m.
template <class T = tensor>
T general_cosine(index_t m, std::vector<double> const& a, bool symmetric = true, dtype type = get_default_dtype()) {
  if (a.empty()) refuse::argument_is_invalid("general_cosine", "there must be a coefficient");
  return detail::window<T>("general_cosine", m, 0, 2 * detail::pi / detail::count(m, symmetric), type, [&](T const& k) {
    T w = varve::full_like(k, a[0]);
    double sign = -1;
    for (std::size_t i = 1; i < a.size(); ++i, sign = -sign)
      w = add(w, T(mul(T(cos(T(mul(k, static_cast<double>(i))))), sign * a[i])));
    return w;
  });
}
/// alpha - (1 - alpha) cos(2 pi k / n) for k below m, where n is m - 1 if symmetric, otherwise m.
template <class T = tensor>
T general_hamming(index_t m, double alpha = 0.54, bool symmetric = true, dtype type = get_default_dtype()) {
  return general_cosine<T>(m, {alpha, 1 - alpha}, symmetric, type);
}
/// The Hamming window.
template <class T = tensor>
T hamming(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  return general_hamming<T>(m, 0.54, symmetric, type);
}
/// The Hann window: 0.5 - 0.5 cos(2 pi k / n), where n is m - 1 if symmetric, otherwise m.
template <class T = tensor>
T hann(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  return general_hamming<T>(m, 0.5, symmetric, type);
}
/// The Blackman window.
template <class T = tensor>
T blackman(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  return general_cosine<T>(m, {0.42, 0.5, 0.08}, symmetric, type);
}
/// The Nuttall window, a sum of four cosines.
template <class T = tensor>
T nuttall(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  return general_cosine<T>(m, {0.3635819, 0.4891775, 0.1365995, 0.0106411}, symmetric, type);
}
/// The Bartlett window: a triangle with zeros at the ends.
template <class T = tensor>
T bartlett(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  return detail::window<T>("bartlett", m, -1, 2 / detail::count(m, symmetric), type,
                           [](T const& k) { return sub(1, T(abs(k))); });
}
/// The cosine window: half a period of a sine.
template <class T = tensor>
T cosine(index_t m, bool symmetric = true, dtype type = get_default_dtype()) {
  double const step = detail::pi / static_cast<double>(symmetric ? m : m + 1);
  return detail::window<T>("cosine", m, step / 2, step, type, [](T const& k) { return sin(k); });
}
/// The Gaussian window with a standard deviation in elements.
template <class T = tensor>
T gaussian(index_t m, double deviation = 1, bool symmetric = true, dtype type = get_default_dtype()) {
  if (!(deviation > 0)) refuse::argument_is_invalid("gaussian", "the standard deviation must be positive");
  double const unit = 1 / (deviation * std::sqrt(2.0));
  return detail::window<T>("gaussian", m, -detail::count(m, symmetric) / 2 * unit, unit, type,
                           [](T const& k) { return exp(T(neg(T(square(k))))); });
}
/// The exponential window: e^(-|k - center| / tau).
template <class T = tensor>
T exponential(index_t m, double tau = 1, bool symmetric = true, dtype type = get_default_dtype()) {
  if (!(tau > 0)) refuse::argument_is_invalid("exponential", "tau must be positive");
  return detail::window<T>("exponential", m, -detail::count(m, symmetric) / 2 / tau, 1 / tau, type,
                           [](T const& k) { return exp(T(neg(T(abs(k))))); });
}
/// The Kaiser window: I0(beta sqrt(1 - k^2)) / I0(beta) for k from -1 to 1.
template <class T = tensor>
T kaiser(index_t m, double beta = 12, bool symmetric = true, dtype type = get_default_dtype()) {
  if (!(beta >= 0)) refuse::argument_is_invalid("kaiser", "beta must not be negative");
  return detail::window<T>("kaiser", m, -beta, 2 * beta / detail::count(m, symmetric), type, [&](T const& k) {
    T const inside = maximum(T(sub(beta * beta, T(square(k)))), 0.0);
    return div(T(i0(T(sqrt(inside)))), kernel::bessel::i(0, beta));
  });
}

} // namespace varve::windows
