// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/matmul_block.hpp>

#include <cstddef>
#include <cstring>

/// @file
/// Matrix products of compile-time sizes. They are unrolled register blocks without heap memory, and without packing
/// except for a transposition of B through registers.
namespace varve::kernel {

namespace detail {
/// Returns the number of rows of a block of `Batches` batches that fills the registers, except for a row of B and an
/// element of A.
constexpr int fixed_rows(int batches) { return (registers - 2 - batches) / batches; }

/// Computes a block of C with at most four batches of columns. `b` may be read up to `b_end`.
template <class T, index_t M, index_t K, index_t A_row, index_t A_col, index_t B_row, index_t C_row, int Rows,
          int Batches, index_t Cols>
VARVE_INLINE void fixed_block(T const* a, T const* b, T const* b_end, T* c) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  constexpr index_t rest = Cols % L; // columns of the last batch if it is not full
  V sum[Rows][Batches];
#pragma GCC unroll 32
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) sum[i][j] = V(T(0));
  // A row of B whose last batch would extend beyond the matrix is loaded in part. In other rows, the surplus lanes hold
  // elements of the next row and are dropped at the end.
  auto step = [&](index_t p, bool partial) __attribute__((always_inline)) {
    V row[Batches];
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j)
      row[j] = rest != 0 && j == Batches - 1 && partial
                   ? kernel::load_first(b + p * B_row + j * L, static_cast<std::size_t>(rest))
                   : kernel::load(b + p * B_row + j * L);
#pragma GCC unroll 32
    for (int i = 0; i < Rows; ++i) {
      V const x(a[i * A_row + p * A_col]);
#pragma GCC unroll 4
      for (int j = 0; j < Batches; ++j) sum[i][j] = kernel::fma<T>(x, row[j], sum[i][j]);
    }
  };
  index_t p = 0;
  if constexpr (rest == 0) {
    for (; p < K; ++p) step(p, false);
  } else {
    index_t const safe = (b_end - b) - Batches * L; // greatest offset at which whole rows may be read
    for (; p < K && p * B_row <= safe; ++p) step(p, false);
    for (; p < K; ++p) step(p, true);
  }
