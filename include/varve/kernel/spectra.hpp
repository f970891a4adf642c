// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/kernel/vectors.hpp>

#include <algorithm>
#include <limits>
#include <utility>

/// @file
/// Eigenvalues of symmetric matrices and singular values, for row-major doubles. Reflectors make matrices tridiagonal
/// or bidiagonal in O(n^3). Implicitly shifted QL or QR steps then make them diagonal, in O(n^2) for values alone.
/// Usable in constant expressions.
namespace varve::kernel::spectra {

inline constexpr double eps = std::numeric_limits<double>::epsilon(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double size_of(double x) { return x < 0 ? -x : x; }
/// Returns sqrt(x^2 + y^2), for numbers whose squares do not overflow.
constexpr double length(double x, double y) { return kernel::sqrt(x * x + y * y); }
/// Divides elements by their greatest absolute value and returns it; returns NaN if an element is not finite.
constexpr double scaled(index_t n, double* x) {
  double largest = 0;
  for (index_t i = 0; i < n; ++i) {
    if (!(size_of(x[i]) <= (std::numeric_limits<double>::max)())) return nan;
    largest = size_of(x[i]) > largest ? size_of(x[i]) : largest;
  }
  if (largest > 0) vectors::divide(n, x, largest);
  return largest;
}

// ---- Symmetric matrices
/// Computes the diagonal d and the subdiagonal e (n - 1 elements) of the tridiagonal matrix q^T a q. All elements of
/// the symmetric matrix a are read. The reflectors are left to the right of the diagonal of a, their scales in `tau`.
constexpr void make_tridiagonal(index_t n, double* a, double* d, double* e, double* tau) {
  list<double> memory(static_cast<std::size_t>(2 * n), 0.0);
  double *w = memory.data(), *next = w + n; // the last change a -= v w^T + w v^T is made when rows are read
  double const* v = nullptr;                // v and w begin with row k
  for (index_t k = 0; k < n; ++k) {
    index_t const rest = n - k - 1;
    double* const row = a + k * n + k;
    for (index_t i = 0; v && i <= rest; ++i) row[i] -= v[0] * w[i] + w[0] * v[i];
    d[k] = row[0];
    if (rest == 0) break;
    double* const u = row + 1;
    auto const [beta, scale] = vectors::reflect(rest, u);
    e[k] = beta, tau[k] = scale;
    u[0] = 1;
    for (index_t i = 0; i < rest; ++i) {
      double* const below = a + (k + 1 + i) * n + k + 1;
      next[i] = scale * (v ? vectors::two_less_and_dot(rest, v[1 + i], w + 1, w[1 + i], v + 1, below, u)
                           : vectors::dot(rest, below, u));
    }
    vectors::add_multiple(rest, -scale / 2 * vectors::dot(rest, next, u), u, next);
    std::swap(w, next);
    v = u;
  }
}
/// Replaces d by the eigenvalues of a tridiagonal matrix, unsorted, by QL steps without roots (Pal, Walker, Kahan).
/// Returns false if they do not converge.
constexpr bool tridiagonal_values(index_t n, double* d, double* e) {
  for (index_t i = 0; i + 1 < n; ++i) e[i] *= e[i];
  for (index_t l = 0; l < n; ++l)
    for (int step = 0;; ++step) {
      index_t m = l;
      while (m + 1 < n && e[m] > eps * eps * size_of(d[m]) * size_of(d[m + 1]) && e[m] > 1e-40) ++m;
      if (m + 1 < n) e[m] = 0;
      if (m == l) break;
      if (step == 60) return false;
      if (step == 0 && size_of(d[m]) < size_of(d[l])) { // begin at the smaller end
        std::reverse(d + l, d + m + 1);
        std::reverse(e + l, e + m);
      }
      double const root = kernel::sqrt(e[l]), half = (d[l + 1] - d[l]) / (2 * root), reach = length(half, 1);
      double const shift = d[l] - root / (half + (half < 0 ? -reach : reach));
      double c = 1, s = 0, gamma = d[m] - shift, p = gamma * gamma;
      for (index_t i = m - 1; i >= l; --i) {
        double const b = e[i], r = p + b, old_c = c, old_gamma = gamma;
        if (i + 1 < m) e[i + 1] = s * r;
        c = p / r, s = b / r;
        double const alpha = d[i];
        gamma = c * (alpha - shift) - s * old_gamma;
        d[i + 1] = old_gamma + (alpha - gamma);
        p = c != 0 ? gamma * gamma / c : old_c * b;
      }
      e[l] = s * p;
      d[l] = shift + gamma;
    }
  return true;
}
/// Replaces d by the eigenvalues of a tridiagonal matrix, unsorted, by QL steps, and rotates the rows of z with them.
/// Returns false if they do not converge.
constexpr bool tridiagonal_vectors(index_t n, double* d, double* e, double* z) {
  for (index_t l = 0; l < n; ++l)
    for (int step = 0;; ++step) {
      index_t m = l;
      while (m + 1 < n && size_of(e[m]) > eps / 2 * (size_of(d[m]) + size_of(d[m + 1])) && size_of(e[m]) > 1e-150) ++m;
      if (m == l) break;
      if (step == 60) return false;
      double const half = (d[l + 1] - d[l]) / (2 * e[l]), reach = length(half, 1);
      double g = d[m] - d[l] + e[l] / (half + (half < 0 ? -reach : reach)), s = 1, c = 1, p = 0;
      index_t i = m - 1;
      for (; i >= l; --i) {
        double const f = s * e[i], b = c * e[i], r = length(f, g);
        e[i + 1] = r;
        if (r == 0) { // the rest is already decoupled
          d[i + 1] -= p;
          break;
        }
        s = f / r, c = g / r;
        g = d[i + 1] - p;
        double const t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        vectors::rotate(n, c, s, z + i * n, z + (i + 1) * n);
      }
      if (i < l) d[l] -= p, e[l] = g;
      e[m] = 0;
    }
  return true;
}
/// Computes the eigenvalues of a symmetric matrix in ascending order and, unless `z` is null, its eigenvectors as rows
/// of z. All elements of the matrix are read, and it is destroyed. All results are NaN if an element is not finite.
constexpr void symmetric(index_t n, double* a, double* values, double* z) {
  double const largest = scaled(n * n, a);
  list<double> memory(static_cast<std::size_t>(2 * n), 0.0);
  double *const e = memory.data(), *const tau = e + n;
  bool good = largest == largest;
  if (good) {
    make_tridiagonal(n, a, values, e, tau);
    if (z) {
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < n; ++j) z[i * n + j] = i == j;
      for (index_t k = n - 2; k >= 0; --k) { // z = q^T, beginning with the last reflector
        double const* const u = a + k * n + k + 1;
        for (index_t i = k + 1; i < n; ++i) {
          double* const row = z + i * n + k + 1;
          vectors::add_multiple(n - k - 1, -tau[k] * vectors::dot(n - k - 1, row, u), u, row);
        }
      }
      good = tridiagonal_vectors(n, values, e, z);
    } else good = tridiagonal_values(n, values, e);
  }
  for (index_t i = 0; i < n; ++i) values[i] = good ? values[i] * largest : nan;
  for (index_t i = 0; z && !good && i < n * n; ++i) z[i] = nan;
  if (!good) return;
  if (!z) return std::sort(values, values + n);
  for (index_t j = 0; j < n; ++j) {
    index_t const least = std::min_element(values + j, values + n) - values;
    if (least == j) continue;
    std::swap(values[j], values[least]);
    std::swap_ranges(z + j * n, z + (j + 1) * n, z + least * n);
  }
}

// ---- Singular values
/// Computes the diagonal d and the superdiagonal e (n - 1 elements) of the bidiagonal matrix p^T a q for a [m, n] with
/// m >= n.
constexpr void make_bidiagonal(index_t m, index_t n, double* a, double* d, double* e) {
  list<double> memory(static_cast<std::size_t>(2 * (m + n)), 0.0);
  double *const v = memory.data(), *const y = v + m, *const w = y + m, *const u = w + n;
  // the update -= y u^T of the previous step is not yet applied to the rows from k on
  for (index_t k = 0; k < n; ++k) {
    index_t const rest = n - k - 1, h = m - k;
    bool const pending = k > 0;
    double* const corner = a + k * n + k;
    for (index_t i = 0; i < h; ++i) v[i] = corner[i * n] - (pending ? y[i] * u[0] : 0.0);
    auto const [beta, scale] = vectors::reflect(h, v);
    d[k] = beta;
    v[0] = 1;
    if (rest == 0) break;
    for (index_t j = 0; j < rest; ++j) w[j] = 0;
    for (index_t i = 0; i < h; ++i) {
      double* const row = corner + i * n + 1;
      if (pending) vectors::less_and_add(rest, y[i], u + 1, row, v[i], w);
      else vectors::add_multiple(rest, v[i], row, w);
    }
    for (index_t j = 0; j < rest; ++j) w[j] *= scale;
    for (index_t j = 0; j < rest; ++j) u[j] = corner[1 + j] - w[j]; // v[0] is 1
    auto const [gamma, sigma] = vectors::reflect(rest, u);
    e[k] = gamma;
    u[0] = 1;
    for (index_t i = 1; i < h; ++i) y[i - 1] = sigma * vectors::less_and_dot(rest, v[i], w, corner + i * n + 1, u);
  }
}
/// Solver for the singular values of a bidiagonal matrix, which replace its diagonal, unsorted: implicitly shifted QR
/// steps (Golub, Kahan, Reinsch).
class bidiagonal {
public:
  constexpr bidiagonal(index_t n, double* d, double* e) : d_(d), e_(e), n_(n) {}
  constexpr bool run() {
    int steps = 0;
    while (n_ > 0) {
      index_t const first = start_of_last();
      if (first == n_ - 1) {
        d_[n_ - 1] = size_of(d_[n_ - 1]);
        --n_, steps = 0;
        continue;
      }
      if (++steps > 75) return false;
      index_t const zero = last_zero(first);
      if (zero == n_ - 1) clear_column(first);
      else if (zero >= first) clear_row(zero);
      else step(first);
    }
    return true;
  }

private:
  /// Threshold for 0 in a matrix whose greatest element is 1. Squares of products of greater numbers do not underflow.
  static constexpr double tiny = 1e-60;
  /// Returns the beginning of the last block that is not decoupled.
  constexpr index_t start_of_last() {
    for (index_t k = n_ - 1; k > 0; --k)
      if (size_of(e_[k - 1]) <= tiny + eps * (size_of(d_[k - 1]) + size_of(d_[k]))) {
        e_[k - 1] = 0;
        return k;
      }
    return 0;
  }
  /// Returns the index of the last diagonal element that is negligible compared with its neighbours, or -1.
  constexpr index_t last_zero(index_t first) {
    for (index_t k = n_ - 1; k >= first; --k) {
      double const beside = (k + 1 < n_ ? size_of(e_[k]) : 0) + (k > first ? size_of(e_[k - 1]) : 0);
      if (size_of(d_[k]) > tiny + eps * beside) continue;
      d_[k] = 0;
      return k;
    }
    return -1;
  }
  /// Sets the column above the last diagonal element, which is 0, to 0.
  constexpr void clear_column(index_t first) {
    double f = e_[n_ - 2];
    e_[n_ - 2] = 0;
    for (index_t j = n_ - 2; j >= first; --j) {
      double const t = length(d_[j], f);
      if (t == 0) break;
      double const c = d_[j] / t, s = f / t;
      d_[j] = t;
      if (j > first) f = -s * e_[j - 1], e_[j - 1] *= c;
    }
  }
  /// Sets the row to the right of a diagonal element that is 0 to 0.
  constexpr void clear_row(index_t zero) {
    double f = e_[zero];
    e_[zero] = 0;
    for (index_t j = zero + 1; j < n_; ++j) {
      double const t = length(d_[j], f);
      if (t == 0) break;
      double const c = d_[j] / t, s = f / t;
      d_[j] = t;
      if (j + 1 < n_) f = -s * e_[j], e_[j] *= c;
    }
  }
  constexpr void step(index_t first) {
    double const p = d_[n_ - 1], q = d_[n_ - 2], r = e_[n_ - 2], b = ((q + p) * (q - p) + r * r) / 2, c2 = p * r;
    double shift = 0;
    if (b != 0 || c2 != 0) {
      double const root = length(b, c2);
      shift = c2 * c2 / (b + (b < 0 ? -root : root));
    }
    double f = (d_[first] + p) * (d_[first] - p) + shift, g = d_[first] * e_[first];
    for (index_t j = first; j + 1 < n_; ++j) {
      double t = length(f, g), c = t != 0 ? f / t : 1, s = t != 0 ? g / t : 0;
      if (j > first) e_[j - 1] = t;
      f = c * d_[j] + s * e_[j];
      e_[j] = c * e_[j] - s * d_[j];
      g = s * d_[j + 1];
      d_[j + 1] *= c;
      t = length(f, g), c = t != 0 ? f / t : 1, s = t != 0 ? g / t : 0;
      d_[j] = t;
      f = c * e_[j] + s * d_[j + 1];
      d_[j + 1] = c * d_[j + 1] - s * e_[j];
      if (j + 2 < n_) g = s * e_[j + 1], e_[j + 1] *= c;
    }
    e_[n_ - 2] = f;
  }
  double *d_, *e_;
  index_t n_;
};
/// Computes the singular values, in descending order, of a matrix with at least as many rows as columns. The matrix is
/// destroyed. All results are NaN if an element is not finite.
constexpr void singular(index_t m, index_t n, double* a, double* values) {
  double const largest = scaled(m * n, a);
  list<double> e(static_cast<std::size_t>(n), 0.0);
  bool good = largest == largest;
  if (good) {
    make_bidiagonal(m, n, a, values, e.data());
    good = bidiagonal(n, values, e.data()).run();
  }
  for (index_t i = 0; i < n; ++i) values[i] = good ? values[i] * largest : nan;
  if (good) std::sort(values, values + n, [](double x, double y) { return x > y; });
}

} // namespace varve::kernel::spectra
