// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/kernel/blocked.hpp>
#include <varve/kernel/math.hpp>
#include <varve/kernel/spectra.hpp>

#include <limits>

/// @file
/// Factorizations of row-major matrices of doubles in a buffer, usable in constant expressions. They take O(n^3) time.
/// Small matrices and constant expressions use the plain algorithms, larger matrices blocks (`blocked.hpp`).
namespace varve::kernel::matrices {

/// A matrix in a buffer that it does not own.
struct view {
  double* data;
  index_t rows, columns;
  constexpr double& operator()(index_t i, index_t j) const { return data[i * columns + j]; }
};
/// A matrix that owns its memory.
struct matrix {
  list<double> memory;
  index_t rows, columns;
  constexpr matrix(index_t m, index_t n) : memory(static_cast<std::size_t>(m * n), 0.0), rows(m), columns(n) {}
  constexpr operator view() { return {memory.data(), rows, columns}; }
  constexpr double& operator()(index_t i, index_t j) { return memory.data()[i * columns + j]; }
};
constexpr double size_of(double x) { return x < 0 ? -x : x; }
constexpr void swap_rows(view a, index_t i, index_t j) {
  if (i == j) return;
  for (index_t k = 0; k < a.columns; ++k) std::swap(a(i, k), a(j, k));
}

/// Returns whether a matrix of given sizes is factored by blocks.
constexpr bool by_blocks(index_t m, index_t n) {
  return !std::is_constant_evaluated() && m >= blocked::least && n >= blocked::least;
}

// ---- Cholesky
/// Replaces a symmetric matrix, of which the lower triangle is read, by its lower Cholesky factor; elements above the
/// diagonal become 0. Returns the order of the first leading minor that is not positive, or 0.
constexpr index_t cholesky(view a) {
  index_t const n = a.rows;
  if (by_blocks(n, n)) return blocked::cholesky(n, a.data);
  for (index_t j = 0; j < n; ++j) {
    double d = a(j, j);
    for (index_t k = 0; k < j; ++k) d -= a(j, k) * a(j, k);
    if (!(d > 0)) return j + 1;
    d = kernel::sqrt(d);
    a(j, j) = d;
    for (index_t i = j + 1; i < n; ++i) {
      double s = a(i, j);
      for (index_t k = 0; k < j; ++k) s -= a(i, k) * a(j, k);
      a(i, j) = s / d;
    }
    for (index_t k = j + 1; k < n; ++k) a(j, k) = 0;
  }
  return 0;
}

// ---- Triangular systems
/// Solves T x = b for the columns of b, in place. Only one triangle of T is read, and not its diagonal if `unit`.
constexpr void solve_triangle(view t, view b, bool upper, bool unit) {
  index_t const n = t.rows;
  bool zeros = false; // the plain algorithm divides by these, and does not multiply the infinities by 0
  for (index_t i = 0; !unit && i < n; ++i) zeros = zeros || t(i, i) == 0;
  if (!zeros && by_blocks(n, n)) return blocked::solve_triangle(n, t.data, b.columns, b.data, upper, unit);
  for (index_t r = 0; r < n; ++r) {
    index_t const i = upper ? n - 1 - r : r;
    for (index_t k = upper ? i + 1 : 0, stop = upper ? n : i; k < stop; ++k)
      if (double const f = t(i, k); f != 0)
        for (index_t c = 0; c < b.columns; ++c) b(i, c) -= f * b(k, c);
    if (!unit)
      for (index_t c = 0; c < b.columns; ++c) b(i, c) /= t(i, i);
  }
}

// ---- LU
/// Replaces a matrix by both LU factors. Unless `pivots` is null, rows are exchanged such that the greatest elements
/// divide (partial pivoting), and `pivots` receives the row with which each was exchanged. Returns the number of the
/// first zero pivot, counted from 1, or 0.
constexpr index_t lu(view a, index_t* pivots) {
  index_t const m = a.rows, n = a.columns, k = m < n ? m : n;
  if (by_blocks(m, n)) return blocked::lu(m, n, a.data, pivots);
  index_t info = 0;
  for (index_t j = 0; j < k; ++j) {
    index_t best = j;
    if (pivots) {
      for (index_t i = j + 1; i < m; ++i)
        if (size_of(a(i, j)) > size_of(a(best, j))) best = i;
      pivots[j] = best;
      swap_rows(a, j, best);
    }
    if (a(j, j) == 0) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (index_t i = j + 1; i < m; ++i) {
      double const f = a(i, j) /= a(j, j);
      if (f != 0)
        for (index_t c = j + 1; c < n; ++c) a(i, c) -= f * a(j, c);
    }
  }
  return info;
}
/// Solves A x = b in place of b and replaces A by its LU factors. Returns the result of `lu`.
constexpr index_t solve(view a, view b) {
  list<index_t> pivots(static_cast<std::size_t>(a.rows), 0);
  index_t const info = lu(a, pivots.data());
  for (index_t i = 0; i < a.rows; ++i) swap_rows(b, i, pivots[i]);
  solve_triangle(a, b, false, true);
  solve_triangle(a, b, true, false);
  return info;
}

// ---- QR
/// Replaces a matrix by its Householder reflectors below the diagonal and R on and above it. `tau` receives the scales
/// of the reflectors (LAPACK's format).
constexpr void householder(view a, double* tau) {
  index_t const m = a.rows, n = a.columns, k = m < n ? m : n;
  if (by_blocks(m, n)) return blocked::householder(m, n, a.data, tau);
  for (index_t j = 0; j < k; ++j) {
    double scale = 0;
    for (index_t i = j + 1; i < m; ++i) scale = size_of(a(i, j)) > scale ? size_of(a(i, j)) : scale;
    tau[j] = 0;
    if (scale == 0) continue; // nothing to reflect
    scale = size_of(a(j, j)) > scale ? size_of(a(j, j)) : scale;
    double sum = 0;
    for (index_t i = j; i < m; ++i) sum += (a(i, j) / scale) * (a(i, j) / scale);
    double const alpha = a(j, j) / scale, beta = (alpha < 0 ? 1 : -1) * kernel::sqrt(sum);
    tau[j] = (beta - alpha) / beta; // computed from ratios, since numbers close to 0 have few bits
    for (index_t i = j + 1; i < m; ++i) a(i, j) = a(i, j) / scale / (alpha - beta);
    a(j, j) = beta * scale;
    for (index_t c = j + 1; c < n; ++c) {
      double s = a(j, c);
      for (index_t i = j + 1; i < m; ++i) s += a(i, j) * a(i, c);
      s *= tau[j];
      a(j, c) -= s;
      for (index_t i = j + 1; i < m; ++i) a(i, c) -= s * a(i, j);
    }
  }
}
/// Computes the first columns, as many as q has, of the product of reflectors.
constexpr void product_of_reflectors(view a, double const* tau, index_t count, view q) {
  index_t const m = a.rows;
  if (by_blocks(m, count)) return blocked::product_of_reflectors(m, a.data, a.columns, tau, count, q.columns, q.data);
  for (index_t i = 0; i < m; ++i)
    for (index_t c = 0; c < q.columns; ++c) q(i, c) = i == c;
  for (index_t j = count - 1; j >= 0; --j)
    for (index_t c = 0; c < q.columns; ++c) {
      double s = q(j, c);
      for (index_t i = j + 1; i < m; ++i) s += a(i, j) * q(i, c);
      s *= tau[j];
      q(j, c) -= s;
      for (index_t i = j + 1; i < m; ++i) q(i, c) -= s * a(i, j);
    }
}

// ---- Symmetric eigenvalues
/// Computes the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as the columns of v. The
/// matrix is destroyed.
constexpr void symmetric_eigen(view a, double* values, view v) {
  index_t const n = a.rows;
  matrix z(n, n);
  spectra::symmetric(n, a.data, values, z.memory.data());
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) v(i, j) = z(j, i);
}
/// Computes the eigenvalues of a symmetric matrix in ascending order, without eigenvectors. The matrix is destroyed.
constexpr void symmetric_eigenvalues(view a, double* values) { spectra::symmetric(a.rows, a.data, values, nullptr); }

