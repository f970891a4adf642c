// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/nearest.hpp>
#include <varve/kernel/polynomial.hpp>

#include <limits>
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// exp, expm1, tanh and sigmoid of batches, from one argument reduction and one polynomial. They are faster than
/// xsimd's and within 2 ulp. The polynomials interpolate (e^r - 1 - r) / r^2 at the Chebyshev points of |r| <= ln(2)/2
/// (errors 8e-9 and 1.2e-17).
namespace varve::kernel::exponential {

template <class T>
struct table;
template <>
struct table<float> {
  using integer = std::int32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr float log2_e = 0x1.715476p0f, ln2_high = 0x1.62e4p-1f, ln2_low = 1.4286068203094173e-06f;
  static constexpr float highest = 0x1.62e42ep+6f, lowest = -0x1.5d589ep+6f, one_below = -18, tanh_is_one = 9.5f;
  static constexpr float p[] = {0.5f, 0.16666576986698775f, 0.041666554617204574f, 0.0083631790527225781f,
                                0.0013926183587713494f};
};
template <>
struct table<double> {
  using integer = std::int64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr double log2_e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefap-1, ln2_low = 1.6465949582897082e-12;
  static constexpr double highest = 0x1.62e42fefa39efp+9, lowest = -0x1.6232bdd7abcd2p+9, one_below = -38,
                          tanh_is_one = 20;
  static constexpr double p[] = {0.50000000000000011,    0.16666666666666669,    0.041666666666624129,
                                 0.0083333333333300615,  0.0013888888917213717,  0.00019841269863053618,
                                 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
                                 2.510038549551032e-08};
};

/// Reduced argument x = n ln(2) + r: `shifted` holds n in its low bits, and `q` is e^r - 1.
template <class T>
struct reduced {
  batch<T> shifted, q;
};
template <class T>
VARVE_INLINE reduced<T> reduce(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const shifted = kernel::nearest<T>(x, c::log2_e), n = shifted - V(kernel::integer_shift<T>);
  V const r = kernel::fma<T>(n, V(-c::ln2_low), kernel::in_order<T>(kernel::fma<T>(n, V(-c::ln2_high), x)));
  return {shifted, kernel::fma<T>(r * r, kernel::polynomial<T>(c::p, r), r)};
}
/// Returns 2^n for a shifted n, if 2^n is a normal number.
template <class T>
VARVE_INLINE batch<T> power_of_two(batch<T> const& shifted) {
  using c = table<T>;
  return detail::shift_left<c::mantissa_bits, typename c::integer, T>(shifted, batch<T>(T(1)));
}
/// Returns e^x. Results below the smallest normal number are 0.
template <class T>
VARVE_INLINE batch<T> exp(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  auto const y = exponential::reduce<T>(x);
  V const e = detail::shift_left<c::mantissa_bits, typename c::integer, T>(
      y.shifted, y.q + V(T(1))); // n is added to the exponent: 2^128 alone would overflow
  return kernel::select<T>(x <= V(c::highest), kernel::select<T>(x < V(c::lowest), V(T(0)), e),
                           x * V((std::numeric_limits<T>::max)())); // infinity, or NaN
}
/// Returns e^x - 1, computed with half the power of two and doubled, so that no intermediate result overflows.
template <class T>
VARVE_INLINE batch<T> expm1(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const low = kernel::select<T>(x < V(c::one_below), V(c::one_below), x);
  auto const y = exponential::reduce<T>(kernel::select<T>(x > V(c::highest + 1), V(c::highest + 1), low));
  V const s = exponential::power_of_two<T>(y.shifted - V(T(1)));
  V const h = kernel::fma<T>(y.q, s, s - V(T(0.5)));
  return kernel::select<T>(x == V(T(0)), x, h + h); // keeps the sign of zero
}
/// Returns tanh(x) as t / (t + 2) with t = e^(2|x|) - 1 and the sign of x. Nothing cancels, so small x need no special
/// case.
template <class T>
VARVE_INLINE batch<T> tanh(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const a = library::abs(x);
  V const b = kernel::select<T>(a > V(c::tanh_is_one), V(c::tanh_is_one), a);
  auto const y = exponential::reduce<T>(b + b);
  V const s = exponential::power_of_two<T>(y.shifted);
  V const t = kernel::fma<T>(y.q, s, s - V(T(1)));
  return library::copysign(t / (t + V(T(2))), x);
}
/// Returns 1 / (1 + e^-x), computed from e^-|x| so that nothing overflows. Results below the smallest normal number are
/// 0.
template <class T>
VARVE_INLINE batch<T> sigmoid(batch<T> const& x) {
  using V = batch<T>;
  V const a = -library::abs(x);
  auto const y = exponential::reduce<T>(a);
  V const s = exponential::power_of_two<T>(y.shifted);
  V const e = kernel::select<T>(a < V(table<T>::lowest), V(T(0)), kernel::fma<T>(y.q, s, s));
  return kernel::select<T>(x < V(T(0)), e, V(T(1))) / (e + V(T(1)));
}

} // namespace varve::kernel::exponential

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
