// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>
#include <varve/kernel/convolution_direct.hpp>
#include <varve/kernel/convolution_lines.hpp>
#include <varve/kernel/matmul.hpp>

/// @file
/// Convolutions as matrix products. The matrix of all field elements that the kernel meets has a row for each channel
/// and tap, and a column for each place. It is never stored as a whole: a panel of it is gathered when the product
/// needs it. For transposed convolutions, tiles of the product are added to the field instead. All scratch memory is on
/// the stack.
namespace varve::kernel {

namespace detail {
/// Number of elements of the tile that buffers results before they are copied.
template <class T>
inline constexpr index_t convolution_tile = 32768 / static_cast<index_t>(sizeof(T));

/// Gathers panels of the matrix of one group; its columns are the places of all samples, one sample after the other.
template <class T>
class panel_gatherer {
public:
  panel_gatherer(convolution_sizes const& sizes, T const* field_of_group) : s(sizes), field(field_of_group) {}

  /// Selects columns [j, j + cols) of the matrix for the following calls of `gather`.
  void move_to(index_t j, index_t cols) {
    runs = 0;
    for (index_t k = 0; k < cols;) {
      index_t const place = (j + k) % s.places(), row = place / s.place[2], i = place % s.place[2],
                    rest = s.place[2] - i;
      run& r = all[runs++];
      r.column = k, r.count = rest < cols - k ? rest : cols - k;
      r.from = field + (j + k) / s.places() * s.groups * s.field_channels * s.field_size();
      r.at[0] = row / s.place[1] * s.stride[0] - s.padding[0], r.at[1] = row % s.place[1] * s.stride[1] - s.padding[1],
      r.at[2] = i * s.stride[2] - s.padding[2];
      k += r.count;
    }
  }
  /// Gathers rows [p, p + rows) of the selected columns side by side. Missing columns and elements outside of the field
  /// are 0.
  VARVE_NOINLINE void gather(index_t p, index_t rows, T* to) const {
    bool const along_taps = s.tap[2] > s.place[2]; // loop over the longer contiguous dimension
    if (along_taps || all[runs - 1].column + all[runs - 1].count < W)
      for (index_t k = 0; k < rows * W; ++k) to[k] = T(0);
    index_t t2 = p % s.tap[2], t1 = p / s.tap[2] % s.tap[1], t0 = p / (s.tap[2] * s.tap[1]) % s.tap[0];
    index_t from = p / s.taps() * s.field_size();
    for (index_t q = 0; q < rows; t2 = 0) { // one line of taps per iteration
      index_t const count = s.tap[2] - t2 < rows - q ? s.tap[2] - t2 : rows - q;
      for (int k = 0; k < runs; ++k) {
        run const& r = all[k];
        index_t const x0 = r.at[0] + t0 * s.dilation[0], x1 = r.at[1] + t1 * s.dilation[1];
        bool const inside = x0 >= 0 && x0 < s.field[0] && x1 >= 0 && x1 < s.field[1];
        T const* const line = inside ? r.from + from + (x0 * s.field[1] + x1) * s.field[2] : nullptr;
        if (along_taps) take_taps(r, line, t2, count, to + q * W);
        else take_places(r, line, t2, count, to + q * W);
      }
      q += count;
      if (++t1 < s.tap[1]) continue;
      t1 = 0;
      if (++t0 < s.tap[0]) continue;
      t0 = 0, from += s.field_size();
    }
  }

private:
  static constexpr index_t W = block_cols<T>;
  /// Consecutive places along the last dimension.
  struct run {
    index_t column, count;
    T const* from;
    index_t at[3]; // where tap 0 meets the field
  };
  convolution_sizes const& s;
  T const* field;
  run all[W];
  int runs = 0;

