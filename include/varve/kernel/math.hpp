// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/constant_math.hpp>
#include <varve/kernel/convert_batch.hpp>
#include <varve/kernel/erf.hpp>
#include <varve/kernel/exponential.hpp>
#include <varve/kernel/logarithm.hpp>
#include <varve/kernel/power.hpp>
#include <varve/kernel/simd.hpp>
#include <varve/kernel/trigonometric.hpp>

#include <cmath>
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Elementary functions, under the same names for scalars and batches. Those of scalars are usable in constant
/// expressions and call `std::` at run time. Booleans of batches are lanes of 0 or 1. Always write `kernel::exp`: a
/// bare `exp` is this function only inside `varve::kernel`, and the operator object elsewhere in varve.
namespace varve::kernel {

/// Returns e^x.
template <floating T>
constexpr T exp(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::exp(x));
  return std::exp(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> exp(batch<T> const& x) {
  return exponential::exp(x);
}
/// Returns e^x - 1 without cancellation near 0.
template <floating T>
constexpr T expm1(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::expm1(x));
  return std::expm1(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> expm1(batch<T> const& x) {
  return exponential::expm1(x);
}
/// Returns the natural logarithm.
template <floating T>
constexpr T log(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::log(x));
  return std::log(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> log(batch<T> const& x) {
  return logarithm::log(x);
}
/// Returns log(1 + x) without cancellation near 0.
template <floating T>
constexpr T log1p(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::log1p(x));
  return std::log1p(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> log1p(batch<T> const& x) {
  return kernel::select<T>(x == batch<T>(T(0)), x, library::log1p(x)); // keeps the sign of zero
}
/// Returns the sine of an angle in radians.
template <floating T>
constexpr T sin(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sin(x));
  return std::sin(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> sin(batch<T> const& x) {
  return trigonometric::sin(x);
}
/// Returns the cosine of an angle in radians.
template <floating T>
constexpr T cos(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::cos(x));
  return std::cos(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> cos(batch<T> const& x) {
  return trigonometric::cos(x);
}
/// Returns the tangent of an angle in radians.
template <floating T>
constexpr T tan(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::tan(x));
  return std::tan(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> tan(batch<T> const& x) {
  return library::tan(x);
}
/// Returns the hyperbolic tangent.
template <floating T>
constexpr T tanh(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::tanh(x));
  return std::tanh(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> tanh(batch<T> const& x) {
  return exponential::tanh(x);
}
/// Returns 1 / (1 + e^-x), without overflow for any x.
template <floating T>
constexpr T sigmoid(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sigmoid(x));
  T const e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (1 + e);
}
template <floating_lane T>
VARVE_INLINE batch<T> sigmoid(batch<T> const& x) {
  return exponential::sigmoid(x);
}
/// Returns the error function.
template <floating T>
constexpr T erf(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::erf(x));
  return std::erf(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> erf(batch<T> const& x) {
  return error_function::erf(x);
}
/// Returns the square root, correctly rounded; NaN below 0.
template <floating T>
constexpr T sqrt(T x) {
  if (std::is_constant_evaluated()) return constant::narrow<T>(constant::sqrt(x));
  return std::sqrt(x);
}
template <floating_lane T>
VARVE_INLINE batch<T> sqrt(batch<T> const& x) {
  return library::sqrt(x);
}
/// Returns 1 / x, correctly rounded (unlike the hardware's estimate).
template <floating T>
constexpr T reciprocal(T x) {
  return T(1) / x;
}
template <floating_lane T>
VARVE_INLINE batch<T> reciprocal(batch<T> const& x) {
  return batch<T>(T(1)) / x;
}

/// Returns x to the power y. Integers wrap around; a negative exponent gives 0 unless the base is 1 or -1, as in
/// PyTorch.
template <arithmetic T>
constexpr T pow(T x, T y) {
  if constexpr (floating<T>) {
    if (std::is_constant_evaluated()) return constant::narrow<T>(constant::pow(x, y));
    return std::pow(x, y);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (y < 0) return static_cast<T>(x == 1 ? 1 : x == T(-1) ? (y % 2 ? -1 : 1) : 0);
    std::uint64_t r = 1, b = static_cast<std::uint64_t>(x);
    for (auto e = static_cast<std::uint64_t>(y); e != 0; e >>= 1, b *= b)
      if (e & 1) r *= b;
    return static_cast<T>(r);
  }
}
namespace detail {
/// Computes e^(y log x) of half the lanes, for finite x > 0 and finite y. It computes in double, so that the error is
/// about half an ulp of float. The series are shorter ones of the kind in `logarithm.hpp` and `exponential.hpp` (errors
/// 7e-12 and 3e-11).
VARVE_INLINE void pow_of_half(float* x, float const* y) {
  using V = batch<double>;
  using l = logarithm::table<double>;
  using e = exponential::table<double>;
  constexpr double of_log[] = {0.6666666666737509, 0.3999999879733759, 0.2857175453591449, 0.22191400830308503,
                               0.19362653714202008},
                   of_exp[] = {0.5,
                               0.16666666718997508,
                               0.041666666718980845,
                               0.008333298483754886,
                               0.001388885404961482,
                               0.0001989927395864936,
                               2.4859578222625295e-05},
                   ln2 = 0x1.62e42fefa39efp-1, most = 200; // e^200 is infinite as a float, e^-200 is 0
  auto const shifted = detail::raw_bits<double>(kernel::load_converted<double>(x)) -
                       (std::bit_cast<std::uint64_t>(l::sqrt_half) - (std::uint64_t(l::bias) << l::mantissa_bits));
  V const k =
      V(detail::from_raw_bits<double>((shifted >> l::mantissa_bits) | std::bit_cast<std::uint64_t>(l::integer_bits))) -
      V(l::integer_bits + l::bias);
  V const m = detail::from_raw_bits<double>((shifted & ((std::uint64_t(1) << l::mantissa_bits) - 1)) +
                                            std::bit_cast<std::uint64_t>(l::sqrt_half));
  V const f = m - V(1.), s = f / (f + V(2.)), z = s * s;
  V const log =
      kernel::fma<double>(k, V(ln2), s * kernel::fma<double>(z, kernel::polynomial<double>(of_log, z), V(2.)));
  V const given = kernel::load_converted<double>(y) * log,
          below = kernel::select<double>(given > V(most), V(most), given),
          power = kernel::select<double>(below < V(-most), V(-most), below);
  V const n_shifted = kernel::nearest<double>(power, e::log2_e), n = n_shifted - V(kernel::integer_shift<double>);
  V const r = kernel::fma<double>(n, V(-ln2), power),
          q = kernel::fma<double>(r * r, kernel::polynomial<double>(of_exp, r), r);
  kernel::store_converted<true>(x, detail::shift_left<e::mantissa_bits, e::integer, double>(n_shifted, q + V(1.)));
}
} // namespace detail
template <lane T>
VARVE_INLINE batch<T> pow(batch<T> const& x, batch<T> const& y) {
  if constexpr (std::is_same_v<T, float> && lanes<T> > 1 && lanes<T> == 2 * lanes<double>) {
    batch<T> const zero(T(0)), infinity(std::numeric_limits<T>::infinity());
    batch<T> const none = kernel::from_mask<T>(y == zero), // x^0 is 1, also in lanes of 0 behind a row's end
        usual = none + kernel::from_mask<T>(x > zero) * kernel::from_mask<T>(x < infinity) *
                           kernel::from_mask<T>(kernel::abs(y) < infinity);
    if (!kernel::any<T>(usual == zero)) [[likely]] {
      T a[lanes<T>], b[lanes<T>];
      kernel::store(a, x), kernel::store(b, y);
      detail::pow_of_half(a, b), detail::pow_of_half(a + lanes<double>, b + lanes<double>);
      return kernel::select<T>(y == zero, batch<T>(T(1)), kernel::load(a));
    }
  }
  auto const one_lane = [](T a, T b) { return kernel::pow(a, b); };
  if constexpr (std::is_same_v<T, double> && power::is_exact) return power::pow(x, y, one_lane);
  else return kernel::lanewise(one_lane, x, y);
}

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
