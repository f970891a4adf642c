// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <bit>
#include <cstdint>

/// @file
/// Elementary functions for constant expressions; the standard ones are not constexpr in C++20 (g++ folds them, clang
/// does not). They use argument reductions and series in `long double` and round once. Results are within 1 ulp of
/// double if `long double` is wider, and within 2 ulp otherwise. No step overflows or produces a NaN by arithmetic,
/// since a constant expression must not. They are not meant for run time: `math.hpp` calls `std::` there.
namespace varve::kernel::constant {

using wide = long double;
inline constexpr double infinity = __builtin_huge_val(), nan = __builtin_nan("");
inline constexpr wide ln2 = 0x1.62e42fefa39ef35793c7673007e6p-1L;

/// Rounds to `T`. Numbers that are too large become infinite; a plain conversion of these would be undefined.
template <class T>
constexpr T narrow(wide x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr wide greatest = single ? static_cast<wide>(0x1.fffffep127) : static_cast<wide>(0x1.fffffffffffffp1023);
  constexpr wide half_ulp = single ? static_cast<wide>(0x1p103) : static_cast<wide>(0x1p970);
  if (x != x) return static_cast<T>(nan);
  wide const a = x < 0 ? -x : x;
  if (a <= greatest) return static_cast<T>(x);
  T const r = a - greatest < half_ulp ? static_cast<T>(greatest) : static_cast<T>(infinity);
  return x < 0 ? -r : r;
}
/// Returns whether the sign bit is set, also for zeros and NaN.
constexpr bool negative(double x) { return std::bit_cast<std::uint64_t>(x) >> 63; }
constexpr double magnitude(double x) { return negative(x) ? -x : x; }
constexpr double with_sign(double x, double sign) { return negative(x) == negative(sign) ? x : -x; }

/// Returns 2^n for |n| <= 1022.
constexpr wide power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }
constexpr wide scale(wide x, int n) {
  for (; n > 1000; n -= 1000) x *= power_of_two(1000);
  for (; n < -1000; n += 1000) x *= power_of_two(-1000);
  return x * power_of_two(n);
}
/// Returns the nearest integer, for arguments well inside the range of `long long`.
constexpr long long nearest(wide x) { return static_cast<long long>(x < 0 ? x - 0.5L : x + 0.5L); }

constexpr double trunc(double x) {
  if (!(magnitude(x) < 0x1p52)) return x;
  return with_sign(static_cast<double>(static_cast<long long>(x)), x);
}
constexpr double floor(double x) {
  double const t = constant::trunc(x);
  return t > x ? t - 1 : t;
}
constexpr double ceil(double x) { return -constant::floor(-x); }
/// Returns the nearest integer, ties to even.
constexpr double round(double x) {
  if (!(magnitude(x) < 0x1p52)) return x;
  double const f = constant::floor(x), d = x - f;
  double const r = d < 0.5 || (d == 0.5 && static_cast<long long>(f) % 2 == 0) ? f : f + 1;
  return with_sign(magnitude(r), x);
}

/// Parts of a finite x > 0: x = m * 2^k with m in [1, 2).
struct parts {
  double m;
  int k;
};
constexpr parts split(double x) {
  int k = 0;
  if (x < 0x1p-1022) x *= 0x1p54, k = -54;
  auto const u = std::bit_cast<std::uint64_t>(x);
  return {std::bit_cast<double>((u & 0xfffffffffffffu) | 0x3ff0000000000000u), k + static_cast<int>(u >> 52) - 1023};
}

/// Returns e^x - 1 for |x| <= 0.35 by Taylor's series.
constexpr wide expm1_series(wide r) {
  wide s = 1;
  for (int k = 19; k > 1; --k) s = 1 + r * s / k;
  return r * s;
}
constexpr wide wide_exp(wide x) {
  int const n = static_cast<int>(nearest(x / ln2));
  return scale(1 + expm1_series(x - n * ln2), n);
}
constexpr double exp(double x) {
  if (x != x) return x;
  if (x > 710) return infinity;
  if (x < -746) return 0;
  return narrow<double>(wide_exp(x));
}
constexpr double expm1(double x) {
  if (x != x || x == 0) return x;
  if (x > 710) return infinity;
  if (x < -50) return -1;
  if (x > 50) return narrow<double>(wide_exp(x));
  int const n = static_cast<int>(nearest(x / ln2));
  wide const s = power_of_two(n);
  return narrow<double>(s * expm1_series(x - n * ln2) + (s - 1));
}

