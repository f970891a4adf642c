// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// @file
/// Typed loops of reductions: a contiguous row into one result, and several rows into a row of results.
namespace varve::kernel {

/// Fold for sums. A fold defines its result type, its identity and how two values (batches or scalars) combine.
struct sum_fold {
  template <class T>
  using result = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  static constexpr bool repeatable = false; // whether an element may be folded in twice
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::add(a, b);
  }
};
/// Fold for products.
struct prod_fold : sum_fold {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::mul(a, b);
  }
};
/// Fold for the greatest element; NaN if there is one.
struct max_fold {
  template <class T>
  using result = T;
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  static constexpr bool repeatable = true;
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::maximum(a, b);
  }
};
/// Fold for the least element; NaN if there is one.
struct min_fold : max_fold {
  template <class T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : (std::numeric_limits<T>::max)();
  }
  template <class V>
  static constexpr V combine(V const& a, V const& b) {
    return kernel::minimum(a, b);
  }
};
/// Fold for whether any element is not 0.
struct any_fold {
  template <class>
  using result = bool;
  template <class>
  static constexpr bool identity() {
    return false;
  }
  static constexpr bool repeatable = true;
  static constexpr bool combine(bool a, bool b) { return a | b; }
};
/// Fold for whether all elements are not 0.
struct all_fold : any_fold {
  template <class>
  static constexpr bool identity() {
    return true;
  }
  static constexpr bool combine(bool a, bool b) { return a & b; }
};

namespace detail {
template <class Fold, class T>
using result_t = typename Fold::template result<T>;
/// True if a fold runs on batches, because elements and results have the same type.
template <class Fold, class T>
inline constexpr bool folds_batches = lane<T> && std::is_same_v<result_t<Fold, T>, T>;
/// Converts an element to a result; a bool result is `x != 0`.
template <class Fold, class T>
constexpr result_t<Fold, T> to_result(T x) {
  if constexpr (std::is_same_v<result_t<Fold, T>, bool>) return x != T(0);
  else return static_cast<result_t<Fold, T>>(x);
}

template <class Fold, class T>
void clear_results(index_t n, void* results) {
  auto* const r = static_cast<result_t<Fold, T>*>(results);
  for (index_t i = 0; i < n; ++i) r[i] = Fold::template identity<result_t<Fold, T>>();
}

/// Folds a contiguous row of at least one batch into four accumulators. (It is flattened, since compilers otherwise do
/// not inline the maximum.)
template <class Fold, class T>
__attribute__((flatten)) T fold_batches(index_t n, T const* p) {
  using V = batch<T>;
  constexpr index_t L = lanes<T>;
  V const start(Fold::template identity<T>());
  V a = start, b = start, c = start, d = start;
  index_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = Fold::combine(a, kernel::load(p + i));
    b = Fold::combine(b, kernel::load(p + i + L));
    c = Fold::combine(c, kernel::load(p + i + 2 * L));
    d = Fold::combine(d, kernel::load(p + i + 3 * L));
  }
  for (; i + L <= n; i += L) a = Fold::combine(a, kernel::load(p + i));
  if (i < n && Fold::repeatable) b = Fold::combine(b, kernel::load(p + n - L)), i = n;
  a = Fold::combine(Fold::combine(a, b), Fold::combine(c, d));
  T r;
  if constexpr (std::is_same_v<Fold, sum_fold>) {
    if (i < n) a += kernel::load_first(p + i, static_cast<std::size_t>(n - i));
    r = kernel::reduce_sum(a);
  } else {
    r = kernel::reduce_lanes(a, [](T x, T y) { return Fold::combine(x, y); });
    for (; i < n; ++i) r = Fold::combine(r, p[i]);
  }
  return r;
}
/// Folds a row by halves if it is long, so that the rounding error of a floating-point sum grows with the logarithm of
/// the length.
template <class Fold, class T>
VARVE_NOINLINE T fold_halves(index_t n, T const* p) {
  constexpr index_t leaf = 512 * lanes<T>; // 128 additions in each lane
  if (n <= leaf) return detail::fold_batches<Fold>(n, p);
  index_t const half = (n / 2 + leaf - 1) / leaf * leaf;
  return Fold::combine(detail::fold_halves<Fold>(half, p), detail::fold_halves<Fold>(n - half, p + half));
}

/// Folds `n` contiguous elements into one result.
template <class Fold, class T>
void fold_row(index_t n, void const* in, void* result) {
  auto const* const p = static_cast<T const*>(in);
  auto r = *static_cast<result_t<Fold, T>*>(result);
  if constexpr (folds_batches<Fold, T>) {
    if (n >= static_cast<index_t>(lanes<T>)) {
      *static_cast<T*>(result) = Fold::combine(r, detail::fold_halves<Fold>(n, p));
      return;
    }
  }
  for (index_t i = 0; i < n; ++i) r = Fold::combine(r, detail::to_result<Fold>(p[i]));
  *static_cast<result_t<Fold, T>*>(result) = r;
}

/// Computes r[j] = combine(r[j], fold of column j) over `rows` >= 1 rows.
template <class Fold, class T>
VARVE_NOINLINE void fold_some_rows(index_t rows, index_t stride, index_t cols, T const* p, result_t<Fold, T>* r) {
  index_t j = 0;
  if constexpr (folds_batches<Fold, T>) {
    constexpr index_t L = lanes<T>;
    for (; j + L <= cols; j += L) {
      T const* q = p + j;
      batch<T> v = kernel::load(q);
      for (index_t k = 1; k < rows; ++k) v = Fold::combine(v, kernel::load(q += stride));
      kernel::store(r + j, Fold::combine(kernel::load(r + j), v));
    }
  }
  for (; j < cols; ++j)
    for (index_t k = 0; k < rows; ++k) r[j] = Fold::combine(r[j], detail::to_result<Fold>(p[k * stride + j]));
}
inline constexpr index_t strip =
    512; // columns and rows folded at a time, so that results and partial results stay in the first-level cache

/// Overwrites up to one strip of results with the fold of `rows` rows. Many rows are halved, as long rows are.
template <class Fold, class T>
VARVE_NOINLINE void fold_strip(index_t rows, index_t stride, index_t cols, T const* p, result_t<Fold, T>* r) {
  constexpr index_t some = 8;
  if (rows > strip) {
    result_t<Fold, T> second[strip];
    index_t const half = (rows / 2 + strip - 1) / strip * strip;
    detail::fold_strip<Fold>(half, stride, cols, p, r);
    detail::fold_strip<Fold>(rows - half, stride, cols, p + half * stride, second);
    for (index_t j = 0; j < cols; ++j) r[j] = Fold::combine(r[j], second[j]);
    return;
  }
  detail::clear_results<Fold, T>(cols, r);
  for (index_t i = 0; i < rows; i += some)
    detail::fold_some_rows<Fold>(rows - i < some ? rows - i : some, stride, cols, p + i * stride, r);
}
/// Folds `rows` rows at distance `stride` (in elements) into a row of `cols` results. The rows are read in order.
template <class Fold, class T>
void fold_columns(index_t rows, index_t stride, index_t cols, void const* in, void* results) {
  auto* const r = static_cast<result_t<Fold, T>*>(results);
  result_t<Fold, T> part[strip];
  for (index_t j = 0; j < cols; j += strip) {
    index_t const w = cols - j < strip ? cols - j : strip;
    detail::fold_strip<Fold>(rows, stride, w, static_cast<T const*>(in) + j, part);
    for (index_t k = 0; k < w; ++k) r[j + k] = Fold::combine(r[j + k], part[k]);
  }
}
} // namespace detail

} // namespace varve::kernel
