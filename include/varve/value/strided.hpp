// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/list.hpp>
#include <varve/core/threads.hpp>

#include <cstddef>
#include <utility>

namespace varve {

/// The positions of the elements of a value: sizes, strides and offset, counted in elements. View operators compute
/// layouts, for static and for dynamic values.
struct layout {
  dims sizes{};
  dims strides{};
  extent offset = 0;
  /// False if no strides express the requested shape, so that the elements must be copied to row-major order first.
  bool expressible = true;
  /// True if the elements follow one another in row-major order.
  constexpr bool contiguous() const {
    index_t all = 0;
    bool const r = numbers_follow(all);
    return extent::any_symbol(all) ? sizes_follow() : r;
  }
  /// Returns `contiguous` for sizes and strides that are all numbers; otherwise the result is meaningless. `all`
  /// receives the bits of all of them, from which the caller finds out whether one is symbolic.
  constexpr bool numbers_follow(index_t& all) const {
    index_t expected = 1;
    bool r = true;
    for (int k = sizes.n - 1; k >= 0; --k) {
      index_t const size = sizes.v[k].bits, stride = strides.v[k].bits;
      all |= size | stride;
      if (size != 1 && stride != expected) r = false;
      expected = detail::wrapping_product(expected, size);
    }
    return r || expected == 0;
  }
  /// Returns `contiguous` for symbolic sizes and strides. It uses only what is known about the symbols and adds no
  /// guard.
  VARVE_COLD constexpr bool sizes_follow() const {
    extent expected = 1;
    for (int k = sizes.n - 1; k >= 0; --k) {
      if (!known_equal(sizes[k], 1) && !known_equal(strides[k], expected)) return known_equal(numel(sizes), 0);
      expected = detail::wrapping_product(expected, sizes[k]);
    }
    return true;
  }
};

/// Returns the row-major layout of a shape.
constexpr layout contiguous_layout(dims const& sizes) { return {sizes, contiguous_strides(sizes), 0, true}; }

/// A pointer with a layout: the form in which kernels of non-pointwise operators get their operands, static or dynamic.
template <class T>
struct strided {
  T* data;
  dims sizes;
  dims strides;

