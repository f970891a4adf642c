// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/simd.hpp>

#include <cstddef>

/// @file
/// The register block of every matrix product: a few rows of C by one or two batches, accumulated in registers over the
/// inner dimension.
namespace varve::kernel {

namespace detail {
/// Number of the machine's vector registers: 32 for AVX-512 and 64-bit ARM, else 16.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif
/// Number of rows of a block of two batches. The accumulators leave registers for a row of B and an element of A.
inline constexpr int block_rows = registers == 32 ? 12 : 6;
/// Number of columns of a block.
template <class T>
inline constexpr index_t block_cols = 2 * static_cast<index_t>(lanes<T>);

/// Copies the valid columns of a block to C, or adds them to C.
template <class T>
VARVE_NOINLINE void merge_tile(index_t rows, index_t cols, T const* tile, index_t tile_row, T* c, index_t c_row,
                               bool accumulate) {
  constexpr index_t L = lanes<T>;
  for (; rows > 0; --rows, tile += tile_row, c += c_row) {
    index_t j = 0;
    for (; j + L <= cols; j += L)
      kernel::store(c + j,
                    accumulate ? batch<T>(kernel::load(c + j) + kernel::load(tile + j)) : kernel::load(tile + j));
    if (j == cols) continue;
    auto const rest = static_cast<std::size_t>(cols - j);
    kernel::store_first<T>(c + j, rest,
                           accumulate ? batch<T>(kernel::load_first(c + j, rest) + kernel::load(tile + j))
                                      : kernel::load(tile + j));
  }
}

/// Computes c[i, j] = sum_p a[i, p] b[p, j], or adds it to c if `accumulate`, for `Rows` rows and `cols` columns, where
/// `cols` <= Batches * lanes. Reads all Batches * lanes columns of `b`.
template <class T, int Rows, int Batches>
VARVE_INLINE void multiply_block(index_t k, T const* a, index_t a_row, index_t a_col, T const* b, index_t b_row, T* c,
                                 index_t c_row, index_t cols, bool accumulate) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  V sum[Rows][Batches];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) sum[i][j] = V(T(0));
  for (index_t p = 0; p < k; ++p) {
    V row[Batches];
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) row[j] = kernel::load(b + j * L);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      V const x(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < Batches; ++j) sum[i][j] = kernel::fma<T>(x, row[j], sum[i][j]);
    }
    a += a_col;
    b += b_row;
  }
  bool const whole = cols == Batches * L;
  if (whole && accumulate)
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Batches; ++j) sum[i][j] = V(kernel::load(c + i * c_row + j * L) + sum[i][j]);
  alignas(64) T tile[Rows * Batches * L];
  T* const to = whole ? c : tile;
  index_t const to_row = whole ? c_row : Batches * L;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Batches; ++j) kernel::store(to + i * to_row + j * L, sum[i][j]);
  if (!whole) detail::merge_tile(Rows, cols, tile, Batches * L, c, c_row, accumulate);
}
} // namespace detail

} // namespace varve::kernel
