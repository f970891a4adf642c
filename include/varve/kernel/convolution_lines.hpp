// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/convolution_direct.hpp>
#include <varve/kernel/matmul_block.hpp>
#include <varve/kernel/simd.hpp>

/// @file
/// Convolutions in one or two dimensions, line by line: a tile of the field is copied with its padding, so that what a
/// tap meets at places that follow one another is contiguous memory, whatever the stride; registers then hold several
/// channels of a few lines of places while all taps go by. No matrix is made. Transposed convolutions are as many
/// convolutions as there are steps in a stride, each with the taps that meet its places. The gradient of a weight,
/// whose "kernel" is as large as the field, sums products of lines.
namespace varve::kernel::detail {

/// Elements of the scratch memory on the stack.
template <class T>
inline constexpr index_t padded_tile = 196608 / static_cast<index_t>(sizeof(T));
inline constexpr int most_taps = 512, most_phases = 16;

/// Every second element of two registers. (Where `live` lanes are wanted, the one behind them is not: it is 0.)
template <class T, std::size_t... I>
VARVE_INLINE batch<T> evens(batch<T> const& a, batch<T> const& b, std::index_sequence<I...>) {
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(
      __builtin_shufflevector(std::bit_cast<native>(a), std::bit_cast<native>(b), (2 * I)...));
}
/// The elements at `from`, `from + step`, ..., as many as are live; the other lanes are 0.
template <class T>
VARVE_INLINE batch<T> load_apart(T const* from, index_t step, index_t live) {
  constexpr index_t L = lanes<T>;
  live = live < L ? live : L;
  if (step == 1) return detail::load_live(from, live);
  if constexpr (L > 1)
    if (step == 2) { // what lies behind the last is not read
      index_t const last = 2 * live - 1;
      return detail::evens<T>(detail::load_live(from, last < L ? last : L),
                              last > L ? detail::load_live(from + L, last - L) : batch<T>(T(0)),
                              std::make_index_sequence<lanes<T>>{});
    }
  T all[lanes<T>];
  for (index_t i = 0; i < L; ++i) all[i] = i < live ? from[i * step] : T(0);
  return kernel::load(all);
}
/// Copies lines of a plane with what lies around it, which is 0: of each line the elements `step` apart follow one
/// another, `width` of them for each of `step` phases. Up to a register behind the last is overwritten.
template <class T>
VARVE_NOINLINE void copy_padded(T const* plane, index_t const* field, index_t y, index_t lines, index_t x, index_t step,
                                index_t width, T* to) {
  constexpr index_t L = lanes<T>;
  index_t first[most_phases], last[most_phases]; // of each phase what is inside
  for (index_t phase = 0; phase < step; ++phase) {
    index_t const at = x + phase, end = at < field[1] ? (field[1] - 1 - at) / step + 1 : 0;
    first[phase] = at < 0 ? (step - 1 - at) / step : 0, last[phase] = end < width ? end : width;
  }
  for (; lines > 0; --lines, ++y)
    for (index_t phase = 0; phase < step; ++phase, to += width) {
      bool const none = y < 0 || y >= field[0] || first[phase] >= last[phase];
      index_t const from = none ? 0 : first[phase], end = none ? 0 : last[phase];
      T const* const line = plane + y * field[1] + x + phase;
      index_t i = 0;
      for (; i < from; i += L) kernel::store(to + i, batch<T>(T(0)));
      for (i = from; i < end; i += L) kernel::store(to + i, detail::load_apart(line + i * step, step, end - i));
      for (; i < width; i += L) kernel::store(to + i, batch<T>(T(0)));
    }
}

/// One convolution of one group: which taps there are, where they meet the field, and where results go.
template <class T>
struct line_convolution {
  index_t in_channels, out_channels, field[2], places[2], step[2]{1, 1}; // of a place in the field
  index_t out_plane, out_step[2], out_first;                             // between channels, lines, places of results
  T const* weight;
  index_t weight_row, weight_channel; // strides of the channels of results and of the field
  int taps = 0;
  index_t at[2][most_taps], weight_at[most_taps];