// ---- Singular values
/// Replaces column `j` by a unit vector orthogonal to the columns before it: the component, orthogonal to these, of the
/// basis vector that they represent least. O(rows * j).
constexpr void complete_column(view u, index_t j) {
  index_t best = 0;
  double most = -1;
  for (index_t i = 0; i < u.rows; ++i) {
    double left = 1;
    for (index_t k = 0; k < j; ++k) left -= u(i, k) * u(i, k);
    if (left > most) best = i, most = left;
  }
  for (index_t i = 0; i < u.rows; ++i) u(i, j) = i == best;
  list<double> along(static_cast<std::size_t>(j), 0.0);
  for (int twice = 0; twice < 2; ++twice) {
    for (index_t k = 0; k < j; ++k) along[k] = 0;
    for (index_t i = 0; i < u.rows; ++i)
      for (index_t k = 0; k < j; ++k) along[k] += u(i, k) * u(i, j);
    for (index_t i = 0; i < u.rows; ++i)
      for (index_t k = 0; k < j; ++k) u(i, j) -= along[k] * u(i, k);
  }
  double s = 0;
  for (index_t i = 0; i < u.rows; ++i) s += u(i, j) * u(i, j);
  s = kernel::sqrt(s);
  for (index_t i = 0; i < u.rows; ++i) u(i, j) /= s;
}
/// Factors a = u diag(s) v^T for an a with at least as many rows as columns; a becomes u, and s descends. Jacobi
/// rotations make the columns orthogonal. (Columns are stored as rows, so that they are contiguous.) A column that
/// depends linearly on others may become so small that its square is meaningless; it then counts as 0.
constexpr void singular(view a, double* s, view v) {
  index_t const m = a.rows, n = a.columns;
  matrix x(n, m), y(n, n);
  auto const column = [&](index_t j) { return x.memory.data() + j * m; };
  double largest = 0; // a scale, so that no square overflows
  for (index_t i = 0; i < m * n; ++i) largest = size_of(a.data[i]) > largest ? size_of(a.data[i]) : largest;
  double const scale = largest > 0 && largest < std::numeric_limits<double>::infinity() ? largest : 1;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) x(j, i) = a(i, j) / scale;
  for (index_t j = 0; j < n; ++j) y(j, j) = 1;
  constexpr double nothing = 1e-130;
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (index_t p = 0; p < n; ++p)
      for (index_t q = p + 1; q < n; ++q) {
        double const c = vectors::dot(m, column(p), column(p)), d = vectors::dot(m, column(q), column(q)),
                     z = vectors::dot(m, column(p), column(q));
        if (!(size_of(z) > 1e-15 * kernel::sqrt(c * d)) || (c < d ? c : d) < nothing * nothing) continue;
        rotated = true;
        double const theta = (d - c) / (2 * z);
        double const t = (theta < 0 ? -1 : 1) / (size_of(theta) + kernel::sqrt(theta * theta + 1));
        double const cosine = 1 / kernel::sqrt(t * t + 1);
        vectors::rotate(m, cosine, t * cosine, column(p), column(q));
        vectors::rotate(n, cosine, t * cosine, &y(p, 0), &y(q, 0));
      }
    if (!rotated) break;
  }
  for (index_t j = 0; j < n; ++j) s[j] = kernel::sqrt(vectors::dot(m, column(j), column(j)));
  for (index_t j = 0; j < n; ++j) {
    index_t most = j;
    for (index_t k = j + 1; k < n; ++k)
      if (s[k] > s[most]) most = k;
    if (most == j) continue;
    std::swap(s[j], s[most]);
    swap_rows(x, j, most), swap_rows(y, j, most);
  }
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < m; ++i) a(i, j) = x(j, i);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) v(i, j) = y(j, i);
  for (index_t j = 0; j < n; ++j) {
    if (s[j] > nothing)
      for (index_t k = 0; k < m; ++k) a(k, j) /= s[j];
    else complete_column(a, j);
    s[j] *= scale;
  }
}
/// Computes the singular values of any matrix in descending order. The matrix is destroyed.
constexpr void singular_values(view a, double* s) {
  if (a.rows >= a.columns) return spectra::singular(a.rows, a.columns, a.data, s);
  matrix turned(a.columns, a.rows);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.columns; ++j) turned(j, i) = a(i, j);
  spectra::singular(a.columns, a.rows, turned.memory.data(), s);
}
/// Factors a matrix of any shape [m, n] as u diag(s) v^T: u is [m, k] and v is [n, k], with k the smaller of m and n.
constexpr void singular_of(view a, view u, double* s, view v) {
  index_t const m = a.rows, n = a.columns;
  if (m >= n) {
    for (index_t i = 0; i < m * n; ++i) u.data[i] = a.data[i];
    return singular(u, s, v);
  }
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) v(j, i) = a(i, j);
  singular(v, s, u);
}
/// Computes the pseudoinverse [n, m] of a. Singular values up to the limit count as 0; the limit is the greater of
/// `absolute` and `relative` times the greatest singular value.
constexpr void pseudoinverse(view a, double absolute, double relative, view to) {
  index_t const m = a.rows, n = a.columns, k = m < n ? m : n;
  matrix u(m, k), v(n, k);
  list<double> s(static_cast<std::size_t>(k), 0.0);
  singular_of(a, u, s.data(), v);
  double const part = k > 0 ? relative * s[0] : 0, limit = part > absolute ? part : absolute;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < m; ++j) {
      double sum = 0;
      for (index_t l = 0; l < k; ++l)
        if (s[l] > limit) sum += v(i, l) * u(j, l) / s[l];
      to(i, j) = sum;
    }
}
constexpr double determinant(view a) {
  list<index_t> pivots(static_cast<std::size_t>(a.rows), 0);
  lu(a, pivots.data());
  double r = 1;
  for (index_t i = 0; i < a.rows; ++i) r *= pivots[i] != i ? -a(i, i) : a(i, i);
  return r;
}
/// Computes the matrix of cofactors, which is the derivative of the determinant, also for singular matrices. For a = u
/// diag(s) v^T it is det(u) det(v) u diag(products of the other s) v^T.
constexpr void cofactors(view a, view to) {
  index_t const n = a.rows;
  matrix u(n, n), v(n, n), copy(n, n);
  list<double> s(static_cast<std::size_t>(n), 0.0);
  singular_of(a, u, s.data(), v);
  for (index_t i = 0; i < n * n; ++i) view(copy).data[i] = view(u).data[i];
  double sign = determinant(copy) < 0 ? -1 : 1;
  for (index_t i = 0; i < n * n; ++i) view(copy).data[i] = view(v).data[i];
  sign *= determinant(copy) < 0 ? -1 : 1;
  for (index_t i = 0; i < n * n; ++i) to.data[i] = 0;
  for (index_t l = 0; l < n; ++l) {
    double others = sign;
    for (index_t k = 0; k < n; ++k)
      if (k != l) others *= s[k];
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) to(i, j) += u(i, l) * others * v(j, l);
  }
}

