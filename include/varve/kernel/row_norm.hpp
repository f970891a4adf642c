// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/math.hpp>
#include <varve/kernel/reduce_row.hpp>

/// @file
/// Functions that normalize rows, `softmax`, `log_softmax` and `layer_norm`, with their gradients: a row at a time,
/// which stays in the first cache between its passes. Rows are contiguous, results may not overlap operands.
namespace varve::kernel {

namespace detail {
/// Calls `f(i, count)` for the registers of a row; in the last call fewer lanes may be live.
template <floating_lane T, class F>
VARVE_INLINE void for_lanes(index_t n, F const& f) {
  constexpr index_t L = lanes<T>;
  index_t i = 0;
  for (; i + L <= n; i += L) f(i, L);
  if (i < n) f(i, n - i);
}
/// The greatest element of a row; NaN if there is one.
template <floating_lane T>
VARVE_INLINE T row_maximum(index_t n, T const* x) {
  T r = x[0];
  detail::fold_row<max_fold, T>(n, x, &r);
  return r;
}
/// The sum of `f(i, count)` over the registers of a row, in two chains; dead lanes must be 0.
template <floating_lane T, class F>
VARVE_INLINE T sum_over_row(index_t n, F const& f) {
  constexpr index_t L = lanes<T>;
  batch<T> a(T(0)), b(T(0));
  index_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) a += f(i, L), b += f(i + L, L);
  for (; i < n; i += L) a += f(i, n - i < L ? n - i : L);
  return kernel::reduce_sum(a + b);
}
/// exp(x - m) in `live` lanes, 0 in the others.
template <floating_lane T>
VARVE_INLINE batch<T> exp_of_live(T const* x, index_t live, batch<T> const& m) {
  if (live == static_cast<index_t>(lanes<T>)) return kernel::exp(kernel::load(x) - m);
  T part[lanes<T>]{};
  kernel::store_first<T>(part, static_cast<std::size_t>(live),
                         kernel::exp(kernel::load_filled(x, static_cast<std::size_t>(live)) - m));
  return kernel::load(part);
}
} // namespace detail

/// exp(x) / sum(exp(x)) of each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void softmax_rows(index_t rows, index_t n, T const* x, T* y) {
  for (; rows > 0; --rows, x += n, y += n) {
    batch<T> const m(detail::row_maximum(n, x));
    batch<T> const scale(T(1) / detail::sum_over_row<T>(n, [&](index_t i, index_t live) {
                           batch<T> const e = detail::exp_of_live(x + i, live, m);
                           detail::store_live(y + i, live, e);
                           return e;
                         }));
    detail::for_lanes<T>(
        n, [&](index_t i, index_t live) { detail::store_live(y + i, live, detail::load_live(y + i, live) * scale); });
  }
}
/// y (g - sum(g y)) of each row: the gradient of `softmax`, of whose result.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void softmax_backward_rows(index_t rows, index_t n, T const* g, T const* y,
                                                                   T* r) {
  for (; rows > 0; --rows, g += n, y += n, r += n) {
    batch<T> const s(detail::sum_over_row<T>(
        n, [&](index_t i, index_t live) { return detail::load_live(g + i, live) * detail::load_live(y + i, live); }));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(r + i, live, detail::load_live(y + i, live) * (detail::load_live(g + i, live) - s));
    });
  }
}
/// x - log(sum(exp(x))) of each row.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void log_softmax_rows(index_t rows, index_t n, T const* x, T* y) {
  for (; rows > 0; --rows, x += n, y += n) {
    batch<T> const m(detail::row_maximum(n, x));
    T const sum =
        detail::sum_over_row<T>(n, [&](index_t i, index_t live) { return detail::exp_of_live(x + i, live, m); });
    batch<T> const less = kernel::log(batch<T>(sum));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(y + i, live, detail::load_live(x + i, live) - m - less);
    });
  }
}
/// g - exp(y) sum(g) of each row: the gradient of `log_softmax`, of whose result.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void log_softmax_backward_rows(index_t rows, index_t n, T const* g, T const* y,
                                                                       T* r) {
  batch<T> const zero(T(0));
  for (; rows > 0; --rows, g += n, y += n, r += n) {
    batch<T> const s(
        detail::sum_over_row<T>(n, [&](index_t i, index_t live) { return detail::load_live(g + i, live); }));
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      detail::store_live(r + i, live, detail::load_live(g + i, live) - detail::exp_of_live(y + i, live, zero) * s);
    });
  }
}

