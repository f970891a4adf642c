// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/exponential.hpp>
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Error function of batches, within 4 ulp. It is r - (e^(-x^2) - 1) (1 - r) for x >= 0. Here r = 1 - e^(x^2) erfc(x) =
/// x (2/sqrt(pi) - x S(x)) with a smooth S. Both terms are positive, so nothing cancels near 0. e^(-x^2) is computed as
/// in the derivative of erf, so that a compiler that inlines both computes it once. S is a quotient of polynomials with
/// positive coefficients, fitted to the relative error of erf (2e-8 and 9e-18). It is not used where erf rounds to 1.
namespace varve::kernel::error_function {

template <class T>
struct table;
template <>
struct table<float> {
  static constexpr float is_one = 3.95f, slope = 1.12837917f;
  static constexpr float p[] = {1.00000024f, 0.781158745f, 0.196218893f};
  static constexpr float q[] = {1, 1.53341508f, 0.84969753f, 0.173560515f};
};
template <>
struct table<double> {
  static constexpr double is_one = 5.95, slope = 0x1.20dd750429b6dp0;
  static constexpr double p[] = {1.0000000000000004, 1.6644349604994708,   1.2724661566497464,   0.5598998037965531,
                                 0.1487241896193076, 0.022603815300056052, 0.0015419200180849786};
  static constexpr double q[] = {1,
                                 2.4166877385631524,
                                 2.5904262216961897,
                                 1.601112367382264,
                                 0.6184696644593793,
                                 0.14994573992701335,
                                 0.02124317154073821,
                                 0.00136648974328359};
};

/// Returns the error function, which is odd, also in the sign of zero.
template <class T>
VARVE_INLINE batch<T> erf(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const a = library::abs(x), z = x * x, one(T(1));
  V const r = kernel::fnma<T>(z, kernel::polynomial<T>(c::p, a) / kernel::polynomial<T>(c::q, a), a * V(c::slope));
  auto const e = exponential::reduce<T>(kernel::negate<T>(z));
  V const s = exponential::power_of_two<T>(e.shifted);
  V y = kernel::fnma<T>(kernel::fma<T>(e.q, s, s - one), one - r, r);
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) // reordered operations may round to more than 1
  y = kernel::select<T>(y > one, one, y);
#endif
  return library::copysign(kernel::select<T>(a > V(c::is_one), one, y), x);
}

} // namespace varve::kernel::error_function

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