// ---- Exponential
constexpr void multiply(view a, view b, view to) {
  if (!std::is_constant_evaluated())
    return kernel::matmul<double>(a.rows, b.columns, a.columns, {a.data, a.columns, 1}, {b.data, b.columns, 1},
                                  {to.data, to.columns, 1});
  for (index_t i = 0; i < to.rows * to.columns; ++i) to.data[i] = 0;
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t k = 0; k < a.columns; ++k)
      if (double const f = a(i, k); f != 0)
        for (index_t j = 0; j < b.columns; ++j) to(i, j) += f * b(k, j);
}
/// Replaces a by e^a: Taylor's series of a / 2^k, squared k times.
constexpr void exponential_of(view a) {
  index_t const n = a.rows;
  double norm = 0;
  for (index_t i = 0; i < n; ++i) {
    double row = 0;
    for (index_t j = 0; j < n; ++j) row += size_of(a(i, j));
    norm = row > norm ? row : norm;
  }
  int squarings = 0;
  for (; norm > 0.5 && squarings < 1100; norm /= 2) ++squarings;
  for (int k = 0; k < squarings; ++k)
    for (index_t i = 0; i < n * n; ++i) a.data[i] /= 2;
  matrix sum(n, n), next(n, n);
  for (index_t i = 0; i < n; ++i) sum(i, i) = 1;
  for (int k = 18; k > 0; --k) { // 1 + a/k (1 + a/(k + 1) (...))
    multiply(a, sum, next);
    for (index_t i = 0; i < n * n; ++i) view(sum).data[i] = view(next).data[i] / k;
    for (index_t i = 0; i < n; ++i) sum(i, i) += 1;
  }
  for (int k = 0; k < squarings; ++k) {
    multiply(sum, sum, next);
    std::swap(sum.memory, next.memory);
  }
  for (index_t i = 0; i < n * n; ++i) a.data[i] = view(sum).data[i];
}

