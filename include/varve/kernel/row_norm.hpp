// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/math.hpp>
#include <varve/kernel/reduce_row.hpp>

/// @file
/// Functions that normalize rows, `softmax`, `log_softmax` and `layer_norm`, and their gradients. They process one row
/// at a time, so that it stays in the first-level cache between passes. Rows are contiguous, and results must not
/// overlap operands.
namespace varve::kernel {

/// Length of the longest row that stays in the first-level cache between two passes.
inline constexpr index_t longest_row = 1 << 14;

namespace detail {
/// Returns the sum of a row, added in the order of the operator `sum`, so that both agree to the last bit.
template <floating_lane T>
VARVE_INLINE T row_sum(index_t n, T const* x) {
  T r(0);
  detail::fold_row<sum_fold, T>(n, x, &r);
  return r;
}
/// Calls `f(i, count)` for the registers of a row; in the last call fewer lanes may be live.
template <floating_lane T, class F>
VARVE_INLINE void for_lanes(index_t n, F const& f) {
  constexpr index_t L = lanes<T>;
  index_t i = 0;
  for (; i + L <= n; i += L) f(i, L);
  if (i < n) f(i, n - i);
}
/// Returns the greatest element of a row; NaN if there is one.
template <floating_lane T>
VARVE_INLINE T row_maximum(index_t n, T const* x) {
  T r = x[0];
  detail::fold_row<max_fold, T>(n, x, &r);
  return r;
}
/// Returns exp(x - m) in `live` lanes.
template <floating_lane T>
VARVE_INLINE batch<T> exp_of_live(T const* x, index_t live, batch<T> const& m) {
  bool const whole = live == static_cast<index_t>(lanes<T>);
  return kernel::exp((whole ? kernel::load(x) : kernel::load_filled(x, static_cast<std::size_t>(live))) - m);
}
} // namespace detail

/// Computes exp(x) / sum(exp(x)) for each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void softmax_rows(index_t rows, index_t n, T const* x, T* y) {
  for (; rows > 0; --rows, x += n, y += n) {
    batch<T> const m(detail::row_maximum(n, x));
    detail::for_lanes<T>(
        n, [&](index_t i, index_t live) { detail::store_live(y + i, live, detail::exp_of_live(x + i, live, m)); });
    batch<T> const scale(T(1) / detail::row_sum(n, y));
    detail::for_lanes<T>(
        n, [&](index_t i, index_t live) { detail::store_live(y + i, live, detail::load_live(y + i, live) * scale); });
  }
}
/// Computes the gradient of `softmax` from its result y: y (g - sum(g y)) for each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void softmax_backward_rows(index_t rows, index_t n, T const* g, T const* y,
                                                                   T* r) {
  for (; rows > 0; --rows, g += n, y += n, r += n) {
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(r + i, live, detail::load_live(g + i, live) * detail::load_live(y + i, live));
    });
    batch<T> const s(detail::row_sum(n, r));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(r + i, live, detail::load_live(y + i, live) * (detail::load_live(g + i, live) - s));
    });
  }
}
/// Computes x - log(sum(exp(x))) for each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void log_softmax_rows(index_t rows, index_t n, T const* x, T* y) {
  for (; rows > 0; --rows, x += n, y += n) {
    batch<T> const m(detail::row_maximum(n, x));
    detail::for_lanes<T>(
        n, [&](index_t i, index_t live) { detail::store_live(y + i, live, detail::exp_of_live(x + i, live, m)); });
    batch<T> const less = kernel::log(batch<T>(detail::row_sum(n, y)));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(y + i, live, detail::load_live(x + i, live) - m - less);
    });
  }
}
/// Computes the gradient of `log_softmax` from its result y: g - exp(y) sum(g) for each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void log_softmax_backward_rows(index_t rows, index_t n, T const* g, T const* y,
                                                                       T* r) {
  batch<T> const zero(T(0));
  for (; rows > 0; --rows, g += n, y += n, r += n) {
    batch<T> const s(detail::row_sum(n, g));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(r + i, live, detail::load_live(g + i, live) - detail::exp_of_live(y + i, live, zero) * s);
    });
  }
}

