// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What the opponents by hand are made of: matrix products in register blocks, transposition, the greatest of a
/// register's lanes.
#include <varve/core/dims.hpp>
#include <varve/kernel/math.hpp>

namespace bench {
namespace k = varve::kernel;
using varve::index_t;

/// Register blocks of `Rows` x `Vectors`; `f(row, column, vector)` takes each finished vector, so that bias and
/// activation need no pass of their own.
template <int Rows, int Vectors, int K, class F>
VARVE_INLINE void block(float const* a, index_t a_row, index_t a_col, float const* b, index_t b_row, F f) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  V s[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) s[r][v] = V(0.0f);
  for (int p = 0; p < K; ++p) {
    V x[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) x[v] = k::load(b + p * b_row + v * W);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      V const q(a[r * a_row + p * a_col]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) s[r][v] = k::fma<float>(q, x[v], s[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) f(r, v * W, s[r][v]);
}
/// The product of an M x K matrix, whose elements lie `a_row` and `a_col` apart, and a row-major K x N one.
template <int M, int K, int N, int Rows = 8, int Vectors = 2, class F>
VARVE_INLINE void blocks(float const* a, index_t a_row, index_t a_col, float const* b, F f) {
  static_assert(N % (Vectors * static_cast<int>(k::lanes<float>)) == 0);
  for (index_t j = 0; j < N; j += Vectors * static_cast<index_t>(k::lanes<float>)) {
    index_t i = 0;
    for (; i + Rows <= M; i += Rows)
      block<Rows, Vectors, K>(a + i * a_row, a_row, a_col, b + j, N,
                              [&](index_t r, index_t c, auto v) { f(i + r, j + c, v); });
    if constexpr (M % Rows != 0)
      block<M % Rows, Vectors, K>(a + i * a_row, a_row, a_col, b + j, N,
                                  [&](index_t r, index_t c, auto v) { f(i + r, j + c, v); });
  }
}
/// `to` becomes the transpose of the row-major M x N matrix.
template <int M, int N>
VARVE_INLINE void transpose(float const* from, float* to) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  for (index_t i = 0; i < M; i += W)
    for (index_t j = 0; j < N; j += W) {
      V r[W];
      for (index_t q = 0; q < W; ++q) r[q] = k::load(from + (i + q) * N + j);
      k::transpose<float>(r);
      for (index_t q = 0; q < W; ++q) k::store<float>(to + (j + q) * M + i, r[q]);
    }
}
VARVE_INLINE float greatest_lane(k::batch<float> const& v) {
  return k::reduce_tree<float>(v, [](auto const& a, auto const& b) { return k::maximum(a, b); });
}
} // namespace bench
