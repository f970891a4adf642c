// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>
#include <varve/core/threads.hpp>
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/reduce_row.hpp>
#include <varve/kernel/strided.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// @file
/// Reductions of strided memory over any set of axes.
namespace varve::kernel {

/// Kind of a reduction. `max` and `min` propagate NaN; `any` and `all` test whether elements are not 0.
enum class reduction : std::uint8_t { sum, prod, max, min, any, all };

/// Returns the dtype of a result: int64 for sums and products of integers and bool, bool for `any` and `all`, and
/// otherwise the dtype of the input.
constexpr dtype reduced_dtype(reduction r, dtype in) {
  if (r == reduction::any || r == reduction::all) return dtype::bool_;
  return r <= reduction::prod && category(in) < 2 ? dtype::int64 : in;
}

namespace detail {
/// Typed functions of one reduction. They fold into the results in `result` instead of overwriting them.
struct reducer {
  void (*clear)(index_t n, void* result);
  void (*row)(index_t n, void const* in, void* result);
  void (*columns)(index_t rows, index_t stride, index_t cols, void const* in, void* result);
  int itemsize;
  bool is_of_own_type; // results have the type of the elements
};
template <class Fold, class T>
constexpr reducer make_reducer() {
  if constexpr (std::is_same_v<T, bool> && !std::is_same_v<result_t<Fold, int>, bool>)
    return detail::make_reducer<Fold, std::uint8_t>(); // bytes 0 and 1: the same code
  else
    return {clear_results<Fold, T>, fold_row<Fold, T>, fold_columns<Fold, T>,
            static_cast<int>(sizeof(typename Fold::template result<T>)),
            std::is_same_v<typename Fold::template result<T>, T>};
}
template <class T>
reducer reducer_of(reduction r) {
  switch (r) {
  case reduction::sum:
    return detail::make_reducer<sum_fold, T>();
  case reduction::prod:
    return detail::make_reducer<prod_fold, T>();
  case reduction::max:
    return detail::make_reducer<max_fold, T>();
  case reduction::min:
    return detail::make_reducer<min_fold, T>();
  case reduction::any:
    return detail::make_reducer<any_fold, T>();
  default:
    return detail::make_reducer<all_fold, T>();
  }
}

/// Sizes and strides of the axes that are in a bit mask or, unless `inside`, not in it.
struct axis_set {
  dims sizes, strides;
  axis_set(dims const& all, index_t const* s, unsigned axes, bool inside) {
    for (int d = 0; d < all.n; ++d)
      if (((axes >> d & 1u) != 0) == inside) sizes.push_back(all.v[d]), strides.push_back(s[d]);
  }
};

/// Computes a reduction in one thread.
VARVE_NOINLINE inline void reduce_part(reducer const& r, dims const& sizes, operand in, unsigned axes, void* out) {
  axis_set const kept(sizes, in.strides, axes, false), reduced(sizes, in.strides, axes, true);
  index_t const results = numel(varve::detail::as_numbers(kept.sizes));
  r.clear(results, out);
  if (numel(varve::detail::as_numbers(sizes)) == 0) return;
  dims const out_strides = contiguous_strides(kept.sizes);
  operand const source(in.data, kept.strides.numbers(), in.itemsize);
  walk to(kept.sizes, {out, out_strides.numbers(), r.itemsize}, &source, 1);
  walk from(reduced.sizes, {in.data, reduced.strides.numbers(), in.itemsize}, nullptr, 0);
  index_t const n = from.size[from.rank - 1], step = from.stride[from.rank - 1][0];
  index_t const m = to.size[to.rank - 1], to_step = to.stride[to.rank - 1][0], in_step = to.stride[to.rank - 1][1];
  bool const rows = step == in.itemsize || n == 1;
  if (!rows && in_step == in.itemsize && step % in.itemsize == 0 && (m >= 4 || n < 64)) { // one row of results at once
    do {
      from.data[0] = to.data[1];
      do r.columns(n, step / in.itemsize, m, from.data[0], to.data[0]);
      while (from.next());
    } while (to.next());
    return;
  }
  constexpr index_t block = 256;
  alignas(64) unsigned char packed[block * 8];
  do {
    for (index_t j = 0; j < m; ++j) {
      from.data[0] = to.data[1] + j * in_step;
      void* const result = to.data[0] + j * to_step;
      do {
        if (rows) r.row(n, from.data[0], result);
        else
          for (index_t i = 0; i < n; i += block) {
            index_t const k = n - i < block ? n - i : block;
            detail::gather(packed, in.itemsize, from.data[0] + i * step, step, k, in.itemsize);
            r.row(k, packed, result);
          }
      } while (from.next());
    }
  } while (to.next());
}
} // namespace detail

namespace detail {
/// Reduces all elements of contiguous memory in fixed parts, whose number does not depend on the threads. The results
/// of the parts are combined in order.
VARVE_NOINLINE inline void reduce_whole(reducer const& r, index_t n, operand in, void* out) {
  varve::fusion::loop_parts const parts(n, 64, n);
  alignas(8) char partial[varve::fusion::loop_parts::most * 8];
  r.clear(parts.count, partial);
  varve::fusion::for_each_part(parts.count, [&](int k) {
    r.row(parts.begin(k + 1) - parts.begin(k), static_cast<char*>(in.data) + parts.begin(k) * in.itemsize,
          partial + k * r.itemsize);
  });
  r.clear(1, out);
  r.row(parts.count, partial, out);
}
/// Computes a reduction in threads. They share the results along the first kept axis with several elements, each of
/// which is computed as by one thread. A reduction of all elements of contiguous memory is split into parts instead.
VARVE_NOINLINE inline void run_reduction(reducer const& r, dims const& sizes, operand in, unsigned axes, void* out) {
  if constexpr (varve::fusion::threaded) {
    index_t const n = numel(varve::detail::as_numbers(sizes));
    if (n >= 4 * varve::fusion::shared_points && r.itemsize == in.itemsize && r.is_of_own_type &&
        (axes + 1) >> sizes.n == 1u && detail::is_contiguous(sizes, in.strides))
      return reduce_whole(r, n, in, out);
    int d = 0;
    while (d < sizes.n && ((axes >> d & 1u) != 0 || sizes.numbers()[d] == 1)) ++d;
    if (n >= varve::fusion::shared_points && d < sizes.n) {
      index_t row = 1; // number of results in one step along the axis
      for (int k = d + 1; k < sizes.n; ++k)
        if ((axes >> k & 1u) == 0) row *= sizes.numbers()[k];
      return varve::fusion::share(sizes.numbers()[d], row >= 64 ? 1 : 64, n, [&](index_t from, index_t to) {
        dims part = sizes;
        part[d] = to - from;
        operand const moved(static_cast<char*>(in.data) + from * in.strides[d] * in.itemsize, in.strides, in.itemsize);
        reduce_part(r, part, moved, axes, static_cast<char*>(out) + from * row * r.itemsize);
      });
    }
  }
  reduce_part(r, sizes, in, axes, out);
}
} // namespace detail

/// Reduces the axes in the bit mask `axes` of an input of dtype `type`. `out` receives the kept axes in order,
/// contiguous, in `reduced_dtype`. An empty reduction returns 0, 1, false or true, but throws `value_error` for `max`
/// and `min`. Floating-point sums are accumulated in blocks, so that their error grows slowly.
template <class = void>
VARVE_NOINLINE void reduce(reduction r, dtype type, dims const& sizes, operand in, unsigned axes, void* out) {
  if (r == reduction::max || r == reduction::min)
    for (int d = 0; d < sizes.n; ++d)
      if ((axes >> d & 1u) != 0 && sizes.numbers()[d] == 0)
        refuse::argument_is_invalid(r == reduction::max ? "max" : "min", "a reduction of no elements has no identity");
  detail::run_reduction(on_dtype(type, "reduce", [r]<class T>() { return detail::reducer_of<T>(r); }), sizes, in, axes,
                        out);
}

namespace detail {
/// Folds `n` more contiguous elements, the first of which has index `start`, into the index of the first greatest (or
/// least) element. NaN exceeds all numbers.
template <bool Greatest, class T>
void find_extreme(index_t n, void const* in, index_t start, void* best_value, std::int64_t* best) {
  auto const* p = static_cast<T const*>(in);
  auto& value = *static_cast<T*>(best_value);
  constexpr index_t block = 1024;
  for (index_t i = 0; i < n; i += block) {
    index_t const m = n - i < block ? n - i : block;
    T extreme = p[i];
    if constexpr (Greatest) fold_row<max_fold, T>(m, p + i, &extreme);
    else fold_row<min_fold, T>(m, p + i, &extreme);
    bool const better =
        start + i == 0 || (value == value && (extreme != extreme || (Greatest ? extreme > value : extreme < value)));
    if (!better) continue;
    index_t k = i;
    if constexpr (lane<T>)
      if (extreme == extreme)
        while (k + static_cast<index_t>(lanes<T>) <= i + m && !kernel::any<T>(kernel::load(p + k) == batch<T>(extreme)))
          k += lanes<T>;
    while (!(p[k] == extreme || (extreme != extreme && p[k] != p[k]))) ++k;
    value = extreme;
    *best = start + k;
  }
}
template <class T>
auto extreme_finder(bool greatest) {
  return greatest ? find_extreme<true, T> : find_extreme<false, T>;
}
} // namespace detail

/// Computes the index of the first greatest (or least) element along `axis` (`torch.argmax`, `torch.argmin`). NaN
/// counts as the extremum. With `axis` -1, searches all elements in row-major order. `out` receives the kept axes in
/// order, contiguous. Throws `value_error` if there are no elements.
template <class = void>
VARVE_NOINLINE void arg_reduce(bool greatest, dtype type, dims const& sizes, operand in, int axis, std::int64_t* out) {
  if (axis < 0 ? numel(varve::detail::as_numbers(sizes)) == 0 : sizes.n > 0 && sizes.numbers()[axis] == 0)
    refuse::argument_is_invalid(greatest ? "argmax" : "argmin", "a reduction of no elements has no result");
  auto const find = on_dtype(type, "argmax", [greatest]<class T>() { return detail::extreme_finder<T>(greatest); });
  constexpr index_t block = 256;
  alignas(64) unsigned char packed[block * 8];
  alignas(8) unsigned char value[8];
  auto scan = [&](char const* p, index_t n, index_t stride, index_t start, std::int64_t* best) {
    if (stride == in.itemsize || n == 1) return find(n, p, start, value, best);
    for (index_t i = 0; i < n; i += block) {
      index_t const k = n - i < block ? n - i : block;
      detail::gather(packed, in.itemsize, p + i * stride, stride, k, in.itemsize);
      find(k, packed, start + i, value, best);
    }
  };
  // Visits the axes other than the scanned one in row-major order. Each position has its own result, or continues the
  // only one.
  bool const whole = axis < 0 || sizes.n == 0;
  if (whole && detail::is_contiguous(sizes, in.strides))
    return scan(static_cast<char const*>(in.data), numel(varve::detail::as_numbers(sizes)), in.itemsize, 0, out);
  int const scanned = whole ? sizes.n - 1 : axis;
  detail::axis_set const outer(sizes, in.strides, 1u << scanned, false);
  index_t const n = sizes.numbers()[scanned], positions = numel(varve::detail::as_numbers(outer.sizes));
  for (index_t k = 0; k < positions; ++k) {
    auto const* p = static_cast<char const*>(in.data);
    index_t rest = k;
    for (int d = outer.sizes.n - 1; d >= 0; rest /= outer.sizes.numbers()[d--])
      p += rest % outer.sizes.numbers()[d] * outer.strides.numbers()[d] * in.itemsize;
    scan(p, n, in.strides[scanned] * in.itemsize, whole ? k * n : 0, whole ? out : out + k);
  }
}

} // namespace varve::kernel