  static VARVE_INLINE void copy(T* to, T const* from, index_t n) {
    constexpr index_t L = lanes<T>;
    if (n < L)
      return kernel::store_first(to, static_cast<std::size_t>(n),
                                 kernel::load_first(from, static_cast<std::size_t>(n)));
    for (index_t i = 0; i < n - L; i += L) kernel::store(to + i, kernel::load(from + i));
    kernel::store(to + n - L, kernel::load(from + n - L)); // overlaps the previous batch
  }
  void take_places(run const& r, T const* line, index_t t2, index_t count, T* to) const {
    index_t const step = s.stride[2];
    index_t x = r.at[2] + t2 * s.dilation[2];
    for (to += r.column; count > 0; --count, x += s.dilation[2], to += W) {
      index_t from = 0, end = line ? r.count : 0; // the places inside of the field
      if (x < 0) from = step == 1 ? -x : (step - 1 - x) / step;
      if (x + (r.count - 1) * step >= s.field[2] && line) end = x >= s.field[2] ? 0 : (s.field[2] - 1 - x) / step + 1;
      if (from >= end) from = end = 0;
      for (index_t i = 0; i < from; ++i) to[i] = T(0);
      if (step == 1 && from < end) copy(to + from, line + x + from, end - from);
      else
        for (index_t i = from; i < end; ++i) to[i] = line[x + i * step];
      for (index_t i = end; i < r.count; ++i) to[i] = T(0);
    }
  }
  void take_taps(run const& r, T const* line, index_t t2, index_t count, T* to) const {
    if (!line) return;
    index_t const step = s.dilation[2];
    for (index_t i = 0; i < r.count; ++i) {
      index_t const x = r.at[2] + i * s.stride[2] + t2 * step; // for the first row
      index_t const from = x < 0 ? (step - 1 - x) / step : 0,
                    inside = x < s.field[2] ? (s.field[2] - 1 - x) / step + 1 : 0,
                    end = inside < count ? inside : count;
      T* const column = to + r.column + i;
      for (index_t q = from; q < end; ++q) column[q * W] = line[x + q * step];
    }
  }
};

/// Computes columns [begin, end) of places = weight times the gathered matrix, for rows [0, m) of one group.
template <class T>
VARVE_NOINLINE void multiply_gathered(panel_gatherer<T>& seen, index_t m, index_t k, T const* weight, index_t begin,
                                      index_t end, matrix<T> c) {
  constexpr index_t W = block_cols<T>;
  alignas(64) T panel[inner_block * W];
  for (index_t p = 0; p < k; p += inner_block) {
    index_t const kb = k - p < inner_block ? k - p : inner_block;
    matrix<T const> const rows{weight + p, k, 1};
    for (index_t j = begin; j < end; j += W) {
      index_t const cols = end - j < W ? end - j : W;
      seen.move_to(j, cols);
      seen.gather(p, kb, panel);
      matrix<T> const to = c.at(0, j - begin);
      index_t r = detail::multiply_rows<T, block_rows>(0, m, kb, rows, panel, W, to, cols, p > 0);
      r = detail::multiply_rows<T, block_rows / 3>(r, m, kb, rows, panel, W, to, cols, p > 0);
      detail::multiply_rows<T, 1>(r, m, kb, rows, panel, W, to, cols, p > 0);
    }
  }
}
template <class T>
VARVE_NOINLINE void convolve_by_gathering(convolution_sizes const& s, T const* field, T const* weight, T* out) {
  constexpr index_t W = block_cols<T>;
  index_t const k = s.field_channels * s.taps(), places = s.places(), m = s.place_channels;
  bool const across = s.batch > 1 && places < 4 * W; // few places: fill panels from several samples
  alignas(64) T tile[convolution_tile<T>];
  for (index_t g = 0; g < s.groups && s.batch > 0; ++g) {
    panel_gatherer<T> seen(s, field + g * s.field_channels * s.field_size());
    for (index_t i = 0; i < m; i += outer_block) {
      index_t const mb = m - i < outer_block ? m - i : outer_block;
      T const* const w = weight + (g * m + i) * k;
      T* const to = out + (g * m + i) * places; // in the first sample
      if (!across) {
        for (index_t n = 0; n < s.batch; ++n)
          detail::multiply_gathered<T>(seen, mb, k, w, n * places, (n + 1) * places,
                                       {to + n * s.groups * m * places, places, 1});
        continue;
      }
      index_t const some = convolution_tile<T> / mb / W * W, all = s.batch * places;
      for (index_t j = 0; j < all; j += some) {
        index_t const cols = all - j < some ? all - j : some;
        detail::multiply_gathered<T>(seen, mb, k, w, j, j + cols, {tile, some, 1});
        for (index_t r = 0; r < mb; ++r)
          for (index_t q = 0; q < cols; ++q)
            to[((j + q) / places * s.groups * m + r) * places + (j + q) % places] = tile[r * some + q];
      }
    }
  }
}

/// Computes to[i * step] += from[i].
template <class T>
VARVE_INLINE void add_row(T* to, index_t step, T const* from, index_t n) {
  index_t i = 0;
  if (step == 1)
    for (constexpr index_t L = lanes<T>; i + L <= n; i += L)
      kernel::store(to + i, batch<T>(kernel::load(to + i) + kernel::load(from + i)));
  for (; i < n; ++i) to[i * step] += from[i];
}
/// Adds a tile to the field; its rows are those of the matrix from `row` on, its columns the places from `place` on.
template <class T>
VARVE_NOINLINE void spread_tile(convolution_sizes const& s, index_t row, index_t rows, index_t place, index_t cols,
                                T const* tile, T* field) {
  index_t const length = s.place[2], step = s.stride[2];
  for (index_t q = row; q < row + rows; ++q, tile += cols) {
    index_t const o2 = s.offset(2, q % s.tap[2]), o1 = s.offset(1, q / s.tap[2] % s.tap[1]),
                  o0 = s.offset(0, q / (s.tap[2] * s.tap[1]) % s.tap[0]), first = s.first(2, o2), last = s.last(2, o2);
    T* const plane = field + q / s.taps() * s.field_size();
    for (index_t k = 0; k < cols;) {
      index_t const i = (place + k) % length, line = (place + k) / length,
                    count = length - i < cols - k ? length - i : cols - k;
      index_t const x0 = line / s.place[1] * s.stride[0] + o0, x1 = line % s.place[1] * s.stride[1] + o1;
      index_t const from = first > i ? first : i, end = last < i + count ? last : i + count;
      if (from < end && x0 >= 0 && x0 < s.field[0] && x1 >= 0 && x1 < s.field[1])
        detail::add_row(plane + (x0 * s.field[1] + x1) * s.field[2] + from * step + o2, step, tile + k + from - i,
                        end - from);
      k += count;
    }
  }
}
template <class T>
VARVE_NOINLINE void convolve_by_spreading(convolution_sizes const& s, T const* places, T const* weight, T* out) {
  index_t const rows = s.field_channels * s.taps(), count = s.places(), m = s.place_channels,
                size = s.field_channels * s.field_size();
  index_t const width = count < 256 ? count : 256, height = count > 0 ? convolution_tile<T> / width : 0;
  alignas(64) T tile[convolution_tile<T>];
  for (index_t n = 0; n < s.batch * s.groups; ++n) {
    T* const field = out + n * size;
    for (index_t k = 0; k < size; ++k) field[k] = T(0);
    for (index_t j = 0; j < count; j += width)
      for (index_t r = 0; r < rows; r += height) {
        index_t const cols = count - j < width ? count - j : width, some = rows - r < height ? rows - r : height;
        kernel::matmul<T>(some, cols, m, {weight + n % s.groups * m * rows + r, 1, rows},
                          {places + n * m * count + j, count, 1}, {tile, cols, 1});
        detail::spread_tile(s, r, some, j, cols, tile, field);
      }
  }
}
} // namespace detail

/// Computes a convolution of contiguous memory; the operands must not overlap the output. Floating-point ones are
/// computed as matrix products or line by line, unless these would have only one or two rows. Integers wrap around.
template <class T>
void convolve(convolution_sizes const& s, T const* input, T const* weight, T* output) {
  if constexpr (floating_lane<T>) {
    constexpr index_t half = static_cast<index_t>(lanes<T>) / 2; // with shorter lines most lanes would be idle
    bool const taps_in_lines = s.tap[2] > s.place[2] && s.tap[2] >= half && !s.transposed;
    if (half > 0 && taps_in_lines && s.place_channels >= half && s.places() > 2 &&
        detail::convolve_by_products_of_channels(s, input, weight, output))
      return;
    if (half > 0 && taps_in_lines && s.place_channels <= 8 &&
        detail::convolve_by_products_of_lines(s, input, weight, output))
      return;
    bool const in_lines = s.taps() > 1 && (s.transposed ? s.field[2] / s.stride[2] : s.place[2]) >= half;
    if (half > 0 && in_lines && s.tap[2] <= s.place[2] &&
        (s.transposed ? detail::convolve_transposed_by_lines(s, input, weight, output)
                      : detail::convolve_by_lines(s, input, weight, output)))
      return;
    if (s.place_channels > 2 && s.transposed) return detail::convolve_by_spreading(s, input, weight, output);
    if ((s.place_channels > 2 || s.tap[2] > s.place[2]) && s.field_channels > 0 && !s.transposed)
      return detail::convolve_by_gathering(s, input, weight, output);
  }
  kernel::convolve_directly(s, input, weight, output);
}
/// Computes a convolution for a run-time dtype. Throws `dtype_error` for bool and dtypes without kernels.
template <class = void>
VARVE_NOINLINE void convolve(dtype type, convolution_sizes const& s, void const* input, void const* weight,
                             void* output) {
  if (type == dtype::bool_) refuse::dtype_is_not_supported("convolution", name(type));
  on_dtype(type, "convolution", [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      index_t const field = s.groups * s.field_channels * s.field_size(),
                    places = s.groups * s.place_channels * s.places(), of_input = s.transposed ? places : field,
                    of_output = s.transposed ? field : places;
      varve::fusion::share(
          s.batch, 1, s.batch * places * s.field_channels * s.taps() / 8, [&](index_t from, index_t to) {
            convolution_sizes some = s;
            some.batch = to - from;
            kernel::convolve<T>(some, static_cast<T const*>(input) + from * of_input, static_cast<T const*>(weight),
                                static_cast<T*>(output) + from * of_output);
          });
    }
  });
}

} // namespace varve::kernel