#pragma GCC unroll 32
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) {
      if (rest != 0 && j == Batches - 1)
        kernel::store_first(c + i * C_row + j * L, static_cast<std::size_t>(rest), sum[i][j]);
      else kernel::store(c + i * C_row + j * L, sum[i][j]);
    }
}
/// Computes all rows of C for a group of columns.
template <class T, index_t M, index_t K, index_t A_row, index_t A_col, index_t B_row, index_t C_row, index_t Cols>
VARVE_INLINE void fixed_columns(T const* a, T const* b, T const* b_end, T* c) {
  constexpr int batches = static_cast<int>((Cols + lanes<T> - 1) / lanes<T>);
  constexpr index_t most = fixed_rows(batches), blocks = (M + most - 1) / most,
                    rows = (M + blocks - 1) / blocks; // blocks of nearly equal size
  constexpr index_t rest = M % rows;
  index_t i = 0;
  for (; i + rows <= M; i += rows)
    fixed_block<T, M, K, A_row, A_col, B_row, C_row, static_cast<int>(rows), batches, Cols>(a + i * A_row, b, b_end,
                                                                                            c + i * C_row);
  if constexpr (rest != 0)
    fixed_block<T, M, K, A_row, A_col, B_row, C_row, static_cast<int>(rest), batches, Cols>(a + i * A_row, b, b_end,
                                                                                            c + i * C_row);
}
/// Computes a product with a row-major B whose rows are `B_row` apart.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col, index_t B_row>
VARVE_INLINE void fixed_product(T const* a, T const* b, T const* b_end, T* c) {
  constexpr index_t W = 2 * static_cast<index_t>(lanes<T>), rest = N % W;
  index_t j = 0;
  for (; j + W <= N; j += W) fixed_columns<T, M, K, A_row, A_col, B_row, N, W>(a, b + j, b_end, c + j);
  if constexpr (rest != 0) fixed_columns<T, M, K, A_row, A_col, B_row, N, rest>(a, b + j, b_end, c + j);
}
/// Computes sums of products of contiguous rows of A and of the transpose of B, for few rows of A, where a
/// transposition would not pay.
template <class T, index_t M, index_t K, index_t N, index_t C_row, index_t C_col>
VARVE_INLINE void fixed_dots(T const* a, T const* b, T* c) {
  constexpr index_t L = lanes<T>;
  constexpr auto rest = static_cast<std::size_t>(K % L);
  for (index_t j = 0; j < N; ++j)
    for (index_t i = 0; i < M; ++i) {
      batch<T> s(T(0)), t(T(0));
      index_t p = 0;
      for (; p + 2 * L <= K; p += 2 * L) {
        s = kernel::fma<T>(kernel::load(a + i * K + p), kernel::load(b + j * K + p), s);
        t = kernel::fma<T>(kernel::load(a + i * K + p + L), kernel::load(b + j * K + p + L), t);
      }
      if constexpr (K % (2 * L) >= L)
        s = kernel::fma<T>(kernel::load(a + i * K + p), kernel::load(b + j * K + p), s), p += L;
      if constexpr (rest != 0)
        t = kernel::fma<T>(kernel::load_first(a + i * K + p, rest), kernel::load_first(b + j * K + p, rest), t);
      c[i * C_row + j * C_col] = kernel::reduce_sum(batch<T>(s + t));
    }
}
/// Transposes b: to[p, j] = b[j, p]. Squares are transposed in registers, the edges element by element.
template <class T, index_t K, index_t N, index_t Row>
VARVE_INLINE void fixed_transpose(T const* b, T* to) {
  constexpr index_t L = lanes<T>, whole_k = K / L * L, whole_n = N / L * L;
  for (index_t j = 0; j < whole_n; j += L)
    for (index_t p = 0; p < whole_k; p += L) {
      batch<T> r[lanes<T>];
#pragma GCC unroll 16
      for (index_t i = 0; i < L; ++i) r[i] = kernel::load(b + (j + i) * K + p);
      kernel::transpose<T>(r);
#pragma GCC unroll 16
      for (index_t i = 0; i < L; ++i) kernel::store(to + (p + i) * Row + j, r[i]);
    }
  for (index_t j = 0; j < N; ++j)
    for (index_t p = j < whole_n ? whole_k : 0; p < K; ++p) to[p * Row + j] = b[j * K + p];
}
/// Computes a product with fewer columns than a batch; rows of C are vectors of exactly that width.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col>
VARVE_INLINE void narrow_product(T const* a, T const* b, T* c) {
  typedef T row __attribute__((vector_size(N * sizeof(T))));
#pragma GCC unroll 8
  for (index_t i = 0; i < M; ++i) {
    row s{};
#pragma GCC unroll 8
    for (index_t p = 0; p < K; ++p) {
      row r;
      std::memcpy(&r, b + p * N, sizeof(row));
      s += a[i * A_row + p * A_col] * r;
    }
    std::memcpy(c + i * N, &s, sizeof(row));
  }
}
/// Computes a product of a few dozen multiplications by plain loops that the compiler unrolls.
template <class T, index_t M, index_t K, index_t N, index_t A_row, index_t A_col, index_t B_row, index_t B_col>
VARVE_INLINE void tiny_product(T const* a, T const* b, T* c) {
  T s[M * N];
#pragma GCC unroll 16
  for (index_t i = 0; i < M; ++i)
#pragma GCC unroll 16
    for (index_t j = 0; j < N; ++j) {
      T sum = a[i * A_row] * b[j * B_col];
#pragma GCC unroll 16
      for (index_t p = 1; p < K; ++p) sum += a[i * A_row + p * A_col] * b[p * B_row + j * B_col];
      s[i * N + j] = sum;
    }
  std::memcpy(c, s, sizeof(s));
}
} // namespace detail

/// Computes c[M, N] = a b for float or double. All operands are row-major and contiguous: `a` is [M, K], or [K, M] if
/// TA; `b` is [K, N], or [N, K] if TB. `c` must not overlap the inputs.
template <floating_lane T, index_t M, index_t K, index_t N, bool TA = false, bool TB = false>
void matmul_fixed(T const* a, T const* b, T* c) {
  constexpr index_t a_row = TA ? 1 : K, a_col = TA ? M : 1, L = lanes<T>;
  if constexpr (M == 0 || N == 0) return;
  else if constexpr (K == 0) {
    for (index_t i = 0; i < M * N; ++i) c[i] = T(0);
  } else if constexpr (N < L && N > 1 && (N & (N - 1)) == 0 && !TB) {
    detail::narrow_product<T, M, K, N, a_row, a_col>(a, b, c);
  } else if constexpr (N < L && M * K * N <= 128) {
    detail::tiny_product<T, M, K, N, a_row, a_col, TB ? 1 : N, TB ? K : 1>(a, b, c);
  } else if constexpr (N == 1 && TA) { // a column of results: combine the contiguous rows of the transpose of a
    detail::fixed_product<T, 1, K, M, 0, 1, M>(b, a, a + M * K, c);
  } else if constexpr ((N == 1 || TB) && !TA && (M <= 2 || N <= 2)) {
    detail::fixed_dots<T, M, K, N, N, 1>(a, b, c);
  } else if constexpr (TB) {
    constexpr index_t row = (N + L - 1) / L * L; // rows padded to whole batches
    alignas(64) T t[K * row];
    detail::fixed_transpose<T, K, N, row>(b, t);
    detail::fixed_product<T, M, K, N, a_row, a_col, row>(a, t, t + K * row, c);
  } else {
    detail::fixed_product<T, M, K, N, a_row, a_col, N>(a, b, b + K * N, c);
  }
}

} // namespace varve::kernel
