// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/kernel/math.hpp>

#include <cstddef>
#include <utility>
#include <vector>

/// @file
/// Reduction of a matrix of doubles to triangular form by reflections, and damped linear least squares with it.
namespace varve::optim::detail {

using numbers = std::vector<double>;

constexpr double dot(numbers const& a, numbers const& b) {
  double r = 0;
  for (std::size_t k = 0; k < a.size(); ++k) r += a[k] * b[k];
  return r;
}
constexpr bool is_finite(double v) { return v - v == 0; }
constexpr double magnitude(double v) { return v < 0 ? -v : v; }

/// Rows of n numbers and a right side, which Householder reflections reduce to triangular form.
struct reflected_rows {
  std::size_t n;
  numbers a, y;

  constexpr double* row(std::size_t i) { return a.data() + i * n; }
  constexpr double const* row(std::size_t i) const { return a.data() + i * n; }
  /// Makes column `c` zero below row `c`, and applies the reflection to the later columns and the right side.
  constexpr void reflect(std::size_t c) {
    double square = 0;
    for (std::size_t i = c; i < y.size(); ++i) square += row(i)[c] * row(i)[c];
    if (!(square > 0)) return;
    double const head = row(c)[c], length = head > 0 ? -kernel::sqrt(square) : kernel::sqrt(square);
    row(c)[c] = head - length; // the Householder vector; half its squared length is -length * row(c)[c]
    double const scale = 1 / (length * row(c)[c]);
    numbers along(n + 1, 0.0);
    for (std::size_t i = c; i < y.size(); ++i) {
      double const v = row(i)[c] * scale;
      for (std::size_t k = c + 1; k < n; ++k) along[k] += v * row(i)[k];
      along[n] += v * y[i];
    }
    for (std::size_t i = c; i < y.size(); ++i) {
      double const v = row(i)[c];
      for (std::size_t k = c + 1; k < n; ++k) row(i)[k] += v * along[k];
      y[i] += v * along[n];
      row(i)[c] = 0;
    }
    row(c)[c] = length;
  }
  /// Exchanges column `c` with the column `k >= c` that is longest from row `c` down, and returns its index.
  constexpr std::size_t exchange(std::size_t c) {
    numbers squares(n, 0.0);
    for (std::size_t i = c; i < y.size(); ++i)
      for (std::size_t k = c; k < n; ++k) squares[k] += row(i)[k] * row(i)[k];
    std::size_t best = c;
    for (std::size_t k = c; k < n; ++k)
      if (squares[k] > squares[best]) best = k;
    for (std::size_t i = 0; best != c && i < y.size(); ++i) std::swap(row(i)[c], row(i)[best]);
    return best;
  }
  /// Solves the triangular equations. An unknown is 0 if its column (of length about 1) depends on those before it.
  constexpr numbers solved() const {
    numbers x(n, 0.0);
    for (std::size_t c = n; c-- > 0;) {
      double s = y[c];
      for (std::size_t k = c + 1; k < n; ++k) s -= row(c)[k] * x[k];
      x[c] = is_independent(c) ? s / row(c)[c] : 0;
    }
    return x;
  }
  constexpr bool is_independent(std::size_t c) const { return magnitude(row(c)[c]) > 1e-14; }
};

/// Finds the p that minimizes |r + J p|^2 + sum(damping p^2), for one Jacobian and many dampings. J is reduced once to
/// triangular form, with columns scaled to length 1 and the most independent ones first: O(m n^2). Each damping then
/// costs O(n^3).
class reduced_jacobian {
public:
  /// Reduces `j`, which has a row of n numbers for each residual. `lengths` are the lengths of its columns.
  constexpr void reduce(numbers j, numbers r, numbers const& lengths) {
    lengths_ = lengths;
    order_.assign(lengths.size(), 0);
    full_rank_ = true;
    std::size_t const n = lengths.size();
    reflected_rows all{n, std::move(j), std::move(r)};
    if (all.y.size() < n) all.a.resize(n * n, 0.0), all.y.resize(n, 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      order_[k] = k;
      if (!(lengths_[k] > 0)) lengths_[k] = 1;
    }
    for (std::size_t i = 0; i < all.y.size(); ++i)
      for (std::size_t k = 0; k < n; ++k) all.row(i)[k] /= lengths_[k];
    for (std::size_t c = 0; c < n; ++c) {
      std::swap(order_[c], order_[all.exchange(c)]);
      all.reflect(c);
    }
    for (std::size_t c = 0; c < n; ++c) full_rank_ = full_rank_ && all.is_independent(c);
    all.a.resize(n * n, 0.0), all.y.resize(n, 0.0);
    for (double& v : all.y) v = -v;
    triangle_.n = n, triangle_.a = std::move(all.a), triangle_.y = std::move(all.y);
  }
  /// True if the residuals determine every parameter.
  constexpr bool has_full_rank() const { return full_rank_; }
  /// Returns the step without damping. If the rank is not full, the step is 0 for redundant parameters.
  constexpr numbers solved() const { return ordered(triangle_.solved()); }
  constexpr numbers solved(numbers const& damping) const {
    std::size_t const n = order_.size();
    reflected_rows all = triangle_;
    all.a.resize(2 * n * n, 0.0), all.y.resize(2 * n, 0.0);
    for (std::size_t c = 0; c < n; ++c) all.row(n + c)[c] = kernel::sqrt(damping[order_[c]]) / lengths_[order_[c]];
    for (std::size_t c = 0; c < n; ++c) all.reflect(c);
    return ordered(all.solved());
  }
  /// Returns |J p|^2.
  constexpr double change(numbers const& p) const {
    std::size_t const n = order_.size();
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double s = 0;
      for (std::size_t k = i; k < n; ++k) s += triangle_.row(i)[k] * lengths_[order_[k]] * p[order_[k]];
      square += s * s;
    }
    return square;
  }

private:
  constexpr numbers ordered(numbers const& x) const {
    numbers p(x.size(), 0.0);
    for (std::size_t k = 0; k < x.size(); ++k) p[order_[k]] = x[k] / lengths_[order_[k]];
    return p;
  }
  numbers lengths_{};
  std::vector<std::size_t> order_{}; // the parameter of each column
  reflected_rows triangle_{0, {}, {}};
  bool full_rank_ = true;
};

} // namespace varve::optim::detail

#pragma GCC diagnostic pop
