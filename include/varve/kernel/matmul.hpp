// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>
#include <varve/core/threads.hpp>
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/matmul_block.hpp>

#include <cstddef>
#include <cstdlib>
#include <type_traits>

/// @file
/// Matrix products of run-time sizes and any strides.
namespace varve::kernel {

/// A matrix operand: element (i, j) is data[i * row + j * col]. Exchanging the strides transposes it.
template <class T>
struct matrix {
  T* data;
  index_t row, col;
  matrix at(index_t i, index_t j) const
    requires(!std::is_void_v<T>)
  {
    return {data + i * row + j * col, row, col};
  }
  matrix transposed() const { return {data, col, row}; }
};

namespace detail {
/// Sizes of the inner dimension and of the rows of A that are processed at a time. A panel of B stays in the
/// first-level cache, a block of A in the second-level cache.
inline constexpr index_t inner_block = 256, outer_block = 240;
/// True if loads and stores of some lanes cost as much as those of whole registers.
#if defined(__AVX512F__)
inline constexpr bool has_masks = true;
#else
inline constexpr bool has_masks = false;
#endif

/// Computes blocks of `Rows` rows from row `i` on, as long as they fit. Returns the first remaining row.
template <class T, int Rows>
VARVE_NOINLINE index_t multiply_rows(index_t i, index_t m, index_t k, matrix<T const> a, T const* b, index_t b_row,
                                     matrix<T> c, index_t cols, bool accumulate) {
  for (; i + Rows <= m; i += Rows)
    detail::multiply_block<T, Rows, 2>(k, a.data + i * a.row, a.row, a.col, b, b_row, c.data + i * c.row, c.row, cols,
                                       accumulate);
  return i;
}
/// Computes blocks of rows of a packed A, in which the rows of a block are interleaved. Returns the first remaining
/// row.
template <class T>
VARVE_NOINLINE index_t multiply_packed_rows(index_t m, index_t k, T const* a, T const* b, index_t b_row, matrix<T> c,
                                            index_t cols, bool accumulate) {
  index_t i = 0;
  for (; i + block_rows <= m; i += block_rows)
    detail::multiply_block<T, block_rows, 2>(k, a + i * k, 1, block_rows, b, b_row, c.data + i * c.row, c.row, cols,
                                             accumulate);
  return i;
}
template <class T>
VARVE_NOINLINE void pack_rows(index_t m, index_t k, matrix<T const> a, T* to) {
  for (index_t i = 0; i + block_rows <= m; i += block_rows, to += block_rows * k)
    for (index_t p = 0; p < k; ++p)
      for (int r = 0; r < block_rows; ++r) to[p * block_rows + r] = a.data[(i + r) * a.row + p * a.col];
}
/// Packs a panel of B: its rows become contiguous, and missing columns are filled with 0.
template <class T>
VARVE_NOINLINE void pack_panel(index_t k, index_t cols, matrix<T const> b, T* to) {
  constexpr index_t W = block_cols<T>, L = lanes<T>;
  if (b.col == 1) {
    for (index_t p = 0; p < k; ++p)
      for (index_t j = 0; j < W; j += L) {
        T const* const from = b.data + p * b.row + j;
        kernel::store(to + p * W + j, cols - j >= L ? kernel::load(from)
                                      : cols > j    ? kernel::load_first(from, static_cast<std::size_t>(cols - j))
                                                    : batch<T>(T(0)));
      }
    return;
  }
  index_t p = 0;
  if (b.row == 1 && cols == W) // transposes squares in registers
    for (; p + L <= k; p += L)
      for (index_t j = 0; j < W; j += L) {
        batch<T> r[lanes<T>];
        for (index_t i = 0; i < L; ++i) r[i] = kernel::load(b.data + p + (j + i) * b.col);
        kernel::transpose<T>(r);
        for (index_t i = 0; i < L; ++i) kernel::store(to + (p + i) * W + j, r[i]);
      }
  for (index_t j = 0; j < W; ++j)
    for (index_t q = p; q < k; ++q) to[q * W + j] = j < cols ? b.data[q * b.row + j * b.col] : T(0);
}

/// Computes y[i] (+)= sum_p a[i, p] x[p].
template <class T>
VARVE_NOINLINE void multiply_vector(index_t m, index_t k, matrix<T const> a, T const* x, index_t x_step, T* y,
                                    index_t y_step, bool accumulate) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  index_t i = 0;
  if (a.row == 1 && y_step == 1) { // columns are contiguous: combine them
    constexpr index_t W = 4 * L;
    for (; i + W <= m; i += W) {
      V s[4] = {V(T(0)), V(T(0)), V(T(0)), V(T(0))};
      for (index_t p = 0; p < k; ++p)
        for (int j = 0; j < 4; ++j)
          s[j] = kernel::fma<T>(V(x[p * x_step]), kernel::load(a.data + i + j * L + p * a.col), s[j]);
      for (int j = 0; j < 4; ++j)
        kernel::store(y + i + j * L, accumulate ? V(kernel::load(y + i + j * L) + s[j]) : s[j]);
    }
    for (; i < m; i += L) {
      auto const n = static_cast<std::size_t>(m - i < L ? m - i : L);
      bool const whole = n == lanes<T>;
      V s(T(0));
      for (index_t p = 0; p < k; ++p) {
        T const* const from = a.data + i + p * a.col;
        s = kernel::fma<T>(V(x[p * x_step]), whole ? kernel::load(from) : kernel::load_first(from, n), s);
      }
      if (whole) kernel::store(y + i, accumulate ? V(kernel::load(y + i) + s) : s);
      else kernel::store_first(y + i, n, accumulate ? V(kernel::load_first(y + i, n) + s) : s);
    }
    return;
  }
  bool const rows = a.col == 1 && x_step == 1;
  for (; i < m; ++i) {
    T const* const p = a.data + i * a.row;
    V s(T(0)), t(T(0));
    index_t j = 0;
    if (rows) {
      for (; j + 2 * L <= k; j += 2 * L) {
        s = kernel::fma<T>(kernel::load(p + j), kernel::load(x + j), s);
        t = kernel::fma<T>(kernel::load(p + j + L), kernel::load(x + j + L), t);
      }
      for (; j + L <= k; j += L) s = kernel::fma<T>(kernel::load(p + j), kernel::load(x + j), s);
      if (j < k)
        t = kernel::fma<T>(kernel::load_first(p + j, static_cast<std::size_t>(k - j)),
                           kernel::load_first(x + j, static_cast<std::size_t>(k - j)), t),
        j = k;
    }
    T r = kernel::reduce_sum(V(s + t));
    for (; j < k; ++j) r += p[j * a.col] * x[j * x_step];
    y[i * y_step] = accumulate ? y[i * y_step] + r : r;
  }
}

/// Multiplies a matrix and a vector in threads that share y, in parts as wide as the columns that are combined.
template <class T>
VARVE_INLINE void share_vector(index_t m, index_t k, matrix<T const> a, T const* x, index_t x_step, T* y,
                               index_t y_step, bool accumulate) {
  varve::fusion::share(m, 4 * static_cast<index_t>(lanes<T>), m * k / 2, [&](index_t from, index_t to) {
    detail::multiply_vector<T>(to - from, k, a.at(from, 0), x, x_step, y + from * y_step, y_step, accumulate);
  });
}

template <class T>
VARVE_NOINLINE void multiply_blocked(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
                                     bool accumulate) {
  constexpr index_t W = block_cols<T>;
  alignas(64) T panel[inner_block * W];
  bool const pack = m * k > 128 * 1024 && m >= block_rows; // a larger A does not stay in the second-level cache
  T* const packed =
      pack ? static_cast<T*>(std::malloc(sizeof(T) * static_cast<std::size_t>(outer_block * inner_block))) : nullptr;
  for (index_t p = 0; p < k; p += inner_block) {
    index_t const kb = k - p < inner_block ? k - p : inner_block;
    bool const add = accumulate || p > 0;
    index_t const step = packed ? outer_block : m;
    for (index_t i = 0; i < m; i += step) {
      index_t const mb = m - i < step ? m - i : step;
      matrix<T const> const rows = a.at(i, p);
      if (packed) detail::pack_rows(mb, kb, rows, packed);
      for (index_t j = 0; j < n; j += W) {
        index_t const cols = n - j < W ? n - j : W;
        matrix<T const> const from = b.at(p, j);
        bool const direct = from.col == 1 && cols == W && mb <= 2 * block_rows; // too few rows to repay a copy
        if (!direct) detail::pack_panel(kb, cols, from, panel);
        T const* const q = direct ? from.data : panel;
        index_t const q_row = direct ? from.row : W;
        matrix<T> const to = c.at(i, j);
        index_t r = packed ? detail::multiply_packed_rows(mb, kb, packed, q, q_row, to, cols, add)
                           : detail::multiply_rows<T, block_rows>(0, mb, kb, rows, q, q_row, to, cols, add);
        r = detail::multiply_rows<T, block_rows / 3>(r, mb, kb, rows, q, q_row, to, cols, add);
        detail::multiply_rows<T, 1>(r, mb, kb, rows, q, q_row, to, cols, add);
      }
    }
  }
  std::free(packed);
}
/// Computes `Rows` rows of n < lanes columns, or of a whole batch.
template <class T, int Rows, bool Whole>
VARVE_INLINE void multiply_few(index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
                               bool accumulate) {
  using V = batch<T>;
  auto const live = static_cast<std::size_t>(n);
  auto const some = [&](T const* p) { return Whole ? kernel::load(p) : kernel::load_first(p, live); };
  V sum[Rows];
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i) sum[i] = V(T(0));
  for (index_t p = 0; p < k; ++p) {
    V const row = some(b.data + p * b.row);
#pragma GCC unroll 24
    for (int i = 0; i < Rows; ++i) sum[i] = kernel::fma<T>(V(a.data[i * a.row + p * a.col]), row, sum[i]);
  }
#pragma GCC unroll 24
  for (int i = 0; i < Rows; ++i) {
    T* const to = c.data + i * c.row;
    V const r = accumulate ? V(some(to) + sum[i]) : sum[i];
    if constexpr (Whole) kernel::store<T>(to, r);
    else kernel::store_first<T>(to, live, r);
  }
}
template <class T, bool Whole, int Rows, int... Fewer>
VARVE_INLINE void multiply_narrow_rows(index_t i, index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b,
                                       matrix<T> c, bool accumulate) {
  for (; i + Rows <= m; i += Rows) detail::multiply_few<T, Rows, Whole>(n, k, a.at(i, 0), b, c.at(i, 0), accumulate);
  if constexpr (sizeof...(Fewer) > 0)
    if (i < m) detail::multiply_narrow_rows<T, Whole, Fewer...>(i, m, n, k, a, b, c, accumulate);
}
/// Computes a product with at most one batch of columns, from the rows of B, or from a transposed copy if B is
/// column-major. More rows of C fit into the registers, and small products need no panel.
template <class T>
VARVE_NOINLINE void multiply_narrow(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
                                    bool accumulate) {
  constexpr index_t L = lanes<T>, deep = 64;
  constexpr int most = 2 * block_rows;
  auto const rows = [&](index_t kb, matrix<T const> x, matrix<T const> y, bool add) {
    if (n == L) detail::multiply_narrow_rows<T, true, most, most / 3, 4, 2, 1>(0, m, n, kb, x, y, c, add);
    else detail::multiply_narrow_rows<T, false, most, most / 3, 4, 2, 1>(0, m, n, kb, x, y, c, add);
  };
  if (b.col == 1) return rows(k, a, b, accumulate);
  alignas(64) T turned[deep * L];
  for (index_t p = 0; p < k; p += deep) {
    index_t const kb = k - p < deep ? k - p : deep;
    for (index_t j = 0; j < n; ++j)
      for (index_t q = 0; q < kb; ++q) turned[q * L + j] = b.data[(p + q) * b.row + j * b.col];
    rows(kb, a.at(0, p), {turned, L, 1}, accumulate || p > 0);
  }
}
/// Computes the product of a column and a row. Each element is a sum that begins with 0, so that none is -0.
template <class T>
VARVE_NOINLINE void multiply_outer(index_t m, index_t n, matrix<T const> a, T const* b, matrix<T> c, bool accumulate) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  for (index_t i = 0; i < m; ++i) {
    V const x(a.data[i * a.row]);
    T* const to = c.data + i * c.row;
    index_t j = 0;
    for (; j + L <= n; j += L)
      kernel::store<T>(to + j, kernel::fma<T>(x, kernel::load(b + j), accumulate ? kernel::load(to + j) : V(T(0))));
    if (j == n) continue;
    auto const rest = static_cast<std::size_t>(n - j);
    kernel::store_first<T>(
        to + j, rest,
        kernel::fma<T>(x, kernel::load_first(b + j, rest), accumulate ? kernel::load_first(to + j, rest) : V(T(0))));
  }
}
/// Computes a product of a few dozen multiplications, which is too small for a block.
template <class T>
VARVE_NOINLINE void multiply_tiny(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
                                  bool accumulate) {
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      T s(0);
      for (index_t p = 0; p < k; ++p) s += a.data[i * a.row + p * a.col] * b.data[p * b.row + j * b.col];
      T& to = c.data[i * c.row + j * c.col];
      to = accumulate ? to + s : s;
    }
}
template <class T>
void multiply_simple(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
                     bool accumulate) {
  for (index_t i = 0; i < m; ++i) {
    T* const row = c.data + i * c.row;
    for (index_t j = 0; j < n && !accumulate; ++j) row[j * c.col] = T(0);
    for (index_t p = 0; p < k; ++p)
      for (index_t j = 0; j < n; ++j)
        row[j * c.col] =
            kernel::add(row[j * c.col], kernel::mul(a.data[i * a.row + p * a.col], b.data[p * b.row + j * b.col]));
  }
}
} // namespace detail

