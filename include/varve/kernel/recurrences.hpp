// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/angles.hpp>

#include <limits>

/// @file
/// Orthogonal polynomials by their recurrences, usable in constant expressions. Degrees are numbers of a floating-point
/// type, which are truncated to integers. A polynomial of negative degree is 0.
namespace varve::kernel::polynomials {

template <class T>
constexpr T magnitude(T x) {
  return x < 0 ? -x : x;
}
constexpr bool is_even(std::int64_t n) { return n % 2 == 0; }
/// Returns p_n, starting from p_0 = 1 and p_1, where `next(k, p_k, p_{k-1})` is p_{k+1}. Stops at the first NaN and
/// returns it.
template <class T, class F>
constexpr T by_recurrence(std::int64_t n, T first, F const& next) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  T before = 1, here = first;
  for (std::int64_t k = 1; k < n && here == here; ++k) {
    T const after = next(static_cast<T>(k), here, before);
    before = here, here = after;
  }
  return here;
}
/// Returns the degree of a polynomial as an integer; -1 for NaN and for numbers up to -1.
template <class T>
constexpr std::int64_t degree(T n) {
  if (!(n >= 0)) return n > -1 ? 0 : -1;
  return n < T(1e15) ? static_cast<std::int64_t>(n) : std::int64_t(1000000000000000);
}
template <class T>
constexpr T chebyshev(std::int64_t n, T x, T first) {
  return by_recurrence(n, first, [x](T, T p, T q) { return (x + x) * p - q; });
}
/// Returns the Chebyshev polynomial of the first kind: cos(n acos x).
template <class T>
constexpr T chebyshev_t(T x, std::int64_t n) {
  if (n < 0) return 0;
  if (magnitude(x) == 1) return x > 0 || is_even(n) ? 1 : -1;
  if (n > 6 && magnitude(x) < 1) return kernel::cos(static_cast<T>(n) * kernel::acos(x));
  return chebyshev(n, x, x);
}
/// Returns the Chebyshev polynomial of the second kind: sin((n + 1) acos x) / sin(acos x).
template <class T>
constexpr T chebyshev_u(T x, std::int64_t n) {
  if (n < 0) return 0;
  T const m = static_cast<T>(n) + 1;
  if (magnitude(x) == 1) return x > 0 || is_even(n) ? m : -m;
  if (n > 8 && magnitude(x) < 1) {
    T const a = kernel::acos(x), s = kernel::sin(a);
    return s != 0 ? kernel::sin(m * a) / s : m * kernel::cos(m * a) / x;
  }
  return chebyshev(n, x, x + x);
}
/// Returns the Chebyshev polynomial of the third kind: cos((n + 1/2) acos x) / cos(acos x / 2).
template <class T>
constexpr T chebyshev_v(T x, std::int64_t n) {
  if (n < 0) return 0;
  T const m = static_cast<T>(n) * 2 + 1;
  if (magnitude(x) == 1) return x > 0 ? 1 : is_even(n) ? m : -m;
  if (n > 8 && magnitude(x) < 1) {
    T const a = kernel::acos(x), c = kernel::cos(a / 2);
    if (c != 0) return kernel::cos((static_cast<T>(n) + T(0.5)) * a) / c;
  }
  return chebyshev(n, x, x + x - 1);
}
/// Returns the Chebyshev polynomial of the fourth kind: sin((n + 1/2) acos x) / sin(acos x / 2).
template <class T>
constexpr T chebyshev_w(T x, std::int64_t n) {
  if (n < 0) return 0;
  T const m = static_cast<T>(n) * 2 + 1;
  if (magnitude(x) == 1) return x > 0 ? m : is_even(n) ? 1 : -1;
  if (n > 8 && magnitude(x) < 1) {
    T const a = kernel::acos(x), s = kernel::sin(a / 2);
    if (s != 0) return kernel::sin((static_cast<T>(n) + T(0.5)) * a) / s;
  }
  return chebyshev(n, x, x + x + 1);
}
/// Returns the physicists' Hermite polynomial; NaN for degrees at which it overflows anyway.
template <class T>
constexpr T hermite_h(T x, std::int64_t n) {
  if (n > (sizeof(T) == 4 ? 128 : 512)) return std::numeric_limits<T>::quiet_NaN();
  return by_recurrence(n, x + x, [x](T k, T p, T q) { return (x + x) * p - (k + k) * q; });
}
/// Returns the probabilists' Hermite polynomial; NaN for degrees at which it overflows anyway.
template <class T>
constexpr T hermite_he(T x, std::int64_t n) {
  if (n > (sizeof(T) == 4 ? 128 : 512)) return std::numeric_limits<T>::quiet_NaN();
  return by_recurrence(n, x, [x](T k, T p, T q) { return x * p - k * q; });
}
template <class T>
constexpr T laguerre(T x, std::int64_t n) {
  if (n >= 0 && x == 0) return 1;
  return by_recurrence(n, 1 - x, [x](T k, T p, T q) { return ((k + k + (1 - x)) * p - k * q) / (k + 1); });
}
template <class T>
constexpr T legendre(T x, std::int64_t n) {
  if (n >= 0 && magnitude(x) == 1) return x > 0 || is_even(n) ? 1 : -1;
  return by_recurrence(n, x, [x](T k, T p, T q) { return ((k + k + 1) * x * p - k * q) / (k + 1); });
}

/// Returns `f(x, degree)` for scalars and, lane by lane, for batches.
template <class F, class V>
VARVE_INLINE constexpr V of_degree(F f, V const& x, V const& n) {
  if constexpr (is_batch<V>)
    return kernel::lanewise([f](element_t<V> a, element_t<V> b) { return f(a, degree(b)); }, x, n);
  else return f(x, degree(n));
}

} // namespace varve::kernel::polynomials
