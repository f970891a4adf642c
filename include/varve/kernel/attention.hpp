// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/scratch_memory.hpp>
#include <varve/kernel/matmul.hpp>
#include <varve/kernel/row_norm.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

/// @file
/// Attention of one head by tiles of scores: a tile is computed, changed and folded into sums of exponentials that are
/// corrected as greater scores come, so that the matrix of scores is nowhere. The gradient computes the tiles again.
///
/// What happens to scores is said by `tiles`: `span(i, j)` are the columns of the tile at (i, j) that some row may look
/// at. Of the same tile `scores(span, x)` are the scores made of x, -inf where a row may not look, in a tile that may
/// be written into; `pull(x, g)` is the cotangent of x. Tiles are `attention_rows` x `attention_cols`, row-major, also
/// at the edges, where what lies outside is not looked at.
namespace varve::kernel {

inline constexpr index_t attention_rows = 48, attention_cols = 128;

/// The columns of a tile from `first` to `last` that some row may look at: every row at all of them?
struct attention_span {
  index_t first, last;
  bool all;
};
/// A query, key and value of one head, and how many rows and columns they have.
template <class T>
struct attention_head {
  matrix<T const> query, key, value;
  index_t queries, keys, features, values;
};

namespace detail {
template <class T>
constexpr index_t whole_panels(index_t n) {
  return (n + block_cols<T> - 1) / block_cols<T> * block_cols<T>;
}
/// All of B [k, n] as panels, one behind the other; columns that are missing are 0.
template <class T>
void pack_panels(index_t k, index_t n, matrix<T const> b, T* to) {
  constexpr index_t W = block_cols<T>;
  for (index_t j = 0; j < n; j += W, to += k * W) detail::pack_panel(k, n - j < W ? n - j : W, b.at(0, j), to);
}
/// c[m, n] = a b, of a `b` whose panels lie `apart`, its rows `b_row`.
template <class T>
void multiply_panels(index_t m, index_t n, index_t k, matrix<T const> a, T const* b, index_t b_row, index_t apart,
                     matrix<T> c, bool accumulate) {
  constexpr index_t W = block_cols<T>;
  for (index_t j = 0; j < n; j += W, b += apart) {
    index_t const cols = n - j < W ? n - j : W;
    matrix<T> const to = c.at(0, j);
    index_t r = detail::multiply_rows<T, block_rows>(0, m, k, a, b, b_row, to, cols, accumulate);
    r = detail::multiply_rows<T, block_rows / 3>(r, m, k, a, b, b_row, to, cols, accumulate);
    detail::multiply_rows<T, 1>(r, m, k, a, b, b_row, to, cols, accumulate);
  }
}
template <floating_lane T>
void scale_row(index_t n, T const* x, T times, T* to) {
  batch<T> const t(times);
  detail::for_lanes<T>(n, [&](index_t i, index_t live) {
    detail::store_live(to + i, live, batch<T>(detail::load_live(x + i, live) * t));
  });
}
/// Rows of a matrix times a number, `to_row` apart; columns that are missing are 0.
template <class T>
void copy_rows(index_t rows, index_t cols, matrix<T const> from, T times, T* to, index_t to_row) {
  for (index_t r = 0; r < rows; ++r, to += to_row) {
    T const* const x = from.data + r * from.row;
    if (from.col == 1) detail::scale_row<T>(cols, x, times, to);
    else
      for (index_t c = 0; c < cols; ++c) to[c] = x[c * from.col] * times;
    for (index_t c = cols; c < to_row; ++c) to[c] = T(0);
  }
}
/// What is subtracted of scores whose greatest is m.
template <class T>
T shift_of(T m) {
  return std::fabs(m) == std::numeric_limits<T>::infinity() ? T(0) : m;
}
/// The greatest of n scores, of two accumulators; a NaN may be passed over, since it is in the sum of exponentials too.
template <floating_lane T>
VARVE_INLINE T greatest_score(index_t n, T const* x) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  auto const greater = [](V const& a, V const& b) { return kernel::select<T>(a < b, b, a); };
  if (n < L) return detail::row_maximum(n, x);
  V a = kernel::load(x), b = kernel::load(x + n - L);
  for (index_t i = L; i + L <= n; i += L) {
    a = greater(a, kernel::load(x + i));
    std::swap(a, b);
  }
  return kernel::reduce_tree<T>(greater(a, b), greater);
}
/// What is known of some rows: what is subtracted of their scores, by which it may be less than the greatest one, and
/// the sums of exponentials.
template <class T>
struct row_sums {
  T *shift, *sum;
};
/// Folds n scores of each row into its sum: they become exponentials. Where the scores outgrow what is subtracted, that
/// grows, and the row of `out` becomes what it would have been.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void fold_scores(index_t rows, index_t n, T* x, index_t x_row,
                                                         row_sums<T> const& known, index_t columns, T* out) {
  constexpr T nothing = -std::numeric_limits<T>::infinity(), slack = T(8); // exponentials up to 3000
  for (index_t r = 0; r < rows; ++r, x += x_row, out += columns) {
    T const top = detail::greatest_score(n, x), before = known.shift[r];
    if (top > before + slack) {
      known.shift[r] = top;
      if (before != nothing) {
        T const times = std::exp(detail::shift_of(before) - detail::shift_of(top));
        known.sum[r] *= times;
        detail::scale_row<T>(columns, out, times, out);
      }
    }
    batch<T> const m(detail::shift_of(known.shift[r]));
    batch<T> total(T(0));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const e = detail::exp_of_live(x + i, live, m);
      detail::store_live(x + i, live, e);
      total += live == static_cast<index_t>(lanes<T>) ? e : detail::load_live(x + i, live);
    });
    known.sum[r] += kernel::reduce_sum<T>(total);
  }
}
/// Of a row of n scores the weights, and the cotangents of the scores in place of those of the weights.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void weights_and_cotangents(index_t n, T lse, T mean, T const* x, T* p, T* dp) {
  if (lse == -std::numeric_limits<T>::infinity()) {
    for (index_t c = 0; c < n; ++c) p[c] = dp[c] = T(0);
    return;
  }
  batch<T> const less(lse), middle(mean);
  detail::for_lanes<T>(n, [&](index_t i, index_t live) {
    batch<T> const e = detail::exp_of_live(x + i, live, less);
    detail::store_live(p + i, live, e);
    detail::store_live(dp + i, live, e * (detail::load_live(dp + i, live) - middle));
  });
}

