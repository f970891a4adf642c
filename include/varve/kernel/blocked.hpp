// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/kernel/vectors.hpp>

#include <utility>

/// @file
/// Blocked run-time factorizations of larger row-major matrices of doubles. A few columns at a time are copied as rows
/// and factored there. Matrix products then update the remaining columns; they take nearly all of the O(n^3) time.
namespace varve::kernel::blocked {

/// Number of columns that are factored at a time, and the least size of a matrix for which blocks pay.
inline constexpr index_t width = 24, least = 2 * width;

namespace detail {
/// Copies the columns of a block to rows.
inline void take(double const* a, index_t step, index_t h, index_t w, double* p) {
  for (index_t i = 0; i < h; ++i)
    for (index_t j = 0; j < w; ++j) p[j * h + i] = a[i * step + j];
}
inline void put(double* a, index_t step, index_t h, index_t w, double const* p) {
  for (index_t i = 0; i < h; ++i)
    for (index_t j = 0; j < w; ++j) a[i * step + j] = p[j * h + i];
}
inline double size_of(double x) { return x < 0 ? -x : x; }
/// Returns the index of the first element with the greatest absolute value from `j` on. NaN counts only if it is the
/// first element.
inline index_t greatest(double const* x, index_t j, index_t n) {
  double best = size_of(x[j]);
  index_t at = j;
  for (index_t i = j + 1; i < n; ++i)
    if (size_of(x[i]) > best) best = size_of(x[i]), at = i;
  return at;
}
/// Computes the LU factors of a block. `skipped` records which pivots are 0. Returns the number (from 1) of the first
/// such pivot, or 0.
inline index_t lu_of_block(index_t h, index_t w, double* p, index_t* pivots, bool* skipped) {
  index_t info = 0;
  for (index_t j = 0; j < w; ++j) {
    double* const column = p + j * h;
    skipped[j] = false;
    if (pivots) {
      index_t const best = detail::greatest(column, j, h);
      pivots[j] = best;
      for (index_t c = 0; best != j && c < w; ++c) std::swap(p[c * h + j], p[c * h + best]);
    }
    if (column[j] == 0) {
      skipped[j] = true;
      if (info == 0) info = j + 1;
      continue;
    }
    vectors::divide(h - j - 1, column + j + 1, column[j]);
    for (index_t c = j + 1; c < w; ++c)
      vectors::add_multiple(h - j - 1, -p[c * h + j], column + j + 1, p + c * h + j + 1);
  }
  return info;
}
/// Computes t such that the product of the reflectors, the rows of `v` [w, h], is 1 - v t v^T.
inline void join_reflectors(index_t h, index_t w, double const* v, double const* tau, double* t) {
  double gram[width * width];
  kernel::matmul<double>(w, w, h, {v, h, 1}, {v, 1, h}, {gram, w, 1});
  for (index_t j = 0; j < w; ++j) {
    for (index_t i = 0; i < w; ++i) t[i * w + j] = 0;
    t[j * w + j] = tau[j];
    for (index_t i = 0; i < j; ++i) {
      double s = 0;
      for (index_t k = i; k < j; ++k) s += t[i * w + k] * gram[k * w + j];
      t[i * w + j] = -tau[j] * s;
    }
  }
}
/// Computes c -= v t v^T c, or c -= v t^T v^T c if `transposed`. `some` is scratch memory for 2 w n numbers.
inline void apply_reflectors(index_t h, index_t w, double const* v, double const* t, bool transposed, index_t n,
                             double* c, index_t step, double* some) {
  double* const less = some + w * n;
  kernel::matmul<double>(w, n, h, {v, h, 1}, {c, step, 1}, {some, n, 1});
  kernel::matmul<double>(w, n, w, {t, transposed ? 1 : w, transposed ? w : 1}, {some, n, 1}, {less, n, 1});
  for (index_t i = 0; i < w * n; ++i) less[i] = -less[i];
  kernel::matmul<double>(h, n, w, {v, 1, h}, {less, n, 1}, {c, step, 1}, true);
}
/// Copies the reflectors in the columns of a block to rows, with their implicit ones and zeros.
inline void take_reflectors(double const* a, index_t step, index_t h, index_t w, double* v) {
  detail::take(a, step, h, w, v);
  for (index_t j = 0; j < w; ++j) {
    for (index_t i = 0; i < j; ++i) v[j * h + i] = 0;
    v[j * h + j] = 1;
  }
}
inline list<double> room(index_t n) { return list<double>(static_cast<std::size_t>(n), 0.0); }
inline index_t less_of(index_t a, index_t b) { return a < b ? a : b; }
} // namespace detail

/// Computes what `matrices::lu` does.
template <class = void>
VARVE_NOINLINE index_t lu(index_t m, index_t n, double* a, index_t* pivots) {
  index_t const all = detail::less_of(m, n);
  list<double> memory = detail::room(m * width);
  double* const p = memory.data();
  index_t info = 0;
  for (index_t j = 0; j < all; j += width) {
    index_t const w = detail::less_of(width, all - j), h = m - j, rest = n - j - w;
    double* const corner = a + j * n + j;
    bool skipped[width];
    detail::take(corner, n, h, w, p);
    index_t const zero = detail::lu_of_block(h, w, p, pivots ? pivots + j : nullptr, skipped);
    if (info == 0 && zero != 0) info = j + zero;
    for (index_t k = j; pivots && k < j + w; ++k) {
      pivots[k] += j;
      for (index_t c = 0; pivots[k] != k && c < n; ++c) std::swap(a[k * n + c], a[pivots[k] * n + c]);
    }
    detail::put(corner, n, h, w, p);
    for (index_t k = 0; k < w; ++k) // a column without a pivot changes nothing
      for (index_t i = k + 1; skipped[k] && i < h; ++i) p[k * h + i] = 0;
    for (index_t i = 1; i < w; ++i)
      for (index_t k = 0; k < i; ++k)
        vectors::add_multiple(rest, -p[k * h + i], corner + k * n + w, corner + i * n + w);
    for (index_t k = 0; k < w; ++k)
      for (index_t i = w; i < h; ++i) p[k * h + i] = -p[k * h + i];
    kernel::matmul<double>(h - w, rest, w, {p + w, 1, h}, {corner + w, n, 1}, {corner + w * n + w, n, 1}, true);
  }
  return info;
}

/// Computes what `matrices::cholesky` does.
template <class = void>
VARVE_NOINLINE index_t cholesky(index_t n, double* a) {
  constexpr index_t high = 2 * width;
  list<double> memory = detail::room(2 * n * width);
  double *const p = memory.data(), *const less = p + n * width;
  for (index_t j = 0; j < n; j += width) {
    index_t const w = detail::less_of(width, n - j), h = n - j;
    double* const corner = a + j * n + j;
    detail::take(corner, n, h, w, p);
    for (index_t k = 0; k < w; ++k) {
      double* const column = p + k * h;
      if (!(column[k] > 0)) return j + k + 1;
      column[k] = kernel::sqrt(column[k]);
      vectors::divide(h - k - 1, column + k + 1, column[k]);
      for (index_t c = k + 1; c < w; ++c) vectors::add_multiple(h - c, -column[c], column + c, p + c * h + c);
    }
    detail::put(corner, n, h, w, p);
    for (index_t i = 0; i < w * h; ++i) less[i] = -p[i];
    for (index_t i = w; i < h; i += high) { // the lower triangle, rounded up to blocks
      index_t const rows = detail::less_of(high, h - i);
      kernel::matmul<double>(rows, i + rows - w, w, {less + i, 1, h}, {p + w, h, 1}, {corner + i * n + w, n, 1}, true);
    }
  }
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
  return 0;
}

/// Computes what `matrices::solve_triangle` does, for a triangle without zeros on its diagonal.
template <class = void>
VARVE_NOINLINE void solve_triangle(index_t n, double const* t, index_t columns, double* b, bool upper, bool unit) {
  list<double> memory = detail::room(n * columns); // solved rows, times -1
  double* const less = memory.data();
  for (index_t done = 0; done < n; done += width) {
    index_t const w = detail::less_of(width, n - done), first = upper ? n - done - w : done;
    index_t const from = upper ? first + w : 0;
    kernel::matmul<double>(w, columns, done, {t + first * n + from, n, 1}, {less + from * columns, columns, 1},
                           {b + first * columns, columns, 1}, true);
    for (index_t r = 0; r < w; ++r) {
      index_t const i = upper ? first + w - 1 - r : first + r;
      double* const row = b + i * columns;
      for (index_t q = 0; q < r; ++q) {
        index_t const k = upper ? first + w - 1 - q : first + q;
        vectors::add_multiple(columns, t[i * n + k], less + k * columns, row);
      }
      if (!unit) vectors::divide(columns, row, t[i * n + i]);
      for (index_t c = 0; c < columns; ++c) less[i * columns + c] = -row[c];
    }
  }
}

/// Computes what `matrices::householder` does.
template <class = void>
VARVE_NOINLINE void householder(index_t m, index_t n, double* a, double* tau) {
  index_t const all = detail::less_of(m, n);
  list<double> memory = detail::room(width * (m + 2 * n));
  double *const p = memory.data(), *const some = p + width * m;
  double t[width * width];
  for (index_t j = 0; j < all; j += width) {
    index_t const w = detail::less_of(width, all - j), h = m - j, rest = n - j - w;
    double* const corner = a + j * n + j;
    detail::take(corner, n, h, w, p);
    for (index_t k = 0; k < w; ++k) {
      double* const column = p + k * h + k;
      auto const [beta, scale] = vectors::reflect(h - k, column);
      tau[j + k] = scale;
      for (index_t c = k + 1; c < w; ++c) {
        double* const x = p + c * h + k;
        double const s = scale * (x[0] + vectors::dot(h - k - 1, column + 1, x + 1));
        x[0] -= s;
        vectors::add_multiple(h - k - 1, -s, column + 1, x + 1);
      }
      column[0] = beta;
    }
    detail::put(corner, n, h, w, p);
    if (rest == 0) continue;
    detail::take_reflectors(corner, n, h, w, p);
    detail::join_reflectors(h, w, p, tau + j, t);
    detail::apply_reflectors(h, w, p, t, true, rest, corner + w, n, some);
  }
}
/// Computes what `matrices::product_of_reflectors` does, for reflectors in `a` with `step` columns.
template <class = void>
VARVE_NOINLINE void product_of_reflectors(index_t m, double const* a, index_t step, double const* tau, index_t count,
                                          index_t columns, double* q) {
  list<double> memory = detail::room(width * (m + 2 * columns));
  double *const v = memory.data(), *const some = v + width * m;
  double t[width * width];
  for (index_t i = 0; i < m; ++i)
    for (index_t c = 0; c < columns; ++c) q[i * columns + c] = i == c;
  for (index_t j = (count - 1) / width * width; j >= 0; j -= width) {
    index_t const w = detail::less_of(width, count - j), h = m - j;
    if (j >= columns) continue;
    detail::take_reflectors(a + j * step + j, step, h, w, v);
    detail::join_reflectors(h, w, v, tau + j, t);
    detail::apply_reflectors(h, w, v, t, false, columns - j, q + j * columns + j, columns, some);
  }
}

} // namespace varve::kernel::blocked