  constexpr T& at(dims const& index) const {
    index_t o = 0;
    for (int k = 0; k < sizes.n; ++k) o += index[k].bits * strides[k].bits;
    return data[o];
  }
};

/// Calls `f(index)` for every index of a shape in row-major order.
template <class F>
constexpr void for_each_index(dims const& sizes, F&& f) {
  for (int k = 0; k < sizes.n; ++k)
    if (sizes[k].bits == 0) return;
  dims index = sizes;
  for (int k = 0; k < index.n; ++k) index[k] = 0;
  while (true) {
    f(static_cast<dims const&>(index));
    int k = sizes.n - 1;
    for (; k >= 0; --k) {
      if (++index[k].bits < sizes[k].bits) break;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

/// Elements with a fixed step between them.
template <class T>
struct row_of {
  T* data;
  index_t step;
  constexpr T& operator[](index_t i) const { return data[i * step]; }
  constexpr row_of from(index_t i) const { return {data + i * step, step}; }
};
/// Calls `f(n, row...)` for each row of `n` elements of a shape, in row-major order. Each `row` starts at the same
/// index of its operand. Only the strides of the operands are used, not their sizes. Neighbouring dimensions that all
/// operands can traverse with one stride are merged.
template <class F, class... T>
constexpr void for_each_row(dims const& sizes, F&& f, strided<T> const&... s) {
  constexpr int count = sizeof...(T);
  index_t size[max_rank]{1}, at[max_rank]{}, stride[max_rank][count]{}, offset[count]{};
  int rank = 0;
  for (int d = 0; d < sizes.n; ++d) {
    index_t const n = sizes[d], step[count]{s.strides[d]...};
    if (n == 0) return;
    if (n == 1) continue;
    bool joins = rank > 0;
    for (int k = 0; k < count; ++k) joins = joins && stride[rank - 1][k] == step[k] * n;
    if (joins) size[rank - 1] *= n;
    else size[rank++] = n;
    for (int k = 0; k < count; ++k) stride[rank - 1][k] = step[k];
  }
  int const inner = rank > 0 ? rank - 1 : 0;
  if (rank == 0)
    for (int k = 0; k < count; ++k) stride[0][k] = 1;
  for (int d = 0; d >= 0;) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      f(static_cast<index_t>(size[inner]), row_of<T>{s.data + offset[K], stride[inner][K]}...);
    }(std::index_sequence_for<T...>{});
    for (d = inner - 1; d >= 0; --d) {
      bool const wraps = ++at[d] == size[d];
      for (int k = 0; k < count; ++k) offset[k] += wraps ? -stride[d][k] * (size[d] - 1) : stride[d][k];
      if (!wraps) break;
      at[d] = 0;
    }
  }
}

/// Runs `for_each_row` in parts along the longest dimension. Threads share the parts if `cost` times the number of
/// elements is much work. No two rows may write the same element.
template <class F, class... T>
constexpr void for_each_shared_row(dims const& sizes, index_t cost, F const& f, strided<T> const&... s) {
  if constexpr (!fusion::threaded) for_each_row(sizes, f, s...);
  else {
    int longest = 0;
    for (int k = 1; k < sizes.n; ++k)
      if (sizes[k].bits > sizes[longest].bits) longest = k;
    if (sizes.n == 0) return for_each_row(sizes, f, s...);
    fusion::share(sizes[longest].bits, 1, cost * numel(sizes).bits, [&](index_t from, index_t to) {
      dims part = sizes;
      part[longest] = to - from;
      for_each_row(part, f, strided<T>{s.data + from * s.strides[longest].bits, part, s.strides}...);
    });
  }
}

namespace detail {
/// True if two elements of a shape with these strides share a place in memory. Checks the elements one by one.
constexpr bool some_meet(dims const& sizes, dims const& strides, index_t span) {
  if (numel(sizes) > span) return true;
  list<char> taken(static_cast<std::size_t>(span), 0);
  bool met = false;
  for_each_index(sizes, [&](dims const& i) {
    index_t o = 0;
    for (int k = 0; k < sizes.n; ++k) o += i[k].bits * strides[k].bits;
    char& there = taken[static_cast<std::size_t>(o)];
    met = met || there;
    there = 1;
  });
  return met;
}
} // namespace detail
/// True if a layout shows an element of its memory more than once. The strides alone usually decide: if each is longer
/// than the reach of the shorter ones, no element repeats. Only unusual `as_strided` layouts need a search.
constexpr bool repeats_elements(dims const& sizes, dims const& strides) {
  if (numel(sizes) == 0) return false;
  bool done[max_rank]{};
  for (extent reach = 0;;) {
    int shortest = -1;
    for (int k = 0; k < sizes.n; ++k)
      if (!done[k] && !known_equal(sizes[k], 1) && (shortest < 0 || strides[k] < strides[shortest])) shortest = k;
    if (shortest < 0) return false;
    if (strides[shortest] == 0) return true;
    if (strides[shortest] <= reach) break;
    reach += (sizes[shortest] - 1) * strides[shortest];
    done[shortest] = true;
  }
  index_t span = 1;
  for (int k = 0; k < sizes.n; ++k) span += (sizes[k] - 1) * strides[k];
  return detail::some_meet(sizes.as_numbers(), strides.as_numbers(), span);
}

/// Returns strides with which `in` iterates over the broadcast shape `to`: 0 for repeated dimensions.
constexpr dims broadcast_strides(dims const& sizes, dims const& strides, dims const& to) {
  dims r = to;
  int const shift = to.n - sizes.n;
  for (int k = 0; k < to.n; ++k) {
    extent const size = k < shift ? extent(1) : sizes[k - shift];
    bool const repeated = known_equal(size, 1) || (!known_equal(size, to[k]) && size == 1);
    r[k] = repeated ? extent(0) : strides[k - shift];
  }
  return r;
}

} // namespace varve
