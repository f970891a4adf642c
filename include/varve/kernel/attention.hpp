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
/// Attention of one head in tiles of scores. Each tile is computed, modified and folded into running sums of
/// exponentials, which are rescaled when greater scores follow. The whole matrix of scores is therefore never stored.
/// The gradient computes the tiles again.
///
/// The parameter `tiles` modifies the scores. `span(i, j)` returns the columns of the tile at (i, j) that at least one
/// row may attend to. For the same tile, `scores(span, x)` returns the modified scores of x, with -inf where a row may
/// not attend; it may write into x. `pull(x, g)` returns the cotangent of x. Tiles are row-major arrays of
/// `attention_rows` x `attention_cols`, also at the edges, where elements outside of the matrix are ignored.
namespace varve::kernel {

inline constexpr index_t attention_rows = 48, attention_cols = 128;

/// The columns of a tile, from `first` to `last`, that at least one row may attend to; `all` is true if every row may
/// attend to all of them.
struct attention_span {
  index_t first, last;
  bool all;
};
/// Query, key and value of one head, with the numbers of rows (`queries`, `keys`) and columns (`features`, `values`).
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
/// Packs all of B [k, n] into consecutive panels; missing columns are filled with 0.
template <class T>
void pack_panels(index_t k, index_t n, matrix<T const> b, T* to) {
  constexpr index_t W = block_cols<T>;
  for (index_t j = 0; j < n; j += W, to += k * W) detail::pack_panel(k, n - j < W ? n - j : W, b.at(0, j), to);
}
/// Computes c[m, n] = a b for a `b` stored in panels: `apart` is the distance of panels, `b_row` that of rows in a
/// panel.
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
/// Copies the rows of a matrix, multiplied by a number, to rows at distance `to_row`; missing columns are filled with
/// 0.
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
/// Returns the number to subtract from scores whose maximum is m: m itself, or 0 if it is infinite.
template <class T>
T shift_of(T m) {
  return std::fabs(m) == std::numeric_limits<T>::infinity() ? T(0) : m;
}
/// Returns the maximum of n scores, using two accumulators. It may ignore a NaN, which the sum of exponentials
/// propagates anyway.
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
/// State of some rows: the number subtracted from their scores, which may be less than the maximum by a tolerance, and
/// the sums of exponentials.
template <class T>
struct row_sums {
  T *shift, *sum;
};
/// Replaces n scores of each row by exponentials and adds these to the row's sum. If the scores outgrow the number that
/// is subtracted, that number is raised, and the row of `out` is rescaled accordingly.
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
/// Computes the weights of a row of n scores, and replaces the cotangents of the weights by those of the scores.
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

/// Tiles of one head in scratch memory, and the panels that all rows use.
template <class T>
struct attention_work {
  static constexpr index_t M = attention_rows, N = attention_cols, W = block_cols<T>;
  attention_head<T> const& h;
  index_t wide_e, wide_v;

  explicit attention_work(attention_head<T> const& head)
      : h(head), wide_e(detail::whole_panels<T>(head.features)), wide_v(detail::whole_panels<T>(head.values)) {}
  index_t whole_keys() const { return detail::whole_panels<T>(h.keys); }
  static index_t bytes(index_t elements) { return (elements * static_cast<index_t>(sizeof(T)) + 63) / 64 * 64; }
  /// Computes the scores of the rows of `q` in the columns of the span, extended to whole panels.
  void scores(index_t m, T const* q, T const* keys, index_t j, attention_span const& s, T* to) const {
    index_t const first = s.first / W * W;
    detail::multiply_panels<T>(m, detail::whole_panels<T>(s.last) - first, h.features, {q, wide_e, 1},
                               keys + (j + first) * h.features, W, h.features * W, {to + first, N, 1}, false);
  }
};
/// Scratch memory that is handed out piece by piece.
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

/// Computes rows [from, to) of out[queries, values] = softmax(scores) value, and the logarithms of the sums of
/// exponentials. Rows that may attend to nothing become 0, with the logarithm -inf. The scores are `scale` query key^T,
/// modified by `tiles`; `from` is the beginning of a tile. Takes the time of two matrix products, and copies key and
/// value to scratch memory.
template <floating_lane T, class Tiles>
void attend(attention_head<T> const& h, index_t from, index_t to, T scale, Tiles& tiles, T* out, T* lse) {
  using work = detail::attention_work<T>;
  constexpr index_t M = work::M, N = work::N, W = work::W;
  work const w(h);
  index_t const keys = w.whole_keys() * h.features, values = h.keys * w.wide_v;
  varve::fusion::scratch_block const memory(static_cast<std::size_t>(work::bytes(keys) + work::bytes(values) +
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

/// Results of a head and their cotangents: those of the output, and those of the logarithms (or null).
template <class T>
struct attention_cotangents {
  matrix<T const> out, of_out;
  T const *lse, *of_lse;
};
/// Computes the gradient of `attend`. The gradient of the query is written; those of key and value are added to the
/// memory given. All three are row-major. Takes the time of five matrix products.
template <floating_lane T, class Tiles>
void attend_backward(attention_head<T> const& h, T scale, Tiles& tiles, attention_cotangents<T> const& g, T* of_query,
                     T* of_key, T* of_value) {
  using work = detail::attention_work<T>;
  constexpr index_t M = work::M, N = work::N, W = work::W;
  work const w(h);
  index_t const keys = w.whole_keys() * h.features, rows = h.keys * w.wide_e, values = w.whole_keys() * h.values;
  varve::fusion::scratch_block const memory(
      static_cast<std::size_t>(work::bytes(keys) + work::bytes(rows) + work::bytes(values) +
                               2 * work::bytes(M * w.wide_e) + work::bytes(M * w.wide_v) + 3 * work::bytes(M * N)) +
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
