// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/threads.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

/// @file
/// Pooling windows of images in memory: their maxima with the indices of these, and their sums.
namespace varve::kernel {

/// Windows over up to three dimensions. Missing dimensions are added in front with size 1.
struct pool_windows {
  index_t in[3]{1, 1, 1}, out[3]{1, 1, 1}, size[3]{1, 1, 1}, step[3]{1, 1, 1}, margin[3]{0, 0, 0}, dilation[3]{1, 1, 1};
  constexpr index_t elements() const { return in[0] * in[1] * in[2]; }
  constexpr index_t count() const { return out[0] * out[1] * out[2]; }
  /// Returns the index of element k of window o along an axis; it may lie outside of the image.
  constexpr index_t place(int a, index_t o, index_t k) const { return o * step[a] - margin[a] + k * dilation[a]; }
  /// Returns the index of the first element of a window that lies inside of the image.
  constexpr index_t first(int a, index_t o) const {
    index_t const at = o * step[a] - margin[a];
    return at >= 0 ? at : at + (dilation[a] - 1 - at) / dilation[a] * dilation[a];
  }
  /// Returns whether each window along an axis has an element inside of the image.
  constexpr bool reach_inside(int a) const {
    for (index_t o = 0; o < out[a]; ++o)
      if (first(a, o) >= in[a]) return false;
    return true;
  }
};

namespace detail {
/// The windows of a row, from `first` to before `stop`, whose element k of the last axis lies inside of the image.
/// Window o has it at index `o * step + shift`. A copy of the step, since what loops write may alias the windows.
struct inside_row {
  index_t first, stop, step, shift;
  inside_row(pool_windows const& w, index_t k) : step(w.step[2]), shift(k * w.dilation[2] - w.margin[2]) {
    index_t const room = w.in[2] - shift, end = room <= 0 ? 0 : (room + step - 1) / step;
    first = shift >= 0 ? 0 : (step - 1 - shift) / step;
    stop = end < w.out[2] ? end : w.out[2];
  }
};
/// Updates the maxima of the windows of a row by their elements k of the last axis. `x` is a row of the image, and
/// `from` is the index of its first element.
template <class T>
void pool_row(pool_windows const& w, index_t k, T const* x, index_t from, T* best, std::int64_t* at) {
  inside_row const in(w, k);
  for (index_t first = in.first; first < in.stop; ++first) {
    index_t const place = first * in.step + in.shift;
    T const v = x[place], b = best[first];
    bool take = v > b;
    if constexpr (std::is_floating_point_v<T>) take = take | ((v != v) & (b == b));
    best[first] = take ? v : b;
    at[first] = take ? from + place : at[first];
  }
}
} // namespace detail

/// Calls `row(begin)` for each row of an image in which the windows (i, j, all) have elements; `begin` is the index of
/// its first element.
template <class F>
void for_rows_of_windows(pool_windows const& w, index_t i, index_t j, F const& row) {
  for (index_t p = 0; p < w.size[0]; ++p)
    for (index_t q = 0; q < w.size[1]; ++q) {
      index_t const a = w.place(0, i, p), b = w.place(1, j, q);
      if (a >= 0 && a < w.in[0] && b >= 0 && b < w.in[1]) row((a * w.in[1] + b) * w.in[2]);
    }
}

/// Computes the sum of the elements of each window of `lead` images, in threads.
template <class T>
void sum_pool(index_t lead, pool_windows const& w, T const* x, T* sums) {
  varve::fusion::share(lead * w.out[0], 1, lead * w.count() * w.size[0] * w.size[1], [&](index_t from, index_t to) {
    for (; from < to; ++from)
      for (index_t j = 0; j < w.out[1]; ++j) {
        T* const y = sums + (from * w.out[1] + j) * w.out[2];
        for (index_t o = 0; o < w.out[2]; ++o) y[o] = T(0);
        kernel::for_rows_of_windows(w, from % w.out[0], j, [&](index_t begin) {
          T const* const r = x + from / w.out[0] * w.elements() + begin;
          for (index_t k = 0; k < w.size[2]; ++k) {
            detail::inside_row const in(w, k);
            for (index_t o = in.first; o < in.stop; ++o) y[o] += r[o * in.step + in.shift];
          }
        });
      }
  });
}

/// Computes the maximum of each window of `lead` images (the first NaN, if there is one) and its index in the image.
template <class T>
void max_pool(index_t lead, pool_windows const& w, T const* x, T* best, std::int64_t* at) {
  T const least = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  for (index_t l = 0; l < lead; ++l, x += w.elements())
    for (index_t i = 0; i < w.out[0]; ++i)
      for (index_t j = 0; j < w.out[1]; ++j, best += w.out[2], at += w.out[2]) {
        index_t const corner = (w.first(0, i) * w.in[1] + w.first(1, j)) * w.in[2];
        for (index_t o = 0; o < w.out[2]; ++o) best[o] = least, at[o] = corner + w.first(2, o);
        kernel::for_rows_of_windows(w, i, j, [&](index_t from) {
          for (index_t k = 0; k < w.size[2]; ++k) detail::pool_row(w, k, x + from, from, best, at);
        });
      }
}

} // namespace varve::kernel