  void add_tap(index_t y, index_t x, index_t w) { at[0][taps] = y, at[1][taps] = x, weight_at[taps++] = w; }
  /// How the field is cut into tiles; false if a line of a channel is too large for one.
  bool plan() {
    cut();
    return channels > 0;
  }
  void run(T const* in, T* out) {
    alignas(64) T tile[padded_tile<T> + lanes<T>];
    for (index_t y = 0; y < places[0]; y += lines)
      for (index_t x = 0; x < places[1]; x += columns)
        for (index_t c = 0; c == 0 || c < in_channels; c += channels) {
          index_t const some = in_channels - c < channels ? in_channels - c : channels;
          for (index_t k = 0; k < some; ++k)
            detail::copy_padded(in + (c + k) * field[0] * field[1], field, y * step[0] + low[0], tile_lines,
                                x * step[1] + low[1], step[1], width, tile + k * tile_plane);
          tile_of t{tile,
                    c,
                    some,
                    y,
                    places[0] - y < lines ? places[0] - y : lines,
                    x,
                    places[1] - x < columns ? places[1] - x : columns};
          multiply(t, out);
        }
  }

private:
  static constexpr index_t L = lanes<T>;
  struct tile_of {
    T const* field;
    index_t channel, channels, y, lines, x, columns;
  };
  index_t low[2], lines, columns, channels, width, tile_lines, tile_plane, offset[most_taps];

  void cut() {
    index_t high[2];
    for (int d = 0; d < 2; ++d) {
      low[d] = high[d] = taps ? at[d][0] : 0;
      for (int t = 1; t < taps; ++t)
        low[d] = at[d][t] < low[d] ? at[d][t] : low[d], high[d] = at[d][t] > high[d] ? at[d][t] : high[d];
    }
    columns = (places[1] + L - 1) / L * L;
    if (columns > 512) columns = 512;
    width = columns + (high[1] - low[1]) / step[1] + 1;
    auto const plane_of = [&](index_t n) { return ((n - 1) * step[0] + high[0] - low[0] + 1) * step[1] * width; };
    channels = step[1] > most_phases ? 0 : in_channels > 0 ? in_channels : 1;
    while (channels > 0 && plane_of(1) * channels > padded_tile<T>) channels /= 2;
    if (channels == 0) return;
    lines = places[0];
    while (lines > 1 && plane_of(lines) * channels > padded_tile<T>) lines = (lines + 1) / 2;
    tile_plane = plane_of(lines), tile_lines = tile_plane / (step[1] * width);
    for (int t = 0; t < taps; ++t) {
      index_t const x = at[1][t] - low[1];
      offset[t] = ((at[0][t] - low[0]) * step[1] + x % step[1]) * width + x / step[1];
    }
  }
  void multiply(tile_of const& t, T* out) const {
    constexpr int rows = block_rows;
    index_t i = 0;
    for (; i + rows <= out_channels; i += rows) over_places<rows, 2>(t, i, out);
    for (; i + 4 <= out_channels; i += 4) over_places<4, 4>(t, i, out);
    for (; i < out_channels; ++i) over_places<1, 8>(t, i, out);
  }
  template <int Rows, int Batches>
  VARVE_NOINLINE void over_places(tile_of const& t, index_t row, T* out) const {
    index_t const across = (t.columns + L - 1) / L, spots = across * t.lines;
    for (index_t s = 0; s < spots; s += Batches) {
      T const* from[Batches];
      for (int b = 0; b < Batches; ++b) {
        index_t const k = s + b < spots ? s + b : spots - 1;
        from[b] = t.field + k / across * step[0] * step[1] * width + k % across * L;
      }
      block<Rows, Batches>(t, row, from, s, spots, across, out);
    }
  }
  template <int Rows, int Batches>
  VARVE_INLINE void block(tile_of const& t, index_t row, T const* const* from, index_t s, index_t spots, index_t across,
                          T* out) const {
    using V = batch<T>;
    V sum[Rows][Batches];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int b = 0; b < Batches; ++b) sum[i][b] = V(T(0));
    T const* w = weight + row * weight_row + t.channel * weight_channel;
    for (index_t c = 0; c < t.channels; ++c, w += weight_channel)
      for (int k = 0; k < taps; ++k) {
        index_t const o = c * tile_plane + offset[k];
        V x[Batches];
#pragma GCC unroll 8
        for (int b = 0; b < Batches; ++b) x[b] = kernel::load(from[b] + o);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
          V const v(w[i * weight_row + weight_at[k]]);
#pragma GCC unroll 8
          for (int b = 0; b < Batches; ++b) sum[i][b] = kernel::fma<T>(v, x[b], sum[i][b]);
        }
      }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int b = 0; b < Batches; ++b) {
        if (s + b >= spots) continue;
        index_t const x = (s + b) % across * L, live = t.columns - x < L ? t.columns - x : L;
        T* const to =
            out + (row + i) * out_plane + out_first + (t.y + (s + b) / across) * out_step[0] + (t.x + x) * out_step[1];
        put(to, live, sum[i][b], t.channel > 0);
      }
  }
  VARVE_INLINE void put(T* to, index_t live, batch<T> v, bool add) const {
    if (out_step[1] == 1) {
      if (add) v += detail::load_live(to, live);
      return detail::store_live(to, live, v);
    }
    T all[L];
    kernel::store(all, v);
    for (index_t i = 0; i < live; ++i) to[i * out_step[1]] = add ? to[i * out_step[1]] + all[i] : all[i];
  }
};

