// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <limits>
#include <varve/core/dtype.hpp>
#include <varve/kernel/math.hpp>

/// @file
/// softmax, log_softmax and logsumexp along the middle of a contiguous (outer, n, inner) view: the greatest element is subtracted first.
namespace varve::kernel {

/// Which of the three functions.
enum class softmax_kind { softmax, log_softmax, logsumexp };

namespace detail {
inline constexpr std::size_t column_strip = 256;
/// The last, incomplete batch of a row: missing lanes are -inf, which neither the maximum nor a sum of exponentials sees.
template <class T>
VARVE_INLINE batch<T> load_padded(T const* p, std::size_t n) {
  T v[lanes<T>];
  for (std::size_t i = 0; i < lanes<T>; ++i) v[i] = -std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < n; ++i) v[i] = p[i];
  return kernel::load(v);
}
/// One contiguous row; a logsumexp writes one element.
template <class T>
void softmax_row(softmax_kind kind, std::size_t n, T const* x, T* y) {
  using V = batch<T>;
  constexpr std::size_t L = lanes<T>;
  std::size_t const whole = n / L * L, rest = n - whole;
  V const tail = detail::load_padded(x + whole, rest);
  V top = tail;
  for (std::size_t i = 0; i < whole; i += L) top = kernel::maximum(top, kernel::load(x + i));
  T const m = kernel::reduce_lanes(top, [](T a, T b) { return kernel::maximum(a, b); });
  bool const infinite = kernel::abs(m) == std::numeric_limits<T>::infinity();
  T const shift = kind == softmax_kind::logsumexp && infinite ? T(0) : m;
  V const s(shift);
  V sum(T(0)), last(T(0));
  for (std::size_t i = 0; i < whole; i += L) {
    V const e = kernel::exp(V(kernel::load(x + i) - s));
    sum += e;
    if (kind == softmax_kind::softmax) kernel::store(y + i, e);
  }
  if (rest != 0) sum += last = kernel::exp(V(tail - s));
  T const total = kernel::reduce_sum(sum);
  if (kind == softmax_kind::softmax) {
    V const factor(T(1) / total);
    for (std::size_t i = 0; i < whole; i += L) kernel::store(y + i, V(kernel::load(y + i) * factor));
    if (rest != 0) kernel::store_first(y + whole, rest, V(last * factor));
  } else if (kind == softmax_kind::log_softmax) {
    V const log_total(std::log(total));
    for (std::size_t i = 0; i < whole; i += L) kernel::store(y + i, V(kernel::load(x + i) - s - log_total));
    if (rest != 0) kernel::store_first(y + whole, rest, V(tail - s - log_total));
  } else *y = shift + std::log(total);
}
/// Applies f to whole batches of columns, and to the incomplete last one through padding.
template <class T, class F>
VARVE_INLINE void each_batch(std::size_t cols, F f) {
  constexpr std::size_t L = lanes<T>;
  std::size_t j = 0;
  for (; j + L <= cols; j += L) f(j, [](T const* p) { return kernel::load(p); }, [](T* p, batch<T> const& v) { kernel::store(p, v); });
  if (j < cols)
    f(j, [n = cols - j](T const* p) { return kernel::load_first(p, n); }, [n = cols - j](T* p, batch<T> const& v) { kernel::store_first(p, n, v); });
}
/// A strip of adjacent columns: the rows, `inner` apart, are read in order, and the maxima and sums of the strip stay in the first cache.
template <class T>
void softmax_columns(softmax_kind kind, std::size_t n, std::size_t inner, std::size_t cols, T const* x, T* y) {
  using V = batch<T>;
  T top[column_strip], sum[column_strip];
  for (std::size_t j = 0; j < cols; ++j) top[j] = x[j], sum[j] = 0;
  for (std::size_t i = 1; i < n; ++i)
    detail::each_batch<T>(cols, [&](std::size_t j, auto get, auto put) { put(top + j, kernel::maximum(get(top + j), get(x + i * inner + j))); });
  if (kind == softmax_kind::logsumexp)
    for (std::size_t j = 0; j < cols; ++j)
      if (kernel::abs(top[j]) == std::numeric_limits<T>::infinity()) top[j] = 0;
  for (std::size_t i = 0; i < n; ++i)
    detail::each_batch<T>(cols, [&](std::size_t j, auto get, auto put) {
      V const e = kernel::exp(V(get(x + i * inner + j) - get(top + j)));
      put(sum + j, V(get(sum + j) + e));
      if (kind == softmax_kind::softmax) put(y + i * inner + j, e);
    });
  if (kind == softmax_kind::softmax)
    for (std::size_t j = 0; j < cols; ++j) sum[j] = T(1) / sum[j];
  else
    for (std::size_t j = 0; j < cols; ++j) top[j] += std::log(sum[j]);
  for (std::size_t i = 0; i < (kind == softmax_kind::logsumexp ? 1 : n); ++i)
    detail::each_batch<T>(cols, [&](std::size_t j, auto get, auto put) {
      T* const to = y + i * inner + j;
      put(to, kind == softmax_kind::softmax ? V(get(to) * get(sum + j)) : kind == softmax_kind::logsumexp ? get(top + j) : V(get(x + i * inner + j) - get(top + j)));
    });
}
} // namespace detail

/// The function over a typed view: `x` is (outer, n, inner) contiguous, `y` of the same shape, or (outer, inner) for logsumexp. `y` may be `x`.
/// An infinite maximum gives NaN, as in PyTorch, but for logsumexp, where it is the result; with n = 0 the latter is -inf.
template <floating_lane T>
void softmax(softmax_kind kind, index_t outer, index_t n, index_t inner, T const* x, T* y) {
  if (n == 0) {
    if (kind == softmax_kind::logsumexp)
      for (index_t i = 0; i < outer * inner; ++i) y[i] = -std::numeric_limits<T>::infinity();
    return;
  }
  auto const rows = static_cast<std::size_t>(n), width = static_cast<std::size_t>(inner);
  std::size_t const out_step = kind == softmax_kind::logsumexp ? width : rows * width;
  for (index_t k = 0; k < outer; ++k, x += rows * width, y += out_step) {
    if (inner == 1) detail::softmax_row(kind, rows, x, y);
    else
      for (std::size_t j = 0; j < width; j += detail::column_strip)
        detail::softmax_columns(kind, rows, width, width - j < detail::column_strip ? width - j : detail::column_strip, x + j, y + j);
  }
}
/// The same by dtype: float32 or float64, else `dtype_error`.
template <class = void>
VARVE_NOINLINE void softmax(softmax_kind kind, dtype type, index_t outer, index_t n, index_t inner, void const* x, void* y) {
  if (type == dtype::float32) kernel::softmax(kind, outer, n, inner, static_cast<float const*>(x), static_cast<float*>(y));
  else if (type == dtype::float64) kernel::softmax(kind, outer, n, inner, static_cast<double const*>(x), static_cast<double*>(y));
  else refuse::dtype_is_not_supported("softmax", name(type));
}

} // namespace varve::kernel
