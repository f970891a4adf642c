// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/convolution_direct.hpp>
#include <varve/kernel/matmul_block.hpp>
#include <varve/kernel/simd.hpp>

/// @file
/// Convolutions in one or two dimensions, line by line, without a matrix. A tile of the field is copied with its
/// padding, so that the elements that a tap meets at consecutive places are contiguous, whatever the stride. Registers
/// then accumulate several channels of a few lines of places over all taps. A transposed convolution becomes one
/// convolution per phase of the stride, each with the taps that meet its places. The gradient of a weight, whose
/// "kernel" is as large as the field, sums products of lines.
namespace varve::kernel::detail {

/// Number of elements of the scratch memory on the stack.
template <class T>
inline constexpr index_t padded_tile = 196608 / static_cast<index_t>(sizeof(T));
inline constexpr int most_taps = 512, most_phases = 16;

/// Returns every second element of two registers, from index `First` on.
template <class T, std::size_t First = 0, std::size_t... I>
VARVE_INLINE batch<T> evens(batch<T> const& a, batch<T> const& b, std::index_sequence<I...>) {
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(
      __builtin_shufflevector(std::bit_cast<native>(a), std::bit_cast<native>(b), (2 * I + First)...));
}
/// Loads the elements at `from`, `from + step`, ..., `live` of them; the other lanes are 0.
template <class T>
VARVE_INLINE batch<T> load_apart(T const* from, index_t step, index_t live) {
  constexpr index_t L = lanes<T>;
  live = live < L ? live : L;
  if (step == 1) return detail::load_live(from, live);
  if constexpr (L > 1)
    if (step == 2) { // the element behind the last one is not read
      index_t const last = 2 * live - 1;
      return detail::evens<T>(detail::load_live(from, last < L ? last : L),
                              last > L ? detail::load_live(from + L, last - L) : batch<T>(T(0)),
                              std::make_index_sequence<lanes<T>>{});
    }
  T all[lanes<T>];
  for (index_t i = 0; i < L; ++i) all[i] = i < live ? from[i * step] : T(0);
  return kernel::load(all);
}
/// Returns one of two registers in which the elements of `v` alternate with those of `a`; `High` selects the second.
template <std::size_t High, class T, std::size_t... I>
VARVE_INLINE batch<T> among(batch<T> const& v, batch<T> const& a, std::index_sequence<I...>) {
  constexpr std::size_t L = lanes<T>;
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(__builtin_shufflevector(std::bit_cast<native>(v), std::bit_cast<native>(a),
                                                         (I % 2 == 0 ? I / 2 + High * L / 2 : L + I)...));
}
/// Copies lines that fit two registers with a step of 2, for `copy_padded`; `x` <= 0.
template <class T>
VARVE_INLINE void copy_short_halves(T const* plane, index_t const* field, index_t y, index_t lines, index_t x,
                                    index_t width, T* to) {
  constexpr index_t L = lanes<T>;
  constexpr std::make_index_sequence<lanes<T>> each{};
  batch<T> const zero(T(0));
  index_t const front = field[1] < L ? field[1] : L, from[2] = {(1 - x) / 2, -x / 2}; // of the two phases
  bool const odd = x % 2 != 0;
  for (; lines > 0; --lines, ++y) {
    bool const inside = y >= 0 && y < field[0];
    T const* const line = plane + (inside ? y * field[1] : 0);
    batch<T> const a = detail::load_live(line, front),
                   b = field[1] > L ? detail::load_live(line + L, field[1] - L) : zero;
    batch<T> half[2] = {detail::evens<T>(a, b, each), detail::evens<T, 1>(a, b, each)};
    for (int phase = 0; phase < 2; ++phase, to += width) {
      index_t const start = from[phase];
      for (index_t i = 0; i < start; i += L) kernel::store(to + i, zero);
      kernel::store<T>(to + start, inside ? half[(phase == 0) == odd] : zero);
      for (index_t i = start + L; i < width; i += L) kernel::store(to + i, zero);
    }
  }
}
/// Copies lines of a plane with zeros around it. The elements of a line that are `step` apart become contiguous:
/// `width` of them for each of `step` phases. Up to one register behind the end is overwritten.
template <class T>
VARVE_NOINLINE void copy_padded(T const* plane, index_t const* field, index_t y, index_t lines, index_t x, index_t step,
                                index_t width, T* to) {
  constexpr index_t L = lanes<T>;
  if constexpr (L > 1)
    if (step == 2 && x <= 0 && x + 2 * width >= field[1] + 1 && field[1] > 0 && field[1] <= 2 * L)
      return detail::copy_short_halves(plane, field, y, lines, x, width, to);
  index_t first[most_phases], last[most_phases]; // the part of each phase inside of the field
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

/// One convolution of one group: its taps, where they meet the field, and where results are written.
template <class T>
struct line_convolution {
  index_t in_channels, out_channels, field[2], step[2]{1, 1}; // distance of places in the field
  index_t out_plane, out_step[2];                             // distances of channels, lines and places of results
  T const* weight;
  index_t weight_row, weight_channel; // strides of the channels of results and of the field
  int taps = 0, phases = 0;
  index_t at[2][most_taps], weight_at[most_taps];
  /// Results that meet the same taps: the offset of the first one, their numbers, and the range of these taps.
  struct phase {
    index_t out_first, places[2];
    int from, end;
  } phase_at[most_phases];

  void add_phase(index_t first, index_t lines_of_it, index_t places_of_it) {
    phase_at[phases++] = {first, {lines_of_it, places_of_it}, taps, taps};
    for (int d = 0; d < 2; ++d)
      places[d] = phases > 1 && places[d] > phase_at[phases - 1].places[d] ? places[d] : phase_at[phases - 1].places[d];
  }
  void add_tap(index_t y, index_t x, index_t w) {
    at[0][taps] = y, at[1][taps] = x, weight_at[taps++] = w;
    phase_at[phases - 1].end = taps;
  }
  /// Divides the field into tiles. Returns false if a line of a channel is too large for a tile.
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
          end_of_out = out + out_channels * out_plane;
          for (phase const* p = phase_at; p != phase_at + phases; ++p) {
            tile_of const t{tile, p,
                            c,    some,
                            y,    p->places[0] - y < lines ? p->places[0] - y : lines,
                            x,    p->places[1] - x < columns ? p->places[1] - x : columns};
            if (t.lines > 0 && t.columns > 0) multiply(t, out);
          }
        }
  }

private:
  static constexpr index_t L = lanes<T>;
  struct tile_of {
    T const* field;
    phase const* of;
    index_t channel, channels, y, lines, x, columns;
  };
  index_t places[2], low[2], lines, columns, channels, width, tile_lines, tile_plane, offset[most_taps];
  T const* end_of_out = nullptr;

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
    for (; i + 3 <= out_channels; i += 3) over_places<3, registers == 32 ? 6 : 3>(t, i, out);
    for (; i < out_channels; ++i) over_places<1, 8>(t, i, out);
  }
  template <int Rows, int Batches>
  VARVE_NOINLINE void over_places(tile_of const& t, index_t row, T* out) const {
    index_t const line = step[0] * step[1] * width;
    index_t y = 0, x = 0;
    while (y < t.lines) {
      T const* from[Batches];
      index_t to[Batches], live[Batches]; // offsets of results; `live` is 0 behind the last one
      for (int b = 0; b < Batches; ++b) {
        if (y == t.lines) {
          from[b] = from[b - 1], live[b] = 0;
          continue;
        }
        from[b] = t.field + y * line + x;
        to[b] = t.of->out_first + (t.y + y) * out_step[0] + (t.x + x) * out_step[1];
        live[b] = t.columns - x < L ? t.columns - x : L;
        if ((x += L) >= t.columns) x = 0, ++y;
      }
      block<Rows, Batches>(t, row, from, to, live, out);
    }
  }
  template <int Rows, int Batches>
  VARVE_INLINE void block(tile_of const& t, index_t row, T const* const* from, index_t const* to, index_t const* live,
                          T* out) const {
    using V = batch<T>;
    V sum[Rows][Batches];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int b = 0; b < Batches; ++b) sum[i][b] = V(T(0));
    T const* w = weight + row * weight_row + t.channel * weight_channel;
    for (index_t c = 0; c < t.channels; ++c, w += weight_channel)
      for (int k = t.of->from; k < t.of->end; ++k) {
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
        if (live[b] > 0) put(out + (row + i) * out_plane + to[b], live[b], sum[i][b], t.channel > 0);
      }
  }
  VARVE_INLINE void put(T* to, index_t live, batch<T> v, bool add) const {
    if (out_step[1] == 1) {
      if (add) v += detail::load_live(to, live);
      return detail::store_live(to, live, v);
    }
    if constexpr (L > 1)
      if (out_step[1] == 2 && live == L && to + 2 * L <= end_of_out) { // writes the elements in between unchanged
        constexpr std::make_index_sequence<lanes<T>> each{};
        batch<T> const a = kernel::load(to), b = kernel::load(to + L);
        if (add) v += detail::evens<T>(a, b, each);
        kernel::store<T>(to, detail::among<0, T>(v, a, each));
        return kernel::store<T>(to + L, detail::among<1, T>(v, b, each));
      }
    T all[L];
    kernel::store(all, v);
    for (index_t i = 0; i < live; ++i) to[i * out_step[1]] = add ? to[i * out_step[1]] + all[i] : all[i];
  }
};

