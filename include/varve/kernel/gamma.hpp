// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>

#include <limits>

/// @file
/// The logarithm of the gamma function, its derivatives, the Hurwitz zeta function and the incomplete gamma functions.
/// They are computed in double and usable in constant expressions.
namespace varve::kernel {

/// Applies `f` to operands converted to double (batches lane by lane), and returns the result in their type.
template <class F, class V, class... W>
VARVE_INLINE constexpr V in_double(F f, V const& x, W const&... y) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    return kernel::lanewise(
        [f](T a, auto... b) { return constant::narrow<T>(f(static_cast<double>(a), static_cast<double>(b)...)); }, x,
        y...);
  } else return constant::narrow<V>(f(static_cast<double>(x), static_cast<double>(y)...));
}

/// True if a batch of floats splits into two batches of doubles.
template <class V>
inline constexpr bool has_halves = [] {
  if constexpr (is_batch<V>)
    return std::is_same_v<element_t<V>, float> && lanes<double> > 1 && lanes<float> == 2 * lanes<double>;
  else return false;
}();
/// Applies `f` to the lanes of a batch of floats as batches of doubles, and rounds the results.
template <class F>
VARVE_INLINE batch<float> by_halves(F const& f, batch<float> const& x) {
  float all[lanes<float>];
  kernel::store(all, x);
#pragma GCC unroll 2
  for (std::size_t i = 0; i < lanes<float>; i += lanes<double>)
    kernel::store_converted<true>(all + i, f(kernel::load_converted<double>(all + i)));
  return kernel::load(all);
}