/// Returns log((1 + s) / (1 - s)) for |s| <= 0.172.
constexpr wide log_series(wide s) {
  wide const z = s * s;
  wide p = 0;
  for (int k = 27; k >= 1; k -= 2) p = p * z + 1.0L / k;
  return 2 * s * p;
}
constexpr wide wide_log(double x) { // for finite, positive x
  parts p = split(x);
  if (p.m > 1.41421356) p.m /= 2, ++p.k;
  return p.k * ln2 + log_series((static_cast<wide>(p.m) - 1) / (static_cast<wide>(p.m) + 1));
}
constexpr double log(double x) {
  if (x != x || x == infinity) return x;
  if (x == 0) return -infinity;
  if (x < 0) return nan;
  return narrow<double>(wide_log(x));
}
constexpr double log1p(double x) {
  if (x != x || x == infinity || x == 0) return x;
  if (x == -1) return -infinity;
  if (x < -1) return nan;
  if (x > -0.29 && x < 0.41) return narrow<double>(log_series(x / (2 + static_cast<wide>(x))));
  if (x > 0x1p60) return constant::log(x);
  wide const u = 1 + static_cast<wide>(x);
  parts const p =
      split(static_cast<double>(u)); // only the exponent is used: u itself may need more bits than a double has
  int const k = p.k + (p.m > 1.41421356);
  wide const m = scale(u, -k);
  return narrow<double>(k * ln2 + log_series((m - 1) / (m + 1)));
}

/// Returns the square root, computed bit by bit and correctly rounded.
constexpr double sqrt(double x) {
  if (x != x || x == 0 || x == infinity) return x;
  if (x < 0) return nan;
  parts p = split(x);
  std::uint64_t m = (std::bit_cast<std::uint64_t>(p.m) & 0xfffffffffffffu) | 0x10000000000000u; // 53 bits
  if (p.k % 2 != 0) m *= 2, --p.k;
  std::uint64_t root = 0, rest = 0;
  for (int bit = 0; bit < 54; ++bit) { // 27 pairs of bits of m, then zeros: a root of 54 bits, the last for rounding
    rest = rest << 2 | (bit < 27 ? m >> (52 - 2 * bit) & 3 : 0);
    std::uint64_t const trial = root << 2 | 1;
    root <<= 1;
    if (rest >= trial) rest -= trial, root |= 1;
  }
  root = (root + 1) / 2; // never a tie: the square of a root with 54 significant bits has more bits than x
  return narrow<double>(scale(static_cast<wide>(root), p.k / 2 - 52));
}

/// Remainder r in [-pi/4, pi/4] and quadrant q of an angle. They are exact to double precision for |x| < 1e7, and less
/// and less so beyond.
struct quadrant {
  wide r;
  int q;
};
constexpr quadrant reduce_angle(double x) {
  wide y = x;
  if (magnitude(x) > 1e15) { // the digits are meaningless anyway: only keep the quotient in range
    wide const turn = 0x6.487ed5110b4611a62633145c07p0L;
    for (int n = 1000; n >= 0; --n)
      while (y >= scale(turn, n) || -y >= scale(turn, n)) y -= (y < 0 ? -1 : 1) * scale(turn, n);
  }
  long long const n = nearest(y * 0xa.2f9836e4e44152a00p-4L);
  wide const r =
      ((y - n * 0x1.921fb54442p0L) - n * 0xd18469898cp-80L) - n * 0xc51701b839a252p-136L; // pi/2 in parts of 41 bits
  return {r, static_cast<int>(n & 3)};
}
constexpr wide sin_series(wide r) {
  wide s = 1;
  for (int k = 20; k > 1; k -= 2) s = 1 - r * r * s / (k * (k + 1));
  return r * s;
}
constexpr wide cos_series(wide r) {
  wide s = 1;
  for (int k = 21; k > 0; k -= 2) s = 1 - r * r * s / (k * (k + 1));
  return s;
}
constexpr wide wide_sin(quadrant a) {
  wide const v = a.q & 1 ? cos_series(a.r) : sin_series(a.r);
  return a.q & 2 ? -v : v;
}
constexpr double sin(double x) {
  if (x != x || x == 0) return x;
  if (magnitude(x) == infinity) return nan;
  return narrow<double>(wide_sin(reduce_angle(x)));
}
constexpr double cos(double x) {
  if (x != x) return x;
  if (magnitude(x) == infinity) return nan;
  quadrant const a = reduce_angle(x);
  return narrow<double>(wide_sin({a.r, (a.q + 1) & 3}));
}
constexpr double tan(double x) {
  if (x != x || x == 0) return x;
  if (magnitude(x) == infinity) return nan;
  quadrant const a = reduce_angle(x);
  return narrow<double>(wide_sin(a) / wide_sin({a.r, (a.q + 1) & 3}));
}

