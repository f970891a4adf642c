// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/kernel/vectors.hpp>

#include <utility>

/// @file
/// Factorizations of larger matrices of doubles, row by row in memory, at run time: a few columns at a time are
/// factored as rows of a copy, and what is beside them is changed by products of matrices. O(n^3), nearly all of it in
/// these products.
namespace varve::kernel::blocked {

/// Columns that are factored at a time; from twice as many on blocks pay.
inline constexpr index_t width = 24, least = 2 * width;

namespace detail {
/// The columns of a block as rows.
inline void take(double const* a, index_t step, index_t h, index_t w, double* p) {
  for (index_t i = 0; i < h; ++i)
    for (index_t j = 0; j < w; ++j) p[j * h + i] = a[i * step + j];
}
inline void put(double* a, index_t step, index_t h, index_t w, double const* p) {
  for (index_t i = 0; i < h; ++i)
    for (index_t j = 0; j < w; ++j) a[i * step + j] = p[j * h + i];
}
inline double size_of(double x) { return x < 0 ? -x : x; }
/// The first of the elements with the greatest absolute value from `j` on; NaN counts only where the first is NaN.
inline index_t greatest(double const* x, index_t j, index_t n) {
  double best = size_of(x[j]);
  index_t at = j;
  for (index_t i = j + 1; i < n; ++i)
    if (size_of(x[i]) > best) best = size_of(x[i]), at = i;
  return at;
}
/// The factors of a block; `skipped` says which pivots are 0. Gives the number of the first of these, or 0.
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
/// t of 1 - v t v^T, the product of reflectors that are the rows of `v` [w, h].
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
/// c -= v t v^T c, or v t^T v^T c; `some` has room for 2 w n numbers.
inline void apply_reflectors(index_t h, index_t w, double const* v, double const* t, bool transposed, index_t n,
                             double* c, index_t step, double* some) {
  double* const less = some + w * n;
  kernel::matmul<double>(w, n, h, {v, h, 1}, {c, step, 1}, {some, n, 1});
  kernel::matmul<double>(w, n, w, {t, transposed ? 1 : w, transposed ? w : 1}, {some, n, 1}, {less, n, 1});
  for (index_t i = 0; i < w * n; ++i) less[i] = -less[i];
  kernel::matmul<double>(h, n, w, {v, 1, h}, {less, n, 1}, {c, step, 1}, true);
}
/// Reflectors in the columns of a block as rows with ones and zeros.
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

/// As `matrices::lu`.
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

/// As `matrices::cholesky`.
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
    for (index_t i = w; i < h; i += high) { // the lower triangle, and a little more
      index_t const rows = detail::less_of(high, h - i);
      kernel::matmul<double>(rows, i + rows - w, w, {less + i, 1, h}, {p + w, h, 1}, {corner + i * n + w, n, 1}, true);
    }
  }
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
  return 0;
}

/// As `matrices::solve_triangle`, for a triangle without zeros on its diagonal.
template <class = void>
VARVE_NOINLINE void solve_triangle(index_t n, double const* t, index_t columns, double* b, bool upper, bool unit) {
  list<double> memory = detail::room(n * columns); // what is solved, times -1
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

/// As `matrices::householder`.
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
/// As `matrices::product_of_reflectors`, of reflectors in `a` of `step` columns.
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