/// The tiles of one head in memory, and the panels of what all rows need.
template <class T>
struct attention_work {
  static constexpr index_t M = attention_rows, N = attention_cols, W = block_cols<T>;
  attention_head<T> const& h;
  index_t wide_e, wide_v;

  explicit attention_work(attention_head<T> const& head)
      : h(head), wide_e(detail::whole_panels<T>(head.features)), wide_v(detail::whole_panels<T>(head.values)) {}
  index_t whole_keys() const { return detail::whole_panels<T>(h.keys); }
  static index_t bytes(index_t elements) { return (elements * static_cast<index_t>(sizeof(T)) + 63) / 64 * 64; }
  /// Scores of the rows of `q`, in columns of the span and a few more.
  void scores(index_t m, T const* q, T const* keys, index_t j, attention_span const& s, T* to) const {
    index_t const first = s.first / W * W;
    detail::multiply_panels<T>(m, detail::whole_panels<T>(s.last) - first, h.features, {q, wide_e, 1},
                               keys + (j + first) * h.features, W, h.features * W, {to + first, N, 1}, false);
  }
};
/// Memory that is handed out piece by piece.
struct work_memory {
  std::byte* at;
  template <class T>
  T* take(index_t elements) {
    T* const r = reinterpret_cast<T*>(at);
    at += attention_work<T>::bytes(elements);
    return r;
  }
};
} // namespace detail

/// Rows [from, to) of out[queries, values] = softmax(scores) value, and of the logarithms of the sums of exponentials;
/// rows that may look at nothing are 0, and -inf. Scores are `scale` query key^T, as `tiles` changes them; `from` is
/// where a tile begins. Time of two products of matrices; copies of key and value in scratch memory.
template <floating_lane T, class Tiles>
void attend(attention_head<T> const& h, index_t from, index_t to, T scale, Tiles& tiles, T* out, T* lse) {
  using work = detail::attention_work<T>;
  constexpr index_t M = work::M, N = work::N, W = work::W;
  work const w(h);
  index_t const keys = w.whole_keys() * h.features, values = h.keys * w.wide_v;
  varve::loop::scratch_block const memory(static_cast<std::size_t>(work::bytes(keys) + work::bytes(values) +
                                                                   work::bytes(M * (w.wide_e + N + w.wide_v + 2))) +
                                          256);
  detail::work_memory at{memory.data()};
  T *const k = at.take<T>(keys), *const v = at.take<T>(values), *const q = at.take<T>(M * w.wide_e),
           *const raw = at.take<T>(M * N), *const sum = at.take<T>(M * w.wide_v), *const state = at.take<T>(2 * M);
  for (index_t e = 0; e < M * N; ++e) raw[e] = T(0);
  detail::pack_panels<T>(h.features, h.keys, h.key.transposed(), k);
  detail::pack_panels<T>(h.keys, h.values, h.value, v);
  for (index_t i = from; i < to; i += M) {
    index_t const m = to - i < M ? to - i : M;
    detail::copy_rows<T>(m, h.features, h.query.at(i, 0), scale, q, w.wide_e);
    T *const shift = state, *const total = state + M;
    for (index_t r = 0; r < m; ++r) shift[r] = -std::numeric_limits<T>::infinity(), total[r] = T(0);
    bool begun = false;
    for (index_t j = 0; j < h.keys; j += N) {
      attention_span const s = tiles.span(i, j);
      if (s.first >= s.last) continue;
      w.scores(m, q, k, j, s, raw);
      T* const x = tiles.scores(s, raw);
      detail::fold_scores<T>(m, s.last - s.first, x + s.first, N, {shift, total}, begun ? w.wide_v : 0, sum);
      detail::multiply_panels<T>(m, w.wide_v, s.last - s.first, {x + s.first, N, 1}, v + (j + s.first) * W, W,
                                 h.keys * W, {sum, w.wide_v, 1}, begun);
      begun = true;
    }
    for (index_t r = 0; r < m; ++r) {
      bool const nothing = !begun || total[r] == T(0);
      T const times = nothing ? T(1) : T(1) / total[r];
      T* const row = out + (i + r) * h.values;
      if (begun) detail::scale_row<T>(h.values, sum + r * w.wide_v, times, row);
      else std::memset(row, 0, static_cast<std::size_t>(h.values) * sizeof(T));
      lse[i + r] = nothing ? -std::numeric_limits<T>::infinity() : std::log(total[r]) + detail::shift_of(shift[r]);
    }
  }
}