constexpr double tanh(double x) {
  if (x != x || x == 0) return x;
  double const a = magnitude(x);
  if (a > 20) return with_sign(1, x);
  wide const y = 2 * static_cast<wide>(a);
  int const n = static_cast<int>(nearest(y / ln2));
  wide const s = power_of_two(n), t = s * expm1_series(y - n * ln2) + (s - 1);
  return with_sign(narrow<double>(t / (t + 2)), x);
}
/// Returns 1 / (1 + e^-x), computed from e^-|x| so that nothing overflows.
constexpr double sigmoid(double x) {
  if (x != x) return x;
  if (x < -746) return 0;
  if (x > 50) return 1;
  wide const e = wide_exp(-static_cast<wide>(magnitude(x)));
  return narrow<double>((x < 0 ? e : 1) / (1 + e));
}
/// Returns 2/sqrt(pi) e^(-x^2) (x + 2/3 x^3 + 4/15 x^5 + ...). All terms are positive, so nothing cancels.
constexpr double erf(double x) {
  if (x != x || x == 0) return x;
  double const a = magnitude(x);
  if (a > 6) return with_sign(1, x);
  wide const z = static_cast<wide>(a) * a;
  wide term = a, sum = a;
  for (int k = 1; term > sum * 1e-21L; ++k) sum += term *= 2 * z / (2 * k + 1);
  return with_sign(narrow<double>(0x1.20dd750429b6d11ae3a914fed7fep0L * wide_exp(-z) * sum), x);
}

/// Returns the exact remainder of the truncated quotient.
constexpr double fmod(double x, double y) {
  if (x != x || y != y || magnitude(x) == infinity || y == 0) return nan;
  double r = magnitude(x);
  double const d = magnitude(y);
  if (d == infinity) return x;
  while (r >= d) {
    int k = split(r).k - split(d).k;
    if (scale(d, k) > r) --k;
    r = static_cast<double>(r - scale(d, k));
  }
  return with_sign(r, x);
}

constexpr bool is_integer(double x) { return constant::trunc(x) == x; }
constexpr bool is_odd(double x) { return magnitude(x) < 0x1p53 && is_integer(x) && static_cast<long long>(x) % 2 != 0; }
constexpr double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return nan;
  double const a = magnitude(x), b = magnitude(y);
  bool const flip = negative(x) && is_odd(y);
  if (b == infinity) return a == 1 ? 1 : (a > 1) == (y > 0) ? infinity : 0;
  if (a == 0 || a == infinity) {
    double const r = (a == 0) == (y > 0) ? 0 : infinity;
    return flip ? -r : r;
  }
  if (x < 0 && !is_integer(y)) return nan;
  wide const t = y * wide_log(a);
  wide r = t > 710 ? static_cast<wide>(infinity) : t < -746 ? 0 : wide_exp(t);
  if (b <= 64 && is_integer(y) && t > -700 && t < 700) { // small integers: exact whenever the result is representable
    r = 1;
    for (int k = 0; k < static_cast<int>(b); ++k) r *= a;
    if (y < 0) r = 1 / r;
  }
  double const v = t > 710 ? infinity : narrow<double>(r);
  return flip ? -v : v;
}

} // namespace varve::kernel::constant
