// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/gamma.hpp>

/// @file
/// Bessel functions of orders 0 and 1, and Airy's function. They are computed in double and usable in constant
/// expressions. Small arguments use power series, and large ones asymptotic series. Those in between use recurrences
/// from large orders, trapezoidal sums of integrals (which converge exponentially), or Taylor series about tabulated
/// points.
namespace varve::kernel::bessel {

using gamma::infinity;
using gamma::nan;
using gamma::pi;
inline constexpr double euler = 0.57721566490153286061;
constexpr double size_of(double x) { return x < 0 ? -x : x; }
/// Table of 1 / k.
struct inverse_table {
  double of[128]{};
  constexpr inverse_table() {
    for (int k = 1; k < 128; ++k) of[k] = 1.0 / k;
  }
};
inline constexpr inverse_table inverses{};

/// Returns the asymptotic series 1 + (m - 1)/(8x) + ..., with m = 4 nu^2. Only every `step`-th term from `first` on
/// counts. `sign` is the ratio of the signs of successive terms.
constexpr double asymptotic(double m, double x, int first, int step, double sign) {
  double term = 1, sum = first == 0 ? 1 : 0, s = first == 0 ? sign : 1;
  for (int k = 1; k < 60; ++k) {
    double const odd = 2 * k - 1, next = term * (m - odd * odd) / (k * 8 * x);
    if (size_of(next) > size_of(term) && k > 2) break;
    term = next;
    if (k >= first && (k - first) % step == 0) sum += s * term, s *= sign;
    if (size_of(term) < 1e-18) break;
  }
  return sum;
}

// ---- Modified Bessel functions of the first kind; all terms of their series are positive.
/// Returns e^-|x| I_n(x) for n = 0, 1.
constexpr double scaled_i(int n, double x) {
  double const a = size_of(x), sign = n && x < 0 ? -1 : 1;
  if (x != x) return x;
  if (a == infinity) return 0;
  if (a > 25) return sign * asymptotic(4 * n * n, a, 0, 1, -1) / kernel::sqrt(2 * pi * a);
  double const z = a * a / 4;
  double term = n ? a / 2 : 1, sum = term;
  for (int k = 1; k < 126 && term > sum * 1e-17; ++k) sum += term *= z * inverses.of[k] * inverses.of[k + n];
  return sign * sum * kernel::exp(-a);
}
/// Coefficients 1 / (k! (k + n)!) of the series of (2 / x)^n I_n(x) in x^2 / 4, enough for float precision up to
/// x = 12.
struct series_of_i {
  static constexpr float end = 12;
  double of[26]{};
  constexpr explicit series_of_i(int n) {
    double term = 1;
    for (int k = 0; k < 26; ++k) of[k] = term, term /= (k + 1.0) * (k + 1 + n);
  }
};
template <int N>
inline constexpr series_of_i i_series{N};
constexpr double i(int n, double x) {
  double const a = size_of(x);
  if (a == infinity) return n && x < 0 ? -infinity : infinity;
  if (a > 700) { // in two steps, neither of which overflows too early
    double const half = kernel::exp(a / 2);
    return scaled_i(n, x) * half * half;
  }
  return scaled_i(n, x) * kernel::exp(a);
}
/// Returns I_N(x) for scalars and batches.
template <int N, class V>
VARVE_INLINE constexpr V i_of(V const& x) {
  if constexpr (has_halves<V>) {
    V const a = kernel::abs(x), end(series_of_i::end);
    if (!kernel::any<float>(kernel::to_mask<float>(V(1.0f) - kernel::from_mask<float>(a < end)))) [[likely]]
      return kernel::by_halves(
          [](batch<double> const& v) {
            batch<double> const half = v * batch<double>(0.5),
                                s = kernel::polynomial<double>(i_series<N>.of, half * half);
            if constexpr (N == 0) return s;
            else return batch<double>(half * s);
          },
          x);
  }
  return kernel::in_double([](double b) { return bessel::i(N, b); }, x);
}

// ---- Modified Bessel functions of the second kind.
/// Returns e^x K_nu(x) for x >= 0.5, as the integral of e^(-x (cosh t - 1)) cosh(nu t) over t > 0.
constexpr double scaled_k_integral(double nu, double x) {
  constexpr double h = 0.125;
  double sum = 0.5;
  for (int j = 1; j < 48; ++j) {
    double const t = j * h, e = kernel::exp(t), s = kernel::expm1(t), below = x * s * s / (2 * e); // x (cosh t - 1)
    if (below > 745) break;
    double const growth = nu == 0 ? 1 : kernel::exp(nu * t);
    double const term = kernel::exp(-below) * (growth + 1 / growth) / 2;
    sum += term;
    if (term < sum * 1e-18) break;
  }
  return sum * h;
}
constexpr double scaled_k_above(double nu, double x) {
  return x > 20 ? kernel::sqrt(pi / (2 * x)) * asymptotic(4 * nu * nu, x, 0, 1, 1) : scaled_k_integral(nu, x);
}
/// Returns K_n(x) for 0 < x < 1 by power series.
constexpr double k_near_zero(int n, double x) {
  double const z = x * x / 4, l = kernel::log(x / 2);
  double term = 1, sum = 0, harmonic = 0; // for order 0: psi(k + 1) (x/2)^2k / k!^2
  if (n == 0) {
    for (int k = 0; k < 20; ++k) {
      sum += term * (harmonic - euler - l);
      harmonic += 1.0 / (k + 1), term *= z / ((k + 1) * (k + 1));
    }
    return sum;
  }
  for (int k = 0; k < 20; ++k) {
    double const both = harmonic - euler + (harmonic + 1.0 / (k + 1) - euler);
    sum += term * (l - both / 2);
    harmonic += 1.0 / (k + 1), term *= z / ((k + 1) * (k + 2.0));
  }
  return 1 / x + sum * x / 2;
}
constexpr double scaled_k(int n, double x) {
  if (x != x || x < 0) return nan;
  if (x == 0) return infinity;
  if (x == infinity) return 0;
  return x < 1 ? k_near_zero(n, x) * kernel::exp(x) : scaled_k_above(n, x);
}
constexpr double k(int n, double x) {
  if (x != x || x < 0) return nan;
  if (x == 0) return infinity;
  if (x > 750) return 0;
  return x < 1 ? k_near_zero(n, x) : scaled_k_above(n, x) * kernel::exp(-x);
}

// ---- Bessel functions of the first and second kind.
struct four {
  double j0, j1, y0, y1;
};
/// Returns the four functions for 0 < x < 1 by power series.
constexpr four near_zero(double x) {
  double const z = -x * x / 4, l = kernel::log(x / 2);
  double t0 = 1, t1 = x / 2, j0 = 0, j1 = 0, s0 = 0, s1 = 0, harmonic = 0;
  for (int k = 0; k < 20; ++k) {
    double const next = harmonic + 1.0 / (k + 1);
    j0 += t0, j1 += t1;
    s0 += t0 * (harmonic - euler), s1 += t1 * (harmonic + next - 2 * euler);
    harmonic = next;
    t0 *= z / ((k + 1) * (k + 1.0)), t1 *= z / ((k + 1) * (k + 2.0));
  }
  return {j0, j1, 2 / pi * (l * j0 - s0), -2 / (pi * x) + 2 / pi * l * j1 - s1 / pi};
}
/// Returns the four functions for 1 <= x < 25: J by the recurrence downwards from a large order, Y by Neumann's series
/// of J.
constexpr four in_between(double x) {
  int const n = 2 * ((static_cast<int>(x) + 44) / 2);
  double above = 0, here = 1e-250, sum = 0, s0 = 0, s1 = 0, j1 = 0;
  double const twice = 2 / x;
  for (int k = n; k > 0; --k) { // `here` is J_k
    if (k % 2 == 0) {
      int const m = k / 2;
      sum += 2 * here, s0 += (m % 2 ? -inverses.of[m] : inverses.of[m]) * here;
    } else if (k > 1) {
      int const m = (k - 1) / 2;
      s1 += (m % 2 ? 1.0 : -1.0) * (inverses.of[m] + inverses.of[m + 1]) * here;
    } else j1 = here;
    double const below = k * twice * here - above;
    above = here, here = below;
  }
  double const scale = 1 / (sum + here), l = kernel::log(x / 2) + euler;
  double const j0 = here * scale, first = j1 * scale;
  return {j0, first, 2 / pi * (l * j0) - 4 / pi * s0 * scale,
          -2 / (pi * x) * j0 + 2 / pi * l * first + 2 / pi * (s1 * scale - first)};
}
/// Returns the four functions for x >= 25 by Hankel's asymptotic series.
constexpr four far_out(double x) {
  if (x == infinity) return {0, 0, 0, 0};
  double const root = kernel::sqrt(2 / (pi * x)) * 0.70710678118654752440, s = kernel::sin(x), c = kernel::cos(x);
  double const p0 = asymptotic(0, x, 0, 2, -1), q0 = asymptotic(0, x, 1, 2, -1);
  double const p1 = asymptotic(4, x, 0, 2, -1), q1 = asymptotic(4, x, 1, 2, -1);
  // cos(x - pi/4) = (c + s) / sqrt(2), sin(x - pi/4) = (s - c) / sqrt(2), and a quarter turn more for order 1
  return {root * (p0 * (c + s) - q0 * (s - c)), root * (p1 * (s - c) + q1 * (c + s)),
          root * (p0 * (s - c) + q0 * (c + s)), root * (q1 * (s - c) - p1 * (c + s))};
}
constexpr four of_positive(double x) { return x < 1 ? near_zero(x) : x < 25 ? in_between(x) : far_out(x); }
constexpr double j(int n, double x) {
  if (x != x) return x;
  if (x == 0) return n ? 0 : 1;
  four const v = of_positive(size_of(x));
  return n == 0 ? v.j0 : x < 0 ? -v.j1 : v.j1;
}
constexpr double y(int n, double x) {
  if (x != x || x < 0) return nan;
  if (x == 0) return -infinity;
  four const v = of_positive(x);
  return n == 0 ? v.y0 : v.y1;
}
/// Returns sin(x) / x.
constexpr double spherical_j0(double x) {
  if (x != x) return x;
  if (size_of(x) == infinity) return 0;
  if (size_of(x) < 0.5) {
    double const z = x * x;
    double s = 1;
    for (int k = 16; k > 0; k -= 2) s = 1 - z * s / (k * (k + 1));
    return s;
  }
  return kernel::sin(x) / x;
}

// ---- Airy's function.
/// Value and derivative of Ai at a point. `airy_from` computes them at distance `d` from `at` by the Taylor series of
/// y'' = x y.
struct airy_pair {
  long double value, slope;
};
constexpr airy_pair airy_from(double at, airy_pair p, long double d) {
  long double c[48]{p.value, p.slope, at * p.value / 2};
  for (int k = 1; k + 2 < 48; ++k) c[k + 2] = (at * c[k] + c[k - 1]) / ((k + 2) * (k + 1));
  airy_pair r{0, 0};
  for (int k = 47; k >= 0; --k) r.value = r.value * d + c[k];
  for (int k = 47; k > 0; --k) r.slope = r.slope * d + k * c[k];
  return r;
}
/// Values and derivatives of Ai at 1, 0, -1, ..., -10.
struct airy_table {
  airy_pair at[12]{};
  constexpr airy_table() {
    at[1] = {0.355028053887817239260L, -0.258819403792806798405L};
    at[0] = airy_from(0, at[1], 1);
    for (int k = 2; k < 12; ++k) at[k] = airy_from(1 - (k - 1), at[k - 1], -1);
  }
};
inline constexpr airy_table airys{};
constexpr double airy(double x) {
  if (x != x) return x;
  if (x == infinity || x == -infinity) return 0;
  if (x > 1) {
    double const zeta = 2.0 / 3 * x * kernel::sqrt(x);
    if (zeta > 745) return 0;
    return kernel::sqrt(x / 3) / pi * scaled_k_above(1.0 / 3, zeta) * kernel::exp(-zeta);
  }
  if (x > -10) {
    int const nearest = static_cast<int>(x < 0 ? x - 0.5 : x + 0.5);
    return static_cast<double>(airy_from(nearest, airys.at[1 - nearest], x - nearest).value);
  }
  double const zeta = 2.0 / 3 * -x * kernel::sqrt(-x), m = 4.0 / 9; // 4 nu^2 for order 1/3
  double const p = asymptotic(m, zeta, 0, 2, -1), q = asymptotic(m, zeta, 1, 2, -1);
  double const s = kernel::sin(zeta), c = kernel::cos(zeta), root = 0.70710678118654752440;
  return (p * (s + c) + q * (c - s)) * root / kernel::sqrt(pi * kernel::sqrt(-x));
}

} // namespace varve::kernel::bessel