namespace gamma {
inline constexpr double pi = 3.14159265358979323846, infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

/// Table of zeta(k) - 1 for k >= 2: the sum of the first terms, and the rest by the Euler-Maclaurin formula.
struct zeta_table {
  static constexpr int size = 40;
  double minus_one[size]{};
  double by_k[size]{}; // (zeta(k) - 1) / k
  /// Coefficients B_2j / (2j)! for j >= 1, computed from zeta(2j).
  static constexpr int bernoulli_size = 13;
  double bernoulli[bernoulli_size]{};
  constexpr zeta_table() {
    for (int k = 2; k < size; ++k) {
      long double s = 0;
      for (int n = 40; n >= 2; --n) s += power(n, k);
      long double const a = 41, p = power(41, k);
      s += p * a / (k - 1) + p / 2;
      long double term = p / a * k / 12; // B_2/2! k a^(-k-1), and two further terms
      s += term;
      term = p / a / a / a * k * (k + 1) * (k + 2) / 720;
      s -= term;
      s += term / a / a * (k + 3) * (k + 4) * 720 / 30240;
      minus_one[k] = static_cast<double>(s);
      by_k[k] = static_cast<double>(s / k);
    }
    long double scale = 2;
    for (int j = 1; j < bernoulli_size; ++j) {
      scale /= -39.478417604357434475337963999505L; // -(2 pi)^2
      bernoulli[j] = static_cast<double>(-scale * (1 + static_cast<long double>(minus_one[2 * j])));
    }
    bernoulli[1] = 1.0 / 12, bernoulli[2] = -1.0 / 720, bernoulli[3] = 1.0 / 30240;
  }
  static constexpr long double power(int n, int k) {
    long double r = 1;
    for (int i = 0; i < k; ++i) r /= n;
    return r;
  }
};
inline constexpr zeta_table zetas{};

/// Returns sin(pi x), exact if x is an integer.
constexpr double sin_pi(double x) {
  double const r = x - 2 * kernel::round(x / 2); // in [-1, 1]
  if (r == 0 || r == 1 || r == -1) return 0;
  double const a = r < 0 ? -r : r, s = kernel::sin(pi * (a > 0.5 ? 1 - a : a));
  return r < 0 ? -s : s;
}
constexpr double cos_pi(double x) { return sin_pi(x + 0.5); }

/// Returns log Gamma(2 + z) for |z| <= 0.5.
constexpr double log_about_two(double z) {
  double s = 0;
  for (int k = 28; k >= 2; --k) s = zetas.by_k[k] - z * s;
  return z * (0.42278433509846713939 + z * s);
}
/// Returns the remainder of Stirling's formula for x >= 10: log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 +
/// remainder.
constexpr double stirling_rest(double x) {
  double const z = 1 / (x * x);
  constexpr double c[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                          1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  double s = 0;
  for (int k = 7; k >= 0; --k) s = c[k] + z * s;
  return s / x;
}
/// Returns log |Gamma(x)|.
constexpr double log(double x) {
  if (x != x) return x;
  if (x == infinity || x == -infinity) return infinity;
  if (x <= 0) {
    if (x == kernel::floor(x)) return infinity;
    return kernel::log(pi / (-x * (sin_pi(x) < 0 ? -sin_pi(x) : sin_pi(x)))) - gamma::log(-x);
  }
  if (x < 0.5) return log_about_two(x) - kernel::log1p(x) - kernel::log(x);
  if (x < 1.5) return log_about_two(x - 1) - kernel::log1p(x - 1);
  if (x < 10) {
    double product = 1;
    for (; x > 2.5; product *= x) x -= 1;
    return log_about_two(x - 2) + kernel::log(product);
  }
  return (x - 0.5) * kernel::log(x) - x + 0.91893853320467274178 + stirling_rest(x);
}

/// Returns log Gamma(x) of doubles in (0, infinity) that were converted from floats, by Stirling's formula. For x below
/// 8 it evaluates the formula at x + 8 and subtracts log(x (x + 1) ... (x + 7)). Absolute errors of about 1e-15 vanish
/// in float precision.
VARVE_INLINE batch<double> log_of_positive(batch<double> const& x) {
  using V = batch<double>;
  constexpr double c[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                          1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  V const one(1.);
  auto const below_8 = x < V(8.);
  V between = x;
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) between = between * (x + V(static_cast<double>(k)));
  V const y = kernel::select<double>(below_8, x + V(8.), x), z = one / y;
  V const rest = kernel::polynomial<double>(c, z * z) * z;
  V const series = kernel::fma<double>(y - V(0.5), kernel::log<double>(y), V(0.91893853320467274178) - y) + rest;
  return series - kernel::log<double>(kernel::select<double>(below_8, between, one));
}
/// Returns log |Gamma(x)| of a scalar or a batch.
template <class V>
VARVE_INLINE constexpr V log_of(V const& x) {
  auto const one_lane = [](double a) { return gamma::log(a); };
  if constexpr (has_halves<V>) {
    V const zero(0.0f), one(1.0f), inf(std::numeric_limits<float>::infinity());
    V const usual = kernel::from_mask<float>(x > zero) * kernel::from_mask<float>(x < inf);
    if (!kernel::any<float>(usual < one)) [[likely]]
      return kernel::by_halves([](batch<double> const& v) { return gamma::log_of_positive(v); }, x);
  }
  return kernel::in_double(one_lane, x);
}

/// Returns the logarithmic derivative of the gamma function.
constexpr double digamma(double x) {
  if (x != x || x == infinity) return x;
  if (x == -infinity) return nan;
  if (x == 0) return constant::negative(x) ? infinity : -infinity;
  if (x < 0) {
    if (x == kernel::floor(x)) return nan;
    return digamma(1 - x) - pi * cos_pi(x) / sin_pi(x);
  }
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  double const z = 1 / (x * x);
  constexpr double c[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  double s = 0;
  for (int k = 6; k >= 0; --k) s = c[k] + z * s;
  return kernel::log(x) - 0.5 / x - z * s - below;
}

/// Returns the sum of (q + k)^-x over k >= 0 for x > 1 and q > 0: the first terms, then the Euler-Maclaurin formula.
constexpr double zeta_of_positive(double x, double q) {
  double sum = 0, a = q;
  for (double const enough = 12 + x / 3; a < enough; a += 1) {
    double const term = kernel::pow(a, -x);
    sum += term;
    if (term < sum * 1e-17) return sum;
  }
  double const p = kernel::pow(a, -x);
  sum += p * a / (x - 1) + p / 2;
  double factor = x * p / a;
  for (int j = 1; j < zeta_table::bernoulli_size; ++j) {
    double const term = zetas.bernoulli[j] * factor;
    sum += term;
    if ((term < 0 ? -term : term) < sum * 1e-17) break;
    factor *= (x + 2 * j - 1) * (x + 2 * j) / (a * a);
  }
  return sum;
}
/// Returns the Hurwitz zeta function; infinite at the poles, NaN where it is not real or x < 1.
constexpr double zeta(double x, double q) {
  if (x == 1) return infinity;
  if (!(x > 1) || q != q) return nan;
  if (q > 0) return q == infinity ? 0 : x == infinity ? (q > 1 ? 0 : q == 1 ? 1 : infinity) : zeta_of_positive(x, q);
  if (q == kernel::floor(q)) return infinity;
  if (x != kernel::floor(x) || x == infinity) return nan;
  // the terms below 0 are the difference of two sums
  double const f = q - kernel::floor(q);
  double const below = zeta_of_positive(x, 1 - f) - zeta_of_positive(x, 1 - q);
  bool const odd = kernel::fmod(x, 2.0) != 0;
  return zeta_of_positive(x, f) + (odd ? -below : below);
}

/// Returns log(1 + m) - m without cancellation.
constexpr double log1p_minus(double m) {
  if (m > 0.3 || m < -0.3) return kernel::log1p(m) - m;
  double s = 0;
  for (int k = 40; k >= 2; --k) s = 1.0 / k - m * s;
  return -m * m * s;
}
/// Returns x^a e^-x / Gamma(a + 1).
constexpr double incomplete_factor(double a, double x) {
  if (a < 10) return kernel::exp(a * kernel::log(x) - x - gamma::log(a + 1));
  double const e = a * log1p_minus((x - a) / a) - stirling_rest(a);
  return kernel::exp(e) / kernel::sqrt(2 * pi * a);
}
/// Returns the part of Gamma(a) below x (or above it, if `upper`), divided by Gamma(a), for finite a > 0 and x > 0.
constexpr double incomplete_share(double a, double x, bool upper) {
  constexpr int most = 1 << 20; // about 9 sqrt(a) are needed
  constexpr double eps = 1e-17;
  double const factor = incomplete_factor(a, x);
  if (x < a + 1) { // by a series
    double term = 1, sum = 1;
    for (int k = 1; k < most && term > sum * eps; ++k) sum += term *= x / (a + k);
    double const below = factor * sum;
    return upper ? 1 - below : below;
  }
  // by a continued fraction: 1/(x + 1 - a - 1 (1 - a)/(x + 3 - a - 2 (2 - a)/(...)))
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (int k = 1; k < most; ++k) {
    double const n = -k * (k - a);
    b += 2;
    d = n * d + b, c = b + n / c;
    if (d == 0) d = tiny;
    if (c == 0) c = tiny;
    d = 1 / d;
    double const step = d * c;
    h *= step;
    if (step - 1 < 2e-16 && 1 - step < 2e-16) break;
  }
  double const above = factor * a * h;
  return upper ? above : 1 - above;
}
/// Returns the regularized upper incomplete gamma function of small a and x, without subtracting from 1.
constexpr double upper_of_small(double a, double x) {
  double const e = a * kernel::log(x) - gamma::log(1 + a);
  double sum = 0, term = 1;
  for (int k = 1; k < 40; ++k) {
    term *= -x / k;
    sum += term / (a + k);
  }
  return -kernel::expm1(e) - a * kernel::exp(e) * sum;
}
/// Returns the regularized lower or upper incomplete gamma function.
constexpr double incomplete(double a, double x, bool upper) {
  if (a != a || x != x || a < 0 || x < 0) return nan;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : nan;
  if (x == 0) return upper ? 1 : 0;
  if (a == infinity) return x == infinity ? nan : upper ? 1 : 0;
  if (x == infinity) return upper ? 0 : 1;
  // computes a small part directly instead of subtracting the other one from 1
  if (upper && x < 1 && x < a + 1 && a < 1) return upper_of_small(a, x);
  return incomplete_share(a, x, upper);
}
} // namespace gamma

} // namespace varve::kernel