// ---- L D L^T
/// Replaces a symmetric matrix, of which the lower triangle is read, by its Bunch-Kaufman factors (LAPACK's format). A
/// pivot is the row, counted from 1, that was exchanged. Two equal negative pivots denote a 2 x 2 block.
constexpr void ldl(view a, double* pivots) {
  index_t const n = a.rows;
  double const alpha = (1 + kernel::sqrt(17.0)) / 8;
  auto const greatest = [&](index_t column, index_t from, index_t to, index_t& at) {
    double best = 0;
    for (index_t i = from; i < to; ++i)
      if (size_of(a(i, column)) > best) best = size_of(a(i, column)), at = i;
    return best;
  };
  for (index_t k = 0; k < n;) {
    index_t step = 1, p = k, at = k;
    double const own = size_of(a(k, k)), col = greatest(k, k + 1, n, at);
    if (own < alpha * col) {
      double row = 0;
      for (index_t j = k; j < at; ++j) row = size_of(a(at, j)) > row ? size_of(a(at, j)) : row;
      index_t whatever = 0;
      double const below = greatest(at, at + 1, n, whatever);
      row = below > row ? below : row;
      if (own >= alpha * col * (col / row)) p = k;
      else if (size_of(a(at, at)) >= alpha * row) p = at;
      else p = at, step = 2;
    }
    index_t const q = k + step - 1; // row and column exchanged with p
    if (p != q) {
      for (index_t i = p + 1; i < n; ++i) std::swap(a(i, q), a(i, p));
      for (index_t j = q + 1; j < p; ++j) std::swap(a(j, q), a(p, j));
      std::swap(a(q, q), a(p, p));
      if (step == 2) std::swap(a(k + 1, k), a(p, k));
    }
    if (step == 1) {
      if (a(k, k) != 0) {
        for (index_t j = k + 1; j < n; ++j) {
          double const f = a(j, k) / a(k, k);
          for (index_t i = j; i < n; ++i) a(i, j) -= a(i, k) * f;
        }
        for (index_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
      }
      pivots[k] = static_cast<double>(p + 1);
    } else {
      double const d21 = a(k + 1, k), d11 = a(k + 1, k + 1) / d21, d22 = a(k, k) / d21, t = 1 / (d11 * d22 - 1) / d21;
      for (index_t j = k + 2; j < n; ++j) {
        double const w = t * (d11 * a(j, k) - a(j, k + 1)), z = t * (d22 * a(j, k + 1) - a(j, k));
        for (index_t i = j; i < n; ++i) a(i, j) -= a(i, k) * w + a(i, k + 1) * z;
        a(j, k) = w, a(j, k + 1) = z;
      }
      pivots[k] = pivots[k + 1] = -static_cast<double>(p + 1);
    }
    k += step;
  }
}
/// Solves a system in place of b by the factors of `ldl`.
constexpr void solve_ldl(view a, double const* pivots, view b) {
  index_t const n = a.rows;
  // subtracts multiples of row `column` from the rows from `from` on
  auto const take = [&](index_t from, index_t column) {
    for (index_t i = from; i < n; ++i)
      for (index_t c = 0; c < b.columns; ++c) b(i, c) -= a(i, column) * b(column, c);
  };
  for (index_t k = 0; k < n;) {
    auto const p = static_cast<index_t>(size_of(pivots[k])) - 1;
    if (pivots[k] > 0) {
      swap_rows(b, k, p);
      take(k + 1, k);
      for (index_t c = 0; c < b.columns; ++c) b(k, c) /= a(k, k);
      ++k;
    } else {
      swap_rows(b, k + 1, p);
      take(k + 2, k), take(k + 2, k + 1);
      double const off = a(k + 1, k), x = a(k, k) / off, y = a(k + 1, k + 1) / off, d = x * y - 1;
      for (index_t c = 0; c < b.columns; ++c) {
        double const u = b(k, c) / off, w = b(k + 1, c) / off;
        b(k, c) = (y * u - w) / d, b(k + 1, c) = (x * w - u) / d;
      }
      k += 2;
    }
  }
  for (index_t k = n - 1; k >= 0;) {
    bool const two = pivots[k] < 0;
    for (index_t r = k; r >= k - two; --r)
      for (index_t i = k + 1; i < n; ++i)
        for (index_t c = 0; c < b.columns; ++c) b(r, c) -= a(i, r) * b(i, c);
    swap_rows(b, k, static_cast<index_t>(size_of(pivots[k])) - 1);
    k -= 1 + two;
  }
}

} // namespace varve::kernel::matrices