namespace detail {
/// Calls `f(x, y, live, m, s)` for registers of columns of `count` matrices of `rows` x `columns`. m is the maximum of
/// each column, y receives exp(x - m), and s is its sum.
template <floating_lane T, class F>
VARVE_INLINE void over_columns(index_t count, index_t rows, index_t columns, T const* x, T* y, F const& f) {
  for (; count > 0; --count, x += rows * columns, y += rows * columns)
    for_lanes<T>(columns, [&](index_t j, index_t live) {
      batch<T> m = detail::load_live(x + j, live), s(T(0));
      for (index_t i = 1; i < rows; ++i)
        m = max_fold::combine(m, batch<T>(detail::load_live(x + i * columns + j, live)));
      for (index_t i = 0; i < rows; ++i) {
        batch<T> const e = kernel::exp(batch<T>(detail::load_live(x + i * columns + j, live) - m));
        detail::store_live(y + i * columns + j, live, e);
        s += e;
      }
      f(x + j, y + j, live, m, s);
    });
}
} // namespace detail
/// Computes `softmax` along the columns of matrices that stay in the first-level cache; `log_softmax_columns` computes
/// `log_softmax`.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void softmax_columns(index_t count, index_t rows, index_t columns, T const* x,
                                                             T* y) {
  detail::over_columns(count, rows, columns, x, y,
                       [&](T const*, T* to, index_t live, batch<T> const&, batch<T> const& s) {
                         batch<T> const scale = batch<T>(T(1)) / s;
                         for (index_t i = 0; i < rows; ++i, to += columns)
                           detail::store_live(to, live, detail::load_live(to, live) * scale);
                       });
}
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void log_softmax_columns(index_t count, index_t rows, index_t columns,
                                                                 T const* x, T* y) {
  detail::over_columns(count, rows, columns, x, y,
                       [&](T const* from, T* to, index_t live, batch<T> const& m, batch<T> const& s) {
                         batch<T> const less = kernel::log(s);
                         for (index_t i = 0; i < rows; ++i, to += columns, from += columns)
                           detail::store_live(to, live, detail::load_live(from, live) - m - less);
                       });
}

namespace detail {
/// Computes the mean of a row and the reciprocal of its standard deviation. `scratch` has the length of the row.
template <floating_lane T>
VARVE_INLINE void moments(index_t n, T const* x, T eps, T* scratch, batch<T>& mean, batch<T>& scale) {
  mean = batch<T>(row_sum(n, x) / static_cast<T>(n));
  for_lanes<T>(n, [&](index_t i, index_t live) {
    batch<T> const d = load_live(x + i, live) - mean;
    store_live(scratch + i, live, d * d);
  });
  scale = batch<T>(T(1) / std::sqrt(row_sum(n, scratch) / static_cast<T>(n) + eps));
}
} // namespace detail

/// Computes (x - mean) / sqrt(variance + eps) for each row, times w and plus b unless they are null.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_rows(index_t rows, index_t n, T const* x, T const* w,
                                                             T const* b, T eps, T* y) {
  batch<T> m, scale;
  for (; rows > 0; --rows, x += n, y += n) {
    detail::moments(n, x, eps, y, m, scale);
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> v = (detail::load_live(x + i, live) - m) * scale;
      if (w) v = v * detail::load_live(w + i, live);
      if (b) v += detail::load_live(b + i, live);
      detail::store_live(y + i, live, v);
    });
  }
}
/// Computes the gradient of `layer_norm` with respect to x from the cotangent g.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_backward_rows(index_t rows, index_t n, T const* g, T const* x,
                                                                      T const* w, T eps, T* r) {
  batch<T> m, scale;
  for (; rows > 0; --rows, g += n, x += n, r += n) {
    detail::moments(n, x, eps, r, m, scale);
    auto const weighted = [&](index_t i, index_t live) {
      batch<T> const v = detail::load_live(g + i, live);
      return w ? v * detail::load_live(w + i, live) : v;
    };
    detail::for_lanes<T>(n, [&](index_t i, index_t live) { detail::store_live(r + i, live, weighted(i, live)); });
    batch<T> const mean(detail::row_sum(n, r) / static_cast<T>(n));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const y = (detail::load_live(x + i, live) - m) * scale;
      detail::store_live(r + i, live, weighted(i, live) * y);
    });
    batch<T> const slope(detail::row_sum(n, r) / static_cast<T>(n));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const y = (detail::load_live(x + i, live) - m) * scale;
      detail::store_live(r + i, live, scale * (weighted(i, live) - (mean + y * slope)));
    });
  }
}
/// Computes the gradient of `layer_norm` with respect to its weight: the sum of g times the normalized x over rows. The
/// rows have at most `longest_row` elements.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_backward_weight(index_t rows, index_t n, T const* g, T const* x,
                                                                        T eps, T* r) {
  alignas(64) T scratch[longest_row];
  for (index_t i = 0; i < n; ++i) r[i] = 0;
  batch<T> m, scale;
  for (; rows > 0; --rows, g += n, x += n) {
    detail::moments(n, x, eps, scratch, m, scale);
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const v = (detail::load_live(x + i, live) - m) * scale;
      detail::store_live(r + i, live,
                         kernel::fma<T>(detail::load_live(g + i, live), v, detail::load_live(r + i, live)));
    });
  }
}

} // namespace varve::kernel