/// True if a convolution works on lines or planes.
inline bool is_planar(convolution_sizes const& s) {
  return s.place[0] == 1 && s.tap[0] == 1 && s.field[0] == 1 && s.padding[0] == 0 && s.taps() <= most_taps;
}
/// Computes a convolution in one or two dimensions. Returns false if it has three or is too large.
template <class T>
VARVE_NOINLINE bool convolve_by_lines(convolution_sizes const& s, T const* field, T const* weight, T* out) {
  if (!is_planar(s)) return false;
  line_convolution<T> c;
  c.in_channels = s.field_channels, c.out_channels = s.place_channels;
  for (int d = 0; d < 2; ++d) c.field[d] = s.field[d + 1], c.step[d] = s.stride[d + 1];
  c.out_plane = s.places(), c.out_step[0] = s.place[2], c.out_step[1] = 1;
  c.add_phase(0, s.place[1], s.place[2]);
  c.weight_row = s.field_channels * s.taps(), c.weight_channel = s.taps();
  for (index_t t = 0; t < s.taps(); ++t) c.add_tap(s.offset(1, t / s.tap[2]), s.offset(2, t % s.tap[2]), t);
  if (!c.plan()) return false;
  for (index_t n = 0; n < s.batch * s.groups; ++n) {
    c.weight = weight + n % s.groups * s.place_channels * c.weight_row;
    c.run(field + n * s.field_channels * s.field_size(), out + n * s.place_channels * s.places());
  }
  return true;
}
/// Computes a transposed convolution in one or two dimensions. Results that are a stride apart meet the same taps.
/// Returns false if it has three dimensions or is too large.
template <class T>
VARVE_NOINLINE bool convolve_transposed_by_lines(convolution_sizes const& s, T const* places, T const* weight, T* out) {
  index_t const all = s.stride[1] * s.stride[2];
  if (!is_planar(s) || all > most_phases) return false;
  line_convolution<T> c;
  c.in_channels = s.place_channels, c.out_channels = s.field_channels;
  for (int d = 0; d < 2; ++d) c.field[d] = s.place[d + 1];
  c.out_plane = s.field_size(), c.out_step[0] = s.stride[1] * s.field[2], c.out_step[1] = s.stride[2];
  c.weight_row = s.taps(), c.weight_channel = s.field_channels * s.taps();
  for (index_t phase = 0; phase < all; ++phase) {
    index_t const first[2] = {phase / s.stride[2], phase % s.stride[2]};
    auto const count = [&](int d) {
      return first[d] < s.field[d + 1] ? (s.field[d + 1] - 1 - first[d]) / s.stride[d + 1] + 1 : 0;
    };
    c.add_phase(first[0] * s.field[2] + first[1], count(0), count(1));
    for (index_t t = 0; t < s.taps(); ++t) {
      index_t const y = first[0] - s.offset(1, t / s.tap[2]), x = first[1] - s.offset(2, t % s.tap[2]);
      auto const floor = [](index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
      index_t const qy = floor(y, s.stride[1]), qx = floor(x, s.stride[2]);
      if (qy * s.stride[1] == y && qx * s.stride[2] == x) c.add_tap(qy, qx, t);
    }
  }
  if (!c.plan()) return false;
  for (index_t n = 0; n < s.batch * s.groups; ++n) {
    c.weight = weight + n % s.groups * s.place_channels * c.weight_channel;
    c.run(places + n * s.place_channels * s.places(), out + n * s.field_channels * s.field_size());
  }
  return true;
}

/// Sums of products of lines, for few places and a kernel with many taps along its lines.
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
  /// Computes the results [m, places] of one sample of one group.
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

  /// Sums the lanes of each of `n` registers, as many registers at a time as there are lanes.
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
          V const u = detail::load_live(from[k] + line + x, live); // lanes that are not live may be infinite
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

/// Sums of products of lines, for many channels of results. Lanes hold these channels, for which the weight is
/// transposed, and elements of the field are repeated in all lanes. Registers accumulate several places over all taps.
template <class T>
class channel_products {
public:
  explicit channel_products(convolution_sizes const& sizes) : s(sizes) {
    across = (s.place_channels + L - 1) / L * L;
    width = (s.tap[2] - 1) * s.dilation[2] + (s.place[2] - 1) * s.stride[2] + 1;
    for (lines = s.tap[1]; lines > 1 && (lines * s.tap[2] * across > turned_size || plane() > plane_size);)
      lines = (lines + 1) / 2;
    channels = sums_size / (across * s.places());
    for (index_t p = 0; p < s.places() && p < most_places; ++p)
      offset[p] = p / s.place[2] * s.stride[1] * width + p % s.place[2] * s.stride[2];
  }
  bool fits() const {
    return channels > 0 && s.places() <= most_places && lines * s.tap[2] * across <= turned_size &&
           plane() <= plane_size;
  }
  /// Computes the results [batch, m, places] of one group; `field_apart` and `out_apart` are the distances of samples.
  void run(T const* field, index_t field_apart, T const* weight, T* out, index_t out_apart) {
    alignas(64) T turned[turned_size], sums[sums_size], tile[plane_size + L];
    index_t const f[2] = {s.field[1], s.field[2]}, places = s.places(), m = s.place_channels;
    for (index_t b = 0; b < s.batch; b += channels) {
      index_t const some = s.batch - b < channels ? s.batch - b : channels;
      for (index_t k = 0; k < some * places * across; ++k) sums[k] = T(0);
      for (index_t c = 0; c < s.field_channels; ++c)
        for (index_t y = 0; y < s.tap[1]; y += lines) {
          index_t const here = s.tap[1] - y < lines ? s.tap[1] - y : lines;
          turn(weight + c * s.taps() + y * s.tap[2], here * s.tap[2], turned);
          for (index_t k = 0; k < some; ++k) {
            detail::copy_padded(field + (b + k) * field_apart + c * s.field_size(), f, y * s.dilation[1] - s.padding[1],
                                plane_lines(here), -s.padding[2], 1, width, tile);
            over_places(tile, turned, here, sums + k * places * across);
          }
        }
      for (index_t k = 0; k < some; ++k)
        for (index_t i = 0; i < m; ++i)
          for (index_t p = 0; p < places; ++p)
            out[(b + k) * out_apart + i * places + p] = sums[(k * places + p) * across + i];
    }
  }

private:
  static constexpr index_t L = lanes<T>, most_places = 128, turned_size = padded_tile<T> / 2,
                           sums_size = padded_tile<T> / 2, plane_size = padded_tile<T> / 6;
  convolution_sizes const& s;
  index_t across, width, lines, channels, offset[most_places];

  index_t plane_lines(index_t taps) const { return (taps - 1) * s.dilation[1] + (s.place[1] - 1) * s.stride[1] + 1; }
  index_t plane() const { return plane_lines(lines) * width; }
  /// Transposes `count` taps of all channels of results: taps one after the other, missing channels filled with 0.
  VARVE_NOINLINE void turn(T const* from, index_t count, T* to) const {
    index_t const row = s.field_channels * s.taps();
    for (index_t i = 0; i < across; i += L)
      for (index_t q = 0; q < count; q += L) {
        index_t const live = count - q < L ? count - q : L;
        batch<T> r[lanes<T>];
        for (index_t k = 0; k < L; ++k)
          r[k] = i + k < s.place_channels ? detail::load_live(from + (i + k) * row + q, live) : batch<T>(T(0));
        kernel::transpose<T>(r);
        for (index_t k = 0; k < live; ++k) kernel::store(to + (q + k) * across + i, r[k]);
      }
  }
  void over_places(T const* tile, T const* w, index_t taps, T* sums) const {
    constexpr int most = registers == 32 ? 12 : 6, middle = registers == 32 ? 9 : 5, few = registers == 32 ? 5 : 4;
    index_t const all = s.places();
    for (index_t p = 0; p < all;) {
      index_t const left = all - p;
      if (left >= most) over_channels<most>(tile, w, taps, p, sums), p += most;
      else if (left >= middle) over_channels<middle>(tile, w, taps, p, sums), p += middle;
      else if (left >= few) over_channels<few>(tile, w, taps, p, sums), p += few;
      else if (left >= 3) over_channels<3>(tile, w, taps, p, sums), p += 3;
      else over_channels<1>(tile, w, taps, p, sums), ++p;
    }
  }
  template <int Places>
  void over_channels(T const* tile, T const* w, index_t taps, index_t p, T* sums) const {
    index_t i = 0;
    for (; i + 2 * L <= across; i += 2 * L) add<Places, 2>(tile, w + i, taps, p, sums + i);
    if (i < across) add<Places, 1>(tile, w + i, taps, p, sums + i);
  }
  template <int Places, int Batches>
  VARVE_NOINLINE void add(T const* tile, T const* w, index_t taps, index_t p, T* sums) const {
    using V = batch<T>;
    V sum[Places][Batches];
    T const* from[Places];
#pragma GCC unroll 12
    for (int k = 0; k < Places; ++k) {
      from[k] = tile + offset[p + k];
#pragma GCC unroll 2
      for (int j = 0; j < Batches; ++j) sum[k][j] = kernel::load(sums + (p + k) * across + j * L);
    }
    for (index_t y = 0; y < taps; ++y) {
      index_t const line = y * s.dilation[1] * width;
      for (index_t x = 0; x < s.tap[2]; ++x, w += across) {
        V v[Batches];
#pragma GCC unroll 2
        for (int j = 0; j < Batches; ++j) v[j] = kernel::load(w + j * L);
#pragma GCC unroll 12
        for (int k = 0; k < Places; ++k) {
          V const u(from[k][line + x * s.dilation[2]]);
#pragma GCC unroll 2
          for (int j = 0; j < Batches; ++j) sum[k][j] = kernel::fma<T>(u, v[j], sum[k][j]);
        }
      }
    }
#pragma GCC unroll 12
    for (int k = 0; k < Places; ++k)
#pragma GCC unroll 2
      for (int j = 0; j < Batches; ++j) kernel::store(sums + (p + k) * across + j * L, sum[k][j]);
  }
};
template <class T>
VARVE_NOINLINE bool convolve_by_products_of_channels(convolution_sizes const& s, T const* field, T const* weight,
                                                     T* out) {
  channel_products<T> product(s);
  if (s.place[0] != 1 || s.tap[0] != 1 || s.field[0] != 1 || s.padding[0] != 0 || !product.fits()) return false;
  index_t const places = s.place_channels * s.places(), seen = s.field_channels * s.field_size();
  for (index_t g = 0; s.batch > 0 && g < s.groups; ++g)
    product.run(field + g * seen, s.groups * seen, weight + g * s.place_channels * s.field_channels * s.taps(),
                out + g * places, s.groups * places);
  return true;
}
} // namespace varve::kernel::detail