/// Is a convolution one of lines or planes?
inline bool is_planar(convolution_sizes const& s) {
  return s.place[0] == 1 && s.tap[0] == 1 && s.field[0] == 1 && s.padding[0] == 0 && s.taps() <= most_taps;
}
/// Convolutions of one or two dimensions; false if they are others, or too large.
template <class T>
VARVE_NOINLINE bool convolve_by_lines(convolution_sizes const& s, T const* field, T const* weight, T* out) {
  if (!is_planar(s)) return false;
  line_convolution<T> c;
  c.in_channels = s.field_channels, c.out_channels = s.place_channels;
  for (int d = 0; d < 2; ++d) c.field[d] = s.field[d + 1], c.places[d] = s.place[d + 1], c.step[d] = s.stride[d + 1];
  c.out_plane = s.places(), c.out_step[0] = s.place[2], c.out_step[1] = 1, c.out_first = 0;
  c.weight_row = s.field_channels * s.taps(), c.weight_channel = s.taps();
  for (index_t t = 0; t < s.taps(); ++t) c.add_tap(s.offset(1, t / s.tap[2]), s.offset(2, t % s.tap[2]), t);
  if (!c.plan()) return false;
  for (index_t n = 0; n < s.batch * s.groups; ++n) {
    c.weight = weight + n % s.groups * s.place_channels * c.weight_row;
    c.run(field + n * s.field_channels * s.field_size(), out + n * s.place_channels * s.places());
  }
  return true;
}
/// Their transposes. Results a stride apart meet the same taps.
template <class T>
VARVE_NOINLINE bool convolve_transposed_by_lines(convolution_sizes const& s, T const* places, T const* weight, T* out) {
  if (!is_planar(s)) return false;
  for (index_t phase = 0; phase < s.stride[1] * s.stride[2]; ++phase) {
    index_t const first[2] = {phase / s.stride[2], phase % s.stride[2]};
    line_convolution<T> c;
    c.in_channels = s.place_channels, c.out_channels = s.field_channels;
    for (int d = 0; d < 2; ++d) {
      c.field[d] = s.place[d + 1];
      c.places[d] = first[d] < s.field[d + 1] ? (s.field[d + 1] - 1 - first[d]) / s.stride[d + 1] + 1 : 0;
    }
    if (c.places[0] == 0 || c.places[1] == 0) continue;
    c.out_plane = s.field_size(), c.out_step[0] = s.stride[1] * s.field[2], c.out_step[1] = s.stride[2];
    c.out_first = first[0] * s.field[2] + first[1];
    c.weight_row = s.taps(), c.weight_channel = s.field_channels * s.taps();
    for (index_t t = 0; t < s.taps(); ++t) {
      index_t const y = first[0] - s.offset(1, t / s.tap[2]), x = first[1] - s.offset(2, t % s.tap[2]);
      auto const floor = [](index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
      index_t const qy = floor(y, s.stride[1]), qx = floor(x, s.stride[2]);
      if (qy * s.stride[1] == y && qx * s.stride[2] == x) c.add_tap(qy, qx, t);
    }
    if (!c.plan()) return false;
    for (index_t n = 0; n < s.batch * s.groups; ++n) {
      c.weight = weight + n % s.groups * s.place_channels * c.weight_channel;
      c.run(places + n * s.place_channels * s.places(), out + n * s.field_channels * s.field_size());
    }
  }
  return true;
}

/// Sums of products of lines: few places, and a kernel with many taps along its lines.
template <class T>
class line_products {
public:
  explicit line_products(convolution_sizes const& sizes) : s(sizes) {
    step = s.dilation[2];
    width = (s.tap[2] + L - 1) / L * L + (s.place[2] - 1) * s.stride[2] / step + 1;
    lines = (s.place[1] - 1) * s.stride[1] + (s.tap[1] - 1) * s.dilation[1] + 1;
    for (index_t p = 0; p < s.places() && p < most_sums; ++p) {
      index_t const x = p % s.place[2] * s.stride[2];
      offset[p] = (p / s.place[2] * s.stride[1] * step + x % step) * width + x / step;
    }
  }
  bool fits() const { return step <= most_phases && lines * step * width <= padded_tile<T> && s.places() <= most_sums; }
  /// Results [m, places] of one sample of one group.
  void run(T const* field, T const* weight, T* out) {
    alignas(64) T tile[padded_tile<T> + lanes<T>], sums[most_sums * L];
    index_t const f[2] = {s.field[1], s.field[2]}, m = s.place_channels, places = s.places(), row = row_of_weight();
    index_t const some = most_sums / places < m ? most_sums / places : m; // channels at a time
    for (index_t i = 0; i < m; i += some) {
      index_t const rows = m - i < some ? m - i : some;
      for (index_t k = 0; k < rows * places * L; ++k) sums[k] = T(0);
      for (index_t c = 0; c < s.field_channels; ++c) {
        detail::copy_padded(field + c * s.field_size(), f, -s.padding[1], lines, -s.padding[2], step, width, tile);
        T const* const w = weight + i * row + c * s.taps();
        index_t r = 0;
        for (; r + 3 <= rows; r += 3) over_places<3>(tile, w + r * row, sums + r * places * L);
        for (; r < rows; ++r) over_places<1>(tile, w + r * row, sums + r * places * L);
      }
      sum_lanes(sums, rows * places, out + i * places);
    }
  }

private:
  static constexpr index_t L = lanes<T>, most_sums = 512;
  convolution_sizes const& s;
  index_t step, width, lines, offset[most_sums];

  /// The sums of the lanes of `n` registers, as many at a time as there are lanes.
  static void sum_lanes(T const* sums, index_t n, T* out) {
    for (; n >= L; n -= L, sums += L * L, out += L) {
      batch<T> r[lanes<T>];
      for (index_t k = 0; k < L; ++k) r[k] = kernel::load(sums + k * L);
      kernel::transpose<T>(r);
      for (index_t k = L / 2; k > 0; k /= 2)
        for (index_t j = 0; j < k; ++j) r[j] += r[j + k];
      kernel::store(out, r[0]);
    }
    for (index_t k = 0; k < n; ++k) out[k] = kernel::reduce_sum(kernel::load(sums + k * L));
  }
  index_t row_of_weight() const { return s.field_channels * s.taps(); }
  template <int Rows>
  void over_places(T const* tile, T const* w, T* sums) const {
    constexpr int nine = registers == 32 ? 9 : 5;
    index_t const all = s.places();
    index_t p = 0;
    for (; p + nine <= all; p += nine) add<Rows, nine>(tile, w, p, sums);
    for (; p + 5 <= all; p += 5) add<Rows, 5>(tile, w, p, sums);
    for (; p + 3 <= all; p += 3) add<Rows, 3>(tile, w, p, sums);
    for (; p < all; ++p) add<Rows, 1>(tile, w, p, sums);
  }
  template <int Rows, int Places>
  VARVE_NOINLINE void add(T const* tile, T const* w, index_t p, T* sums) const {
    using V = batch<T>;
    V sum[Rows][Places];
    T const* from[Places];
    index_t const row = row_of_weight(), places = s.places();
#pragma GCC unroll 9
    for (int k = 0; k < Places; ++k) {
      from[k] = tile + offset[p + k];
#pragma GCC unroll 3
      for (int i = 0; i < Rows; ++i) sum[i][k] = kernel::load(sums + (i * places + p + k) * L);
    }
    for (index_t y = 0; y < s.tap[1]; ++y, w += s.tap[2]) {
      index_t const line = y * s.dilation[1] * step * width;
      for (index_t x = 0; x < s.tap[2]; x += L) {
        index_t const live = s.tap[2] - x < L ? s.tap[2] - x : L;
        V v[Rows];
#pragma GCC unroll 3
        for (int i = 0; i < Rows; ++i) v[i] = detail::load_live(w + i * row + x, live);
#pragma GCC unroll 9
        for (int k = 0; k < Places; ++k) {
          V const u = detail::load_live(from[k] + line + x, live); // what is not live may be infinite
#pragma GCC unroll 3
          for (int i = 0; i < Rows; ++i) sum[i][k] = kernel::fma<T>(v[i], u, sum[i][k]);
        }
      }
    }
#pragma GCC unroll 9
    for (int k = 0; k < Places; ++k)
#pragma GCC unroll 3
      for (int i = 0; i < Rows; ++i) kernel::store(sums + (i * places + p + k) * L, sum[i][k]);
  }
};
template <class T>
VARVE_NOINLINE bool convolve_by_products_of_lines(convolution_sizes const& s, T const* field, T const* weight, T* out) {
  line_products<T> product(s);
  if (s.place[0] != 1 || s.tap[0] != 1 || s.field[0] != 1 || s.padding[0] != 0 || !product.fits()) return false;
  for (index_t n = 0; n < s.batch * s.groups; ++n)
    product.run(field + n * s.field_channels * s.field_size(),
                weight + n % s.groups * s.place_channels * s.field_channels * s.taps(),
                out + n * s.place_channels * s.places());
  return true;
}
} // namespace varve::kernel::detail