/// What came of a head, and the cotangents of that: of the result, and of the logarithms or null.
template <class T>
struct attention_cotangents {
  matrix<T const> out, of_out;
  T const *lse, *of_lse;
};
/// The gradient of `attend`: that of the query is written, what the head adds to those of key and value is added;
/// row-major all three. Time of five products of matrices.
template <floating_lane T, class Tiles>
void attend_backward(attention_head<T> const& h, T scale, Tiles& tiles, attention_cotangents<T> const& g, T* of_query,
                     T* of_key, T* of_value) {
  using work = detail::attention_work<T>;
  constexpr index_t M = work::M, N = work::N, W = work::W;
  work const w(h);
  index_t const keys = w.whole_keys() * h.features, rows = h.keys * w.wide_e, values = w.whole_keys() * h.values;
  varve::loop::scratch_block const memory(static_cast<std::size_t>(work::bytes(keys) + work::bytes(rows) +
                                                                   work::bytes(values) + 2 * work::bytes(M * w.wide_e) +
                                                                   work::bytes(M * w.wide_v) + 3 * work::bytes(M * N)) +
                                          256);
  detail::work_memory at{memory.data()};
  T *const k = at.take<T>(keys), *const key_rows = at.take<T>(rows), *const v = at.take<T>(values),
           *const q = at.take<T>(M * w.wide_e), *const dq = at.take<T>(M * w.wide_e),
           *const dy = at.take<T>(M * w.wide_v), *const raw = at.take<T>(M * N), *const p = at.take<T>(M * N),
           *const dp = at.take<T>(M * N);
  for (index_t e = 0; e < M * N; ++e) raw[e] = p[e] = dp[e] = T(0);
  detail::pack_panels<T>(h.features, h.keys, h.key.transposed(), k);
  detail::pack_panels<T>(h.keys, h.features, h.key, key_rows);
  detail::pack_panels<T>(h.values, h.keys, h.value.transposed(), v);
  for (index_t i = 0; i < h.queries; i += M) {
    index_t const m = h.queries - i < M ? h.queries - i : M;
    detail::copy_rows<T>(m, h.features, h.query.at(i, 0), scale, q, w.wide_e);
    detail::copy_rows<T>(m, h.values, g.of_out.at(i, 0), T(1), dy, w.wide_v);
    for (index_t e = 0; e < m * w.wide_e; ++e) dq[e] = T(0);
    for (index_t j = 0; j < h.keys; j += N) {
      attention_span const s = tiles.span(i, j);
      if (s.first >= s.last) continue;
      index_t const n = s.last - s.first, first = s.first / W * W;
      w.scores(m, q, k, j, s, raw);
      T* const x = tiles.scores(s, raw);
      detail::multiply_panels<T>(m, detail::whole_panels<T>(s.last) - first, h.values, {dy, w.wide_v, 1},
                                 v + (j + first) * h.values, W, h.values * W, {dp + first, N, 1}, false);
      for (index_t r = 0; r < m; ++r) {
        T const less = g.lse[i + r];
        T mean = g.of_lse ? -g.of_lse[i + r] : T(0);
        for (index_t c = 0; c < h.values; ++c)
          mean += dy[r * w.wide_v + c] * g.out.data[(i + r) * g.out.row + c * g.out.col];
        detail::weights_and_cotangents(n, less, mean, x + r * N + s.first, p + r * N + s.first, dp + r * N + s.first);
      }
      matrix<T const> const turned{p + s.first, 1, N};
      detail::multiply_panels<T>(n, h.values, m, turned, dy, w.wide_v, W,
                                 {of_value + (j + s.first) * h.values, h.values, 1}, true);
      T* const ds = tiles.pull(raw, dp);
      detail::multiply_panels<T>(m, w.wide_e, n, {ds + s.first, N, 1}, key_rows + (j + s.first) * W, W, h.keys * W,
                                 {dq, w.wide_e, 1}, true);
      matrix<T const> const down{ds + s.first, 1, N};
      detail::multiply_panels<T>(n, h.features, m, down, q, w.wide_e, W,
                                 {of_key + (j + s.first) * h.features, h.features, 1}, true);
    }
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < h.features; ++c) of_query[(i + r) * h.features + c] = dq[r * w.wide_e + c] * scale;
  }
}

} // namespace varve::kernel