/// Computes c[m, n] = a[m, k] b[k, n], or adds it to c if `accumulate`. The strides are arbitrary; `c` must not overlap
/// the inputs. k = 0 gives zeros. Integers wrap around. Floating-point products are blocked for registers and caches.
/// They use a panel on the stack and, if A has more than 128 Ki elements, 240 KiB (float) or 480 KiB (double) on the
/// heap. If that allocation fails, they proceed without it.
template <class T>
void matmul(index_t m, index_t n, index_t k, matrix<T const> a, matrix<T const> b, matrix<T> c,
            bool accumulate = false) {
  if (m == 0 || n == 0) return;
  if (!floating_lane<T> || k == 0) return detail::multiply_simple(m, n, k, a, b, c, accumulate);
  if constexpr (floating_lane<T>) {
    constexpr index_t L = lanes<T>;
    bool const narrow = L > 1 && n > 1 && n <= L && c.col == 1 && (n == L || m * n * k <= 4096 || detail::has_masks);
    if (narrow && m > 1) return detail::multiply_narrow<T>(m, n, k, a, b, c, accumulate);
    if (m * n * k <= 64) return detail::multiply_tiny(m, n, k, a, b, c, accumulate);
    if (n == 1) return detail::share_vector<T>(m, k, a, b.data, b.row, c.data, c.row, accumulate);
    if (m == 1) return detail::share_vector<T>(n, k, b.transposed(), a.data, a.col, c.data, c.col, accumulate);
    if (c.col != 1 && c.row != 1) return detail::multiply_simple(m, n, k, a, b, c, accumulate);
    if (c.col != 1) // (a b)^T = b^T a^T
      return kernel::matmul<T>(n, m, k, b.transposed(), a.transposed(), c.transposed(), accumulate);
    if (k == 1 && b.col == 1) return detail::multiply_outer<T>(m, n, a, b.data, c, accumulate);
    index_t const work = m * n * k / 8; // a multiplication costs less than an element of other loops
    // Each part of the rows packs all of B, and each part of the columns all of A.
    if (m >= n)
      return varve::fusion::share_coarsely(m, detail::block_rows, work, [&](index_t from, index_t to) {
        detail::multiply_blocked<T>(to - from, n, k, a.at(from, 0), b, c.at(from, 0), accumulate);
      });
    varve::fusion::share_coarsely(n, detail::block_cols<T>, work, [&](index_t from, index_t to) {
      detail::multiply_blocked<T>(m, to - from, k, a, b.at(0, from), c.at(0, from), accumulate);
    });
  }
}

