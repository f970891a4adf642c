// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// @file
/// Discrete Fourier transforms of any length in double: y_k = sum_j x_j exp(-2 pi i j k / n). Lengths with small prime
/// factors are split by these (decimation in time); others are computed as convolutions (Bluestein). O(n log n) for
/// every n.
namespace varve::kernel::fft {

/// A complex number with the arithmetic needed here, without special cases for infinite parts.
struct point {
  double re, im;
  friend constexpr point operator+(point a, point b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr point operator-(point a, point b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr point operator*(point a, point b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend constexpr point operator*(double s, point a) { return {s * a.re, s * a.im}; }
};
constexpr point conjugate(point a) { return {a.re, -a.im}; }
/// Returns a times -i.
constexpr point turned(point a) { return {a.im, -a.re}; }

/// Returns exp(-2 pi i k / n) for 0 <= k < n in full precision: the angle of the sine is at most an eighth of a turn.
inline point root(std::uint64_t k, std::uint64_t n) {
  constexpr double pi = 3.14159265358979323846;
  std::uint64_t const eighth = 8 * k / n;                     // which eighth of the circle
  auto const at = [&](std::uint64_t num, std::uint64_t den) { // for the angle 2 pi num / den
    double const a = 2 * pi * (static_cast<double>(num) / static_cast<double>(den));
    return point{std::cos(a), std::sin(a)};
  };
  // angle relative to the nearest multiple of a quarter turn: k / n = quarter / 4 +- rest / (4 n)
  std::uint64_t const quarter = (eighth + 1) / 2 % 4;
  bool const before = eighth % 2 == 1;
  std::uint64_t const rest = before ? (eighth + 1) / 2 * n - 4 * k : 4 * k - eighth / 2 * n;
  point const r = at(rest, 4 * n);
  double const c = r.re, s = before ? -r.im : r.im;
  switch (quarter) {
  case 0:
    return {c, -s};
  case 1:
    return {-s, -c};
  case 2:
    return {-c, s};
  default:
    return {s, c};
  }
}

/// Factors and roots for transforms of one length, and the convolution for lengths with a large prime factor.
class plan {
public:
  explicit plan(std::size_t n) : n_(n) {
    std::size_t rest = n;
    for (std::size_t const p : {std::size_t(4), std::size_t(2), std::size_t(3), std::size_t(5)})
      while (rest % p == 0 && rest > 1) factors_.push_back(p), rest /= p;
    for (std::size_t p = 7; p * p <= rest; p += 2)
      while (rest % p == 0) factors_.push_back(p), rest /= p;
    if (rest > 1) factors_.push_back(rest);
    std::size_t greatest = 1;
    for (std::size_t const p : factors_) greatest = p > greatest ? p : greatest;
    if (greatest > most_direct) {
      by_convolution();
    } else {
      roots_.resize(n), odd_.resize(greatest);
      for (std::size_t k = 0; k < n; ++k) roots_[k] = root(k, n);
    }
  }
  std::size_t size() const { return n_; }
  /// Transforms `from` into `to`, which must not overlap.
  void run(point const* from, point* to) {
    if (n_ == 0) return;
    if (inner_.empty()) return parts(n_, 1, from, to, 0);
    std::size_t const m = inner_[0].size();
    for (std::size_t k = 0; k < n_; ++k) padded_[k] = from[k] * chirp_[k];
    for (std::size_t k = n_; k < m; ++k) padded_[k] = {0, 0};
    inner_[0].run(padded_.data(), product_.data());
    for (std::size_t k = 0; k < m; ++k) padded_[k] = conjugate(product_[k] * spectrum_[k]);
    inner_[0].run(padded_.data(), product_.data());
    double const scale = 1 / static_cast<double>(m);
    for (std::size_t k = 0; k < n_; ++k) to[k] = scale * (conjugate(product_[k]) * chirp_[k]);
  }

private:
  static constexpr std::size_t most_direct = 61; // larger primes use a convolution

  /// Prepares a transform by convolution. By j k = (j^2 + k^2 - (k - j)^2) / 2 it is a product, a convolution with a
  /// function of k - j, and another product.
  void by_convolution() {
    std::size_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    inner_.emplace_back(m);
    chirp_.resize(n_), padded_.resize(m), product_.resize(m), spectrum_.resize(m);
    std::uint64_t const twice = 2 * n_;
    std::uint64_t square = 0;
    for (std::size_t k = 0; k < n_; ++k) { // k^2 modulo 2 n, by its differences
      chirp_[k] = root(square, twice);
      square = (square + 2 * k + 1) % twice;
    }
    for (auto& p : padded_) p = {0, 0};
    for (std::size_t k = 0; k < n_; ++k) padded_[k] = padded_[(m - k) % m] = conjugate(chirp_[k]);
    inner_[0].run(padded_.data(), spectrum_.data());
  }
  /// Transforms n elements at distance `step`, where n is the product of the factors from `level` on.
  void parts(std::size_t n, std::size_t step, point const* from, point* to, std::size_t level) {
    if (n == 1) {
      *to = *from;
      return;
    }
    std::size_t const p = factors_[level], m = n / p;
    if (m == 1)
      for (std::size_t j = 0; j < p; ++j) to[j] = from[j * step];
    else
      for (std::size_t j = 0; j < p; ++j) parts(m, step * p, from + j * step, to + j * m, level + 1);
    if (p == 4) return join4(m, step, to);
    if (p == 2) return join2(m, step, to);
    if (p == 3) return join3(m, step, to);
    join(p, m, step, to);
  }
  void join2(std::size_t m, std::size_t step, point* to) const {
    for (std::size_t k = 0; k < m; ++k) {
      point const a = to[k], b = to[k + m] * roots_[k * step];
      to[k] = a + b, to[k + m] = a - b;
    }
  }
  void join3(std::size_t m, std::size_t step, point* to) const {
    constexpr double half_root = 0.86602540378443864676; // half the root of 3
    for (std::size_t k = 0; k < m; ++k) {
      point const a = to[k], b = to[k + m] * roots_[k * step], c = to[k + 2 * m] * roots_[2 * k * step];
      point const sum = b + c, difference = half_root * turned(b - c), middle = a - 0.5 * sum;
      to[k] = a + sum, to[k + m] = middle + difference, to[k + 2 * m] = middle - difference;
    }
  }
  void join4(std::size_t m, std::size_t step, point* to) const {
    for (std::size_t k = 0; k < m; ++k) {
      point const a = to[k], b = to[k + m] * roots_[k * step], c = to[k + 2 * m] * roots_[2 * k * step],
                  d = to[k + 3 * m] * roots_[3 * k * step];
      point const s = a + c, t = a - c, u = b + d, v = turned(b - d);
      to[k] = s + u, to[k + m] = t + v, to[k + 2 * m] = s - u, to[k + 3 * m] = t - v;
    }
  }
  void join(std::size_t p, std::size_t m, std::size_t step, point* to) {
    for (std::size_t k = 0; k < m; ++k) {
      for (std::size_t j = 0; j < p; ++j) odd_[j] = to[k + j * m] * roots_[j * k * step];
      for (std::size_t i = 0; i < p; ++i) {
        point sum = odd_[0];
        std::size_t at = 0; // i j m step modulo n
        for (std::size_t j = 1; j < p; ++j) {
          at += i * m * step;
          at -= at >= n_ ? n_ : 0;
          sum = sum + odd_[j] * roots_[at];
        }
        to[k + i * m] = sum;
      }
    }
  }

  std::size_t n_;
  std::vector<std::size_t> factors_;
  std::vector<point> roots_, odd_;
  std::vector<plan> inner_; // plan of the convolution, at most one
  std::vector<point> chirp_, spectrum_, padded_, product_;
};

} // namespace varve::kernel::fft
