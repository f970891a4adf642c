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
/// Up to one batch of adjacent columns, each a row of stride `inner`.
template <class T>
void softmax_columns(softmax_kind kind, std::size_t n, std::size_t inner, std::size_t cols, T const* x, T* y) {
  using V = batch<T>;
  auto get = [&](T const* p) { return cols == lanes<T> ? kernel::load(p) : kernel::load_first(p, cols); };
  auto put = [&](T* p, V const& v) { cols == lanes<T> ? kernel::store(p, v) : kernel::store_first(p, cols, v); };
  V m = get(x);
  for (std::size_t i = 1; i < n; ++i) m = kernel::maximum(m, get(x + i * inner));
  if (kind == softmax_kind::logsumexp) m = kernel::where(kernel::eq(kernel::abs(m), V(std::numeric_limits<T>::infinity())), V(T(0)), m);
  V sum(T(0));
  for (std::size_t i = 0; i < n; ++i) {
    V const e = kernel::exp(V(get(x + i * inner) - m));
    sum += e;
    if (kind == softmax_kind::softmax) put(y + i * inner, e);
  }
  if (kind == softmax_kind::logsumexp) return put(y, V(m + kernel::log(sum)));
  V const log_sum = kernel::log(sum), factor = kernel::reciprocal(sum);
  for (std::size_t i = 0; i < n; ++i) {
    if (kind == softmax_kind::softmax) put(y + i * inner, V(get(y + i * inner) * factor));
    else put(y + i * inner, V(get(x + i * inner) - m - log_sum));
  }
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
      for (std::size_t j = 0; j < width; j += lanes<T>) detail::softmax_columns(kind, rows, width, width - j < lanes<T> ? width - j : lanes<T>, x + j, y + j);
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