/// Computes `count` products for a run-time dtype. `apart` holds the distances of successive a, b and c; distances and
/// strides are in elements. Throws `dtype_error` for bool and dtypes without kernels.
template <class = void>
VARVE_NOINLINE void matmul(dtype type, index_t count, index_t const* apart, index_t m, index_t n, index_t k,
                           matrix<void const> a, matrix<void const> b, matrix<void> c) {
  if (type == dtype::bool_) refuse::dtype_is_not_supported("matmul", name(type));
  on_dtype(type, "matmul", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      auto const several = [&](index_t from, index_t to) {
        for (index_t i = from; i < to; ++i)
          kernel::matmul<T>(m, n, k, {static_cast<T const*>(a.data) + i * apart[0], a.row, a.col},
                            {static_cast<T const*>(b.data) + i * apart[1], b.row, b.col},
                            {static_cast<T*>(c.data) + i * apart[2], c.row, c.col});
      };
      if (count > 1) varve::fusion::share(count, 1, count * m * n * k / 8, several);
      else several(0, count);
    }
  });
}
/// Computes one product for a run-time dtype. Throws `dtype_error` for bool and dtypes without kernels.
template <class = void>
VARVE_NOINLINE void matmul(dtype type, index_t m, index_t n, index_t k, matrix<void const> a, matrix<void const> b,
                           matrix<void> c, bool accumulate = false) {
  if (type == dtype::bool_) refuse::dtype_is_not_supported("matmul", name(type));
  on_dtype(type, "matmul", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      kernel::matmul<T>(m, n, k, {static_cast<T const*>(a.data), a.row, a.col},
                        {static_cast<T const*>(b.data), b.row, b.col}, {static_cast<T*>(c.data), c.row, c.col},
                        accumulate);
  });
}

} // namespace varve::kernel
