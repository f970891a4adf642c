// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/nearest.hpp>
#include <varve/kernel/polynomial.hpp>

#include <cmath>
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// sin and cos of batches, within 2 ulp. The argument is reduced to x = n pi/2 + r with |r| <= pi/4; pi/2 consists of
/// three parts, which fused multiply-adds subtract without loss. Both functions compute both polynomials and choose by
/// n. A compiler that inlines sin(x) and cos(x) therefore shares everything but the choice. Lanes that are too large
/// for this use the C library. Without fused multiply-add, xsimd's functions are used.
namespace varve::kernel::trigonometric {

#if VARVE_USE_XSIMD && (defined(__FMA__) || defined(__aarch64__))

template <class T>
struct table;
template <>
struct table<float> {
  static constexpr float limit = 1e6f, two_over_pi = 0x1.45f306p-1f;
  static constexpr float half_pi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
  static constexpr float sine[] = {-0.166666552f, 0.008332205f, -0.000195202374f},
                         cosine[] = {0.0416666456f, -0.00138873165f, 2.44331568e-05f};
};
template <>
struct table<double> {
  static constexpr double limit = 1e9, two_over_pi = 0x1.45f306dc9c883p-1;
  static constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  static constexpr double sine[] = {-0.16666666666666638,   0.0083333333333237836,   -0.0001984126983071329,
                                    2.7557313962445055e-06, -2.5050795614673243e-08, 1.5898757573977599e-10};
  static constexpr double cosine[] = {0.041666666666666595,   -0.0013888888888873056, 2.4801587288851704e-05,
                                      -2.755731417929647e-07, 2.087570084193694e-09,  -1.1358536519392408e-11};
};

/// Returns sin(x + Turn pi/2) for lanes below the limit.
template <int Turn, class T>
VARVE_INLINE batch<T> turned_sine(batch<T> const& x) {
  using c = table<T>;
  using V = batch<T>;
  V const shifted = kernel::nearest<T>(x, c::two_over_pi), n = shifted - V(kernel::integer_shift<T>);
  V const r = kernel::fnma<T>(n, V(c::half_pi[2]),
                              kernel::fnma<T>(n, V(c::half_pi[1]), kernel::fnma<T>(n, V(c::half_pi[0]), x)));
  V const z = r * r;
  V const sine = kernel::fma<T>(r * z, kernel::polynomial<T>(c::sine, z), r);
  V const cosine = kernel::fma<T>(z * z, kernel::polynomial<T>(c::cosine, z), kernel::fma<T>(z, V(T(-0.5)), V(T(1))));
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int top = static_cast<int>(8 * sizeof(T)) - 1;
  auto const bits = detail::raw_bits<T>(shifted);
  auto const quadrant = Turn ? bits + U(Turn) : bits;
  auto const odd = detail::from_raw_bits<T>((bits & U(1)) << (top - 1)) > V(T(0)); // the bits of 2, or of 0
  V const chosen = Turn % 2 ? kernel::select<T>(odd, sine, cosine)
                            : kernel::select<T>(odd, cosine, library::copysign(sine, r)); // keeps the sign of zero
  return detail::from_raw_bits<T>(detail::raw_bits<T>(chosen) ^ ((quadrant & U(2)) << (top - 1)));
}
/// Computes lanes beyond the limit, which are rare, one by one.
template <class T>
VARVE_NOINLINE batch<T> far_away(batch<T> const& x, T (*f)(T)) {
  return kernel::lanewise(f, x);
}
template <class T>
VARVE_INLINE batch<T> sin(batch<T> const& x) {
  // computed before the branch, so that compilers can share the common parts of sin and cos
  batch<T> y = trigonometric::turned_sine<0, T>(x);
  if (kernel::any<T>(library::abs(x) > batch<T>(table<T>::limit))) [[unlikely]]
    y = trigonometric::far_away<T>(x, [](T e) { return std::sin(e); });
  return y;
}
template <class T>
VARVE_INLINE batch<T> cos(batch<T> const& x) {
  // computed before the branch, so that compilers can share the common parts of sin and cos
  batch<T> y = trigonometric::turned_sine<1, T>(x);
  if (kernel::any<T>(library::abs(x) > batch<T>(table<T>::limit))) [[unlikely]]
    y = trigonometric::far_away<T>(x, [](T e) { return std::cos(e); });
  return y;
}

#else

template <class T>
VARVE_INLINE batch<T> sin(batch<T> const& x) {
  return library::sin(x);
}
template <class T>
VARVE_INLINE batch<T> cos(batch<T> const& x) {
  return library::cos(x);
}

#endif

} // namespace varve::kernel::trigonometric

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
