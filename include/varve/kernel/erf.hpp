// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/exponential.hpp>
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// erf of batches: erf(x) = 1 - e^-(x P(x)), where P = -log(1 - erf(x)) / x is smooth, so that one polynomial serves all x and nothing cancels near 0. Within 4 ulp.
/// The polynomials are minimax for the relative error of erf (4e-9 and 8e-17), from where erf rounds to 1 on x is cut.
namespace varve::kernel::error_function {

template <class T>
struct table;
template <>
struct table<float> {
  static constexpr float is_one = 3.95f;
  static constexpr float p[] = {1.12837923f,      0.636619389f,     0.102777831f,    -0.0191530641f,   -0.000160395983f,
                                0.00166702736f,   -0.000632836774f, 0.000117641248f, -9.25626227e-06f};
};
template <>
struct table<double> {
  static constexpr double is_one = 5.95;
  static constexpr double p[] = {1.1283791670955126,     0.63661977236761158,    0.10277260330005891,     -0.019128446963044839,   -0.00020919523047323072, 0.0016962105307984142,
                                 -0.00059014681565056006, 2.5955212023466561e-05, 6.4290004265633022e-05,  -2.9323531810680295e-05, 2.7958570579114601e-06,  3.5646910920388011e-06,
                                 -2.4298012344533859e-06, 8.5371613152367202e-07, -1.7409286078647138e-07, 8.3700528543910495e-09,  7.7831791570150302e-09,  -3.153383495247342e-09,
                                 6.8115628643852814e-10,  -9.5492034175784006e-11, 8.7220635271552947e-12, -4.7554806741620865e-13, 1.1801745859728312e-14};
};

/// Error function, odd also in the sign of zero.
template <class T>
VARVE_INLINE batch<T> erf(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const magnitude = library::abs(x);
  V const a = kernel::select<T>(magnitude > V(c::is_one), V(c::is_one), magnitude), z = a * a;
  constexpr int count = sizeof(c::p) / sizeof(T); // odd: two chains, of the even and of the odd powers
  V even(c::p[count - 1]), odd(c::p[count - 2]);
#pragma GCC unroll 16
  for (int k = count - 3; k > 1; k -= 2) even = kernel::fma<T>(even, z, V(c::p[k])), odd = kernel::fma<T>(odd, z, V(c::p[k - 1]));
  even = kernel::fma<T>(even, z, V(c::p[0]));
  auto const e = exponential::reduce<T>(kernel::negate<T>(a * kernel::fma<T>(odd, a, even)));
  V const s = exponential::power_of_two<T>(e.shifted);
  return library::copysign(kernel::fnma<T>(e.q, s, V(T(1)) - s), x);
}

} // namespace varve::kernel::error_function

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
