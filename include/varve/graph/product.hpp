// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/transpose.hpp>
#include <varve/kernel/matmul.hpp>

namespace varve::loop {
namespace detail {
/// A panel of columns [j, j + Cols) of a transposed B (stored [N, K]) as rows of `Width`, the missing columns zero.
template <class T, index_t K, index_t Cols, index_t Width>
VARVE_INLINE void pack_transposed(T const* b, T* to) {
  constexpr index_t W = static_cast<index_t>(kernel::lanes<T>);
  constexpr index_t whole_k = W > 1 ? K / W * W : 0, whole_c = Cols / W * W;
  for (index_t c = 0; c < whole_c; c += W)
    for (index_t k = 0; k < whole_k; k += W) {
      kernel::batch<T> r[W];
      for (index_t q = 0; q < W; ++q) r[q] = kernel::load(b + (c + q) * K + k);
      transpose<T>(r);
      for (index_t q = 0; q < W; ++q) kernel::store(to + (k + q) * Width + c, r[q]);
    }
  for (index_t k = 0; k < K; ++k)
    for (index_t c = k < whole_k ? whole_c : 0; c < Width; ++c) to[k * Width + c] = c < Cols ? b[c * K + k] : T(0);
}
template <class T, index_t K, index_t Width>
VARVE_INLINE void pack_narrow(T const* b, index_t row, index_t cols, T* to) {
  for (index_t k = 0; k < K; ++k)
    for (index_t c = 0; c < Width; ++c) to[k * Width + c] = c < cols ? b[k * row + c] : T(0);
}
/// All rows of C in columns [j, j + Cols), from a panel of B.
template <class T, index_t M, index_t K, int Batches, index_t Cols>
VARVE_INLINE void panel_rows(T const* a, index_t a_row, index_t a_col, T const* b, index_t b_row, T* c, index_t c_row) {
  constexpr int rows = kernel::detail::block_rows;
  constexpr index_t whole = M / rows * rows;
  constexpr int rest = static_cast<int>(M - whole);
  for (index_t i = 0; i < whole; i += rows) kernel::detail::multiply_block<T, rows, Batches>(K, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, Cols, false);
  if constexpr (rest > 0) kernel::detail::multiply_block<T, rest, Batches>(K, a + whole * a_row, a_row, a_col, b, b_row, c + whole * c_row, c_row, Cols, false);
}
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB, index_t Cols>
VARVE_INLINE void panel(T const* a, T const* b, T* c, index_t j) {
  constexpr index_t W = static_cast<index_t>(kernel::lanes<T>);
  constexpr int batches = static_cast<int>((Cols + W - 1) / W);
  constexpr index_t width = batches * W, a_row = TA ? 1 : K, a_col = TA ? M : 1;
  if constexpr (TB || Cols != width) {
    alignas(64) T packed[K * width];
    if constexpr (TB) pack_transposed<T, K, Cols, width>(b + j * K, packed);
    else pack_narrow<T, K, width>(b + j, N, Cols, packed);
    panel_rows<T, M, K, batches, Cols>(a, a_row, a_col, packed, width, c + j, N);
  } else {
    panel_rows<T, M, K, batches, Cols>(a, a_row, a_col, b + j, N, c + j, N);
  }
}
} // namespace detail

/// c[M, N] = a b for sizes known to the compiler; `TA`, `TB`: the operand is stored transposed. Large products go to the blocked kernel.
template <class T, index_t M, index_t K, index_t N, bool TA, bool TB>
VARVE_NOINLINE void multiply(T const* a, T const* b, T* c) {
  if constexpr (std::is_same_v<T, bool>) {
    static_assert(!std::is_same_v<T, bool>, "varve: fuse: mm of booleans; convert first");
  } else if constexpr (!std::is_floating_point_v<T> || M * K * N > 1 << 18 || K == 0) {
    kernel::matmul<T>(M, N, K, {a, TA ? 1 : K, TA ? M : 1}, {b, TB ? 1 : N, TB ? K : 1}, {c, N, 1});
  } else {
    constexpr index_t step = kernel::detail::block_cols<T>, whole = N / step * step;
    for (index_t j = 0; j < whole; j += step) detail::panel<T, M, K, N, TA, TB, step>(a, b, c, j);
    if constexpr (whole < N) detail::panel<T, M, K, N, TA, TB, N - whole>(a, b, c, whole);
  }
}

} // namespace varve::loop
