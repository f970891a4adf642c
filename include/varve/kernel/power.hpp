// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/exponential.hpp>
#include <varve/kernel/logarithm.hpp>

#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Powers e^(y log x) of doubles in registers, within 0.7 ulp (1.4 at the ends of the range). Integer powers of
/// integers are exact. The exponent y log x may reach 700, so the logarithm is needed to 65 bits. It is computed as a
/// sum of two doubles by multiply-adds that are rounded once.
namespace varve::kernel::power {

/// True if the machine rounds a multiply-add only once and the compiler must not reorder sums.
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(__FAST_MATH__) && !defined(__ASSOCIATIVE_MATH__)
inline constexpr bool is_exact = VARVE_USE_XSIMD && lanes<double> > 1;
#else
inline constexpr bool is_exact = false;
#endif

using V = batch<double>;
/// A sum of two doubles, the second of which is smaller than an ulp of the first.
struct pair {
  V high, low;
};

/// Returns log(x) for a finite, positive x that is not denormal. The series is that of `logarithm.hpp`.
VARVE_INLINE pair log(V const& x) {
  using c = logarithm::table<double>;
  auto const shifted = detail::raw_bits<double>(x) -
                       (std::bit_cast<std::uint64_t>(c::sqrt_half) - (std::uint64_t(c::bias) << c::mantissa_bits));
  V const k =
      V(detail::from_raw_bits<double>((shifted >> c::mantissa_bits) | std::bit_cast<std::uint64_t>(c::integer_bits))) -
      V(c::integer_bits + c::bias);
  V const m = detail::from_raw_bits<double>((shifted & ((std::uint64_t(1) << c::mantissa_bits) - 1)) +
                                            std::bit_cast<std::uint64_t>(c::sqrt_half));
  // s = f / d
  V const one(1.), two(2.), f = m - one, d = m + one, d_low = m - (d - one), q = one / d, s = f * q,
                            s_low = (kernel::fnma<double>(s, d, f) - s * d_low) * q;
  V const z = s * s, z_low = kernel::fma<double>(s + s, s_low, kernel::fma<double>(s, s, -z));
  // u = 2/3 + 2/5 z + ..., v = z u, log(m) = s (2 + v)
  constexpr double third = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55;
  constexpr double rest[] = {c::p[1], c::p[2], c::p[3], c::p[4], c::p[5], c::p[6], c::p[7]};
  V const w = z * kernel::polynomial<double>(rest, z), u = V(third) + w, u_low = (w - (u - V(third))) + V(third_low);
  V const v = z * u, v_low = kernel::fma<double>(z, u, -v) + kernel::fma<double>(z, u_low, z_low * u);
  V const g = two + v, g_low = (v - (g - two)) + v_low;
  V const l = s * g, l_low = kernel::fma<double>(s, g, -l) + kernel::fma<double>(s, g_low, s_low * g);
  V const a = k * V(c::ln2_high), high = a + l; // a is exact; it is 0 or its absolute value exceeds that of l
  return {high, ((a - high) + l) + kernel::fma<double>(k, V(c::ln2_low), l_low)};
}
/// Returns e^x for |x| < 708.
VARVE_INLINE V exp(pair const& x) {
  using c = exponential::table<double>;
  V const shifted = kernel::nearest<double>(x.high, c::log2_e), n = shifted - V(kernel::integer_shift<double>);
  V const a = kernel::fma<double>(n, V(-c::ln2_high), x.high), b = kernel::fma<double>(n, V(-c::ln2_low), x.low);
  V const r = a + b, part = r - a, r_low = (a - (r - part)) + (b - part);
  V const one(1.),
      t = kernel::fma<double>(r * r, kernel::polynomial<double>(c::p, r), kernel::fma<double>(r_low, r, r_low));
  V const h = one + r, e = h + (((one - h) + r) + t);
  return detail::shift_left<c::mantissa_bits, c::integer, double>(shifted, e);
}

/// Returns x^y. Lanes other than those with finite numbers, a positive base and a normal result are computed by
/// `other(x, y)`, one by one, so that no element depends on its neighbours.
template <class F>
VARVE_INLINE V pow(V const& x, V const& y, F const& other) {
  V const zero(0.), infinity(std::numeric_limits<double>::infinity());
  pair const l = power::log(x);
  V const high = y * l.high, low = kernel::fma<double>(y, l.low, kernel::fma<double>(y, l.high, -high));
  V const whatever = kernel::from_mask<double>(y == zero); // x^0 is 1, also in lanes of 0 behind a row's end
  V const usual = whatever + kernel::from_mask<double>(x >= V((std::numeric_limits<double>::min)())) *
                                 kernel::from_mask<double>(x < infinity) *
                                 kernel::from_mask<double>(library::abs(high) < V(708.));
  V const r = kernel::select<double>(y == zero, V(1.), power::exp({high, low}));
  if (!kernel::any<double>(usual == zero)) [[likely]]
    return r;
  double of[4][lanes<double>];
  kernel::store(of[0], x), kernel::store(of[1], y), kernel::store(of[2], usual), kernel::store(of[3], r);
  for (std::size_t i = 0; i < lanes<double>; ++i)
    if (of[2][i] == 0) of[3][i] = other(of[0][i], of[1][i]);
  return kernel::load(of[3]);
}

} // namespace varve::kernel::power

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