namespace detail {
/// The mean of a row and the reciprocal of its standard deviation.
template <floating_lane T>
VARVE_INLINE void moments(index_t n, T const* x, T eps, batch<T>& mean, batch<T>& scale) {
  T const m = sum_over_row<T>(n, [&](index_t i, index_t live) { return load_live(x + i, live); }) / static_cast<T>(n);
  mean = batch<T>(m);
  T const variance = sum_over_row<T>(n,
                                     [&](index_t i, index_t live) {
                                       batch<T> d = load_live(x + i, live) - mean;
                                       if (live == static_cast<index_t>(lanes<T>)) return d * d;
                                       T part[lanes<T>]{}; // the mean is not subtracted from dead lanes
                                       kernel::store_first<T>(part, static_cast<std::size_t>(live), d);
                                       d = kernel::load(part);
                                       return d * d;
                                     }) /
                     static_cast<T>(n);
  scale = batch<T>(T(1) / std::sqrt(variance + eps));
}
} // namespace detail

/// (x - mean) / sqrt(variance + eps) of each row, times w and plus b where they are not null.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_rows(index_t rows, index_t n, T const* x, T const* w,
                                                             T const* b, T eps, T* y) {
  batch<T> m, scale;
  for (; rows > 0; --rows, x += n, y += n) {
    detail::moments(n, x, eps, m, scale);
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> v = (detail::load_live(x + i, live) - m) * scale;
      if (w) v = v * detail::load_live(w + i, live);
      if (b) v += detail::load_live(b + i, live);
      detail::store_live(y + i, live, v);
    });
  }
}
/// The gradient of `layer_norm` by x, of the cotangent g.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_backward_rows(index_t rows, index_t n, T const* g, T const* x,
                                                                      T const* w, T eps, T* r) {
  batch<T> m, scale;
  for (; rows > 0; --rows, g += n, x += n, r += n) {
    detail::moments(n, x, eps, m, scale);
    auto const weighted = [&](index_t i, index_t live) {
      batch<T> const v = detail::load_live(g + i, live);
      return w ? v * detail::load_live(w + i, live) : v;
    };
    batch<T> along(T(0));
    T const all = detail::sum_over_row<T>(n, [&](index_t i, index_t live) {
      batch<T> const v = weighted(i, live); // dead lanes are 0
      along = kernel::fma<T>(v, detail::load_live(x + i, live) - m, along);
      return v;
    });
    T const part = T(1) / static_cast<T>(n);
    batch<T> const mean(all * part), slope = batch<T>(kernel::reduce_sum(along) * part) * scale * scale;
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const d = detail::load_live(x + i, live) - m;
      detail::store_live(r + i, live, scale * (weighted(i, live) - mean - d * slope));
    });
  }
}
/// The gradient of `layer_norm` by its weight: the sum over rows of g times the normalized x.
template <floating_lane T>
__attribute__((flatten)) VARVE_NOINLINE void layer_norm_backward_weight(index_t rows, index_t n, T const* g, T const* x,
                                                                        T eps, T* r) {
  for (index_t i = 0; i < n; ++i) r[i] = 0;
  batch<T> m, scale;
  for (; rows > 0; --rows, g += n, x += n) {
    detail::moments(n, x, eps, m, scale);
    detail::for_lanes<T>(n, [&](index_t i, index_t live) {
      batch<T> const v = (detail::load_live(x + i, live) - m) * scale;
      detail::store_live(r + i, live,
                         kernel::fma<T>(detail::load_live(g + i, live), v, detail::load_live(r + i, live)));
    });
  }
}

} // namespace varve::kernel
