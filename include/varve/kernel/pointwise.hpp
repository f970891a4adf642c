// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/threads.hpp>
#include <varve/kernel/simd.hpp>
#include <varve/kernel/strided.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// @file
/// Pointwise kernels on memory: one typed loop over contiguous elements per operator, and one untyped driver for
/// shapes, strides and broadcasting.
namespace varve::kernel {

/// A functor that declares `static constexpr bool scalar_only = true`, because its body cannot be instantiated for
/// batches.
template <class F>
concept scalar_only = requires { requires F::scalar_only; };

namespace detail {
template <class V, std::size_t>
using same = V;
template <class F, class V, std::size_t... I>
constexpr bool maps_batches(std::index_sequence<I...>) {
  return requires(F const& f, same<V, I> const&... x) {
    { f(x...) } -> std::convertible_to<V>;
  };
}
/// Returns whether `F` runs on batches of `In`.
template <class Out, class In, class F, int Arity>
constexpr bool vectorized() {
  if constexpr (!std::is_same_v<Out, In> || !lane<In> || scalar_only<F>) return false;
  else return detail::maps_batches<F, batch<In>>(std::make_index_sequence<Arity>{});
}
/// Runs a loop over a number of elements that is not a multiple of the lanes. The last batch overlaps the one before
/// it, and is computed first, since the output may be an input. Fewer elements than a batch are padded to one. `T` is
/// any type of the operands' item size, so that few of these functions are instantiated.
template <class T, int Arity>
VARVE_NOINLINE void run_uneven(loop f, std::size_t n, T* out, void const* const* in) {
  constexpr std::size_t L = lanes<T>;
  T last[L], filled[Arity][L];
  void const* p[Arity];
  if (n > L) {
#pragma GCC unroll 4
    for (int k = 0; k < Arity; ++k) p[k] = static_cast<T const*>(in[k]) + (n - L);
    f(L, last, p);
    f(n - n % L, out, in);
    std::memcpy(out + (n - L), last, sizeof(last));
    return;
  }
#pragma GCC unroll 4
  for (int k = 0; k < Arity; ++k) {
    kernel::store(filled[k], kernel::load_filled(static_cast<T const*>(in[k]), n));
    p[k] = filled[k];
  }
  f(L, last, p);
  detail::copy_first(out, last, n);
}
template <class T>
using item = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// True if registers can load and store some of their lanes with a mask; the last elements then need no special loop.
template <class Out, class In>
inline constexpr bool masked = [] {
  if constexpr (VARVE_USE_XSIMD && std::is_same_v<Out, In> && std::is_floating_point_v<In>)
    return sizeof(batch<In>) == 64;
  else return false;
}();

/// Type in which flags are processed: bytes, which compilers optimize better.
template <class T>
using byte_for_flag = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
/// Runs F element by element, if it does not accept batches or returns another type.
template <class Out, class In, class F, class... P>
VARVE_VECTORIZED void run_scalars(std::size_t n, byte_for_flag<Out>* out, P... in) {
  F const f{};
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(static_cast<In>(in[i])...));
}

// The inputs are parameters, not an array: a store of a batch might modify the array, so that the compiler would read
// the array again for each batch.
template <class Out, class In, class F, class... P>
VARVE_INLINE void run(std::size_t n, Out* out, P... in) {
  [[maybe_unused]] F const f{};
  if constexpr (detail::vectorized<Out, In, F, sizeof...(P)>() && masked<Out, In>)
    for (std::size_t i = 0; i < n; i += lanes<In>) {
      std::size_t const left = n - i;
      bool const whole = left >= lanes<In>; // even full masks have a cost
      batch<In> const r(f((whole ? kernel::load(in + i) : kernel::load_first(in + i, left))...));
      if (whole) [[likely]]
        kernel::store(out + i, r);
      else kernel::store_first<In>(out + i, left, r);
    }
  else if constexpr (detail::vectorized<Out, In, F, sizeof...(P)>())
    for (std::size_t i = 0; i < n; i += lanes<In>) kernel::store(out + i, batch<In>(f(kernel::load(in + i)...)));
  else
    detail::run_scalars<Out, In, F>(n, reinterpret_cast<byte_for_flag<Out>*>(out),
                                    reinterpret_cast<byte_for_flag<In> const*>(in)...);
}
template <class Out, class In, class F, std::size_t... I>
VARVE_INLINE void spread(std::size_t n, void* out, void const* const* in, std::index_sequence<I...>) {
  detail::run<Out, In, F>(n, static_cast<Out*>(out), static_cast<In const*>(in[I])...);
}
} // namespace detail

/// Computes a stateless functor `F` on `Arity` contiguous inputs of element type `In`, with results of type `Out`; it
/// is a `loop`. It runs on batches if `F` accepts them and `Out` is `In`, and element by element otherwise. (It is
/// flattened, so that the body of `F` is inlined and its constants stay in registers.)
template <class Out, class In, class F, int Arity>
__attribute__((flatten)) void contiguous(std::size_t n, void* out, void const* const* in) {
  if constexpr (detail::vectorized<Out, In, F, Arity>() && !detail::masked<Out, In>)
    if (n % lanes<In> != 0)
      return detail::run_uneven<detail::item<In>, Arity>(contiguous<Out, In, F, Arity>, n,
                                                         static_cast<detail::item<In>*>(out), in);
  detail::spread<Out, In, F>(n, out, in, std::make_index_sequence<Arity>{});
}

namespace detail {
template <class T, class F, unsigned Which, std::size_t... I>
VARVE_INLINE void run_beside(std::size_t n, T* out, void const* const* in, std::index_sequence<I...>) {
  constexpr std::size_t L = lanes<T>;
  F const f{};
  T const* const x[] = {static_cast<T const*>(in[I])...};
  batch<T> const one[] = {batch<T>((Which >> I & 1) != 0 ? *x[I] : T())...};
  std::size_t i = 0;
  for (; i + L <= n; i += L)
    kernel::store(out + i, batch<T>(f(((Which >> I & 1) != 0 ? one[I] : kernel::load(x[I] + i))...)));
  if (i == n) return;
  std::size_t const left = n - i;
  kernel::store_first<T>(out + i, left, f(((Which >> I & 1) != 0 ? one[I] : kernel::load_first(x[I] + i, left))...));
}
} // namespace detail

/// Computes `F` on contiguous inputs, except that each input in the bit mask `Which` is a single element. `F` must
/// accept batches.
template <class T, class F, int Arity, unsigned Which>
__attribute__((flatten)) void contiguous_beside(std::size_t n, void* out, void const* const* in) {
  detail::run_beside<T, F, Which>(n, static_cast<T*>(out), in, std::make_index_sequence<Arity>{});
}
template <class T, class F, int Arity, unsigned Which>
constexpr loop_beside beside() {
  if constexpr (lanes<T> > 1 && detail::vectorized<T, T, F, Arity>())
    return {Which, &contiguous_beside<T, F, Arity, Which>};
  else return {};
}
/// Kernels of one function for inputs that are single elements. There are at most two, since not all combinations are
/// worth their code.
struct loops_beside {
  loop_beside of[2]{};
  /// Returns the kernel for the case that the inputs in the bit mask `which` are single elements, or null.
  constexpr loop find(unsigned which) const {
    for (loop_beside const& b : of)
      if (b.run && b.which == which) return b.run;
    return nullptr;
  }
};

namespace detail {
// number of elements packed at a time: 2 KiB per operand stay in the first-level cache
inline constexpr index_t block = 256;

/// Returns the elements of an operand, converted to the type that the kernel expects.
inline void* as_taken(walk const& w, int k, index_t n, void* x, void* converted) {
  if (!w.convert[k]) return x;
  void const* const in = x;
  w.convert[k](static_cast<std::size_t>(n), converted, &in);
  return converted;
}
/// Computes rows whose operands are contiguous or a single element. Only single elements are packed, into blocks that
/// are reused for the row, and for further rows while the element stays the same.
VARVE_NOINLINE inline void pointwise_plain_rows(walk& w, loop f) {
  constexpr index_t bytes = 2048;
  alignas(64) unsigned char packed[max_operands][bytes];
  char const* repeated[max_operands]{}; // address of the packed element
  void* p[max_operands];
  index_t step[max_operands]; // bytes of a block, 0 for a repeated element
  int const inner = w.rank - 1, count = w.count;
  index_t const n = w.size[inner];
  index_t block = n;
  for (int k = 0; k < count; ++k)
    if (w.stride[inner][k] == 0 && bytes / w.itemsize[k] < block) block = bytes / w.itemsize[k];
  for (int k = 0; k < count; ++k) step[k] = w.stride[inner][k] * block;
  do {
    for (int k = 0; k < count; ++k) {
      p[k] = w.data[k];
      if (step[k] != 0) continue;
      p[k] = packed[k];
      if (repeated[k] != w.data[k]) detail::gather(packed[k], w.itemsize[k], w.data[k], 0, block, w.itemsize[k]);
      repeated[k] = w.data[k];
    }
    for (index_t i = n; i > block; i -= block) {
      f(static_cast<std::size_t>(block), p[0], p + 1);
      for (int k = 0; k < count; ++k) p[k] = static_cast<char*>(p[k]) + step[k];
    }
    f(static_cast<std::size_t>(n - (n - 1) / block * block), p[0], p + 1);
  } while (w.next());
}
/// Returns the bit mask of the inputs that are a single element in each row of the inner dimension.
inline unsigned repeated_in_rows(walk const& w) {
  unsigned r = 0;
  for (int k = 1; k < w.count; ++k)
    if (w.stride[w.rank - 1][k] == 0) r |= 1u << (k - 1);
  return r;
}
/// Calls a kernel on rows of `n` elements, whose starts are `step` bytes apart. (Addresses are stored in the same
/// widths in which the kernel reads them, one or several together; otherwise each row would wait for the stores.)
VARVE_INLINE void call_on_rows(loop f, index_t n, index_t rows, void* to, void const** in, index_t const* step,
                               int count) {
  char* out = static_cast<char*>(to);
  for (index_t r = 0; r < rows; ++r) {
    f(static_cast<std::size_t>(n), out, in);
    out += step[0];
    for (int k = 1; k < count; ++k) in[k - 1] = static_cast<char const*>(in[k - 1]) + step[k];
  }
}
/// Computes rows whose operands are contiguous, or a single element that the kernel repeats itself.
VARVE_NOINLINE inline void pointwise_whole_rows(walk& w, loop f) {
  index_t const n = w.size[w.rank - 1], none[max_operands]{};
  int const outer = w.rank - 2;
  index_t const rows = outer >= 0 ? w.size[outer] : 1, *const step = outer >= 0 ? w.stride[outer] : none;
  if (outer >= 0) w.size[outer] = 1; // the walk stays on the other dimensions
  do {
    void const* in[max_operands];
    for (int k = 1; k < w.count; ++k) in[k - 1] = w.data[k];
    detail::call_on_rows(f, n, rows, w.data[0], in, step, w.count);
  } while (w.next());
}
/// Computes rows that are long enough for a call each. Operands that are not contiguous or need a conversion are copied
/// in blocks.
VARVE_NOINLINE inline void pointwise_rows(walk& w, loop f, loops_beside const& beside) {
  index_t const n = w.size[w.rank - 1];
  index_t const* stride = w.stride[w.rank - 1];
  bool plain = true;
  for (int k = 0; k < w.count; ++k)
    plain = plain && (stride[k] == w.itemsize[k] || (stride[k] == 0 && k > 0)) && !w.convert[k];
  if (plain) {
    unsigned const repeated = detail::repeated_in_rows(w);
    if (loop const whole = repeated ? beside.find(repeated) : f) return detail::pointwise_whole_rows(w, whole);
  }
  if (plain) return detail::pointwise_plain_rows(w, f);
  alignas(64) unsigned char packed[max_operands][block * 8], converted[max_operands][block * 8];
  char const* repeated[max_operands]{}; // address from which a broadcast operand's block was filled
  do {
    for (index_t i = 0; i < n; i += block) {
      index_t const m = n - i < block ? n - i : block;
      void* p[max_operands];
      for (int k = 0; k < w.count; ++k) {
        char* const source = w.data[k] + i * stride[k];
        bool const adjacent = stride[k] == w.itemsize[k], broadcast = stride[k] == 0 && k > 0;
        index_t const count = broadcast ? (n < block ? n : block) : m;
        p[k] = adjacent ? static_cast<void*>(source) : packed[k];
        if (broadcast && repeated[k] == source) {
          if (w.convert[k]) p[k] = converted[k];
          continue;
        }
        if (!adjacent && k > 0) detail::gather(packed[k], w.itemsize[k], source, stride[k], count, w.itemsize[k]);
        if (k > 0) p[k] = detail::as_taken(w, k, count, p[k], converted[k]);
        repeated[k] = broadcast ? source : nullptr;
      }
      f(static_cast<std::size_t>(m), p[0], p + 1);
      if (p[0] == packed[0])
        detail::gather(w.data[0] + i * stride[0], stride[0], packed[0], w.itemsize[0], m, w.itemsize[0]);
    }
  } while (w.next());
}

/// Returns the outer dimension along which an operand is contiguous, if gathering its rows would read one cache line
/// per element; -1 if the operand needs no transposition.
inline int turned_along(walk const& w, int k) {
  int const inner = w.rank - 1;
  if (w.stride[inner][k] == 0 || w.stride[inner][k] == w.itemsize[k]) return -1;
  for (int d = 0; d < inner; ++d)
    if (w.stride[d][k] == w.itemsize[k] && w.size[d] >= 8) return d;
  return -1;
}
using tile_copy = void (*)(char*, index_t, index_t, char const*, index_t, index_t, index_t, index_t);
inline tile_copy tiles_of(int bytes) {
  return bytes == 4 ? copy_tiles<4> : bytes == 8 ? copy_tiles<8> : bytes == 2 ? copy_tiles<2> : copy_tiles<1>;
}
/// Buffers for up to two transposed operands; operands that are the same memory share a buffer.
struct turned_operands {
  unsigned char* place[max_operands]{};
  int same[max_operands]; // the operand whose buffer it uses
  turned_operands(walk const& w, int across, unsigned char* first, unsigned char* second) {
    unsigned char* const places[] = {first, second};
    int turned = 0;
    for (int k = 0; k < w.count; ++k) {
      same[k] = k;
      if (k == 0 || turned_along(w, k) != across) continue;
      for (int j = k - 1; j > 0; --j)
        if (place[j] && w.data[j] == w.data[k] && w.itemsize[j] == w.itemsize[k]) {
          bool alike = true;
          for (int d = 0; d < w.rank; ++d) alike = alike && w.stride[d][j] == w.stride[d][k];
          if (alike) same[k] = j;
        }
      if (same[k] != k) place[k] = place[same[k]];
      else if (turned < 2) place[k] = places[turned++];
    }
  }
};
/// Computes operands that are contiguous along another dimension than the inner one. Some of their rows are transposed
/// at a time, and stay in the first-level cache until the kernel has read them.
VARVE_NOINLINE inline void pointwise_tiles(walk& w, loop f, loops_beside const& beside, int across) {
  constexpr index_t rows = 16, width = 1024; // bytes of a row
  alignas(64) unsigned char packed[max_operands][width], converted[max_operands][width * 8];
  alignas(64) unsigned char tile[2][rows * width];
  int const inner = w.rank - 1, count = w.count;
  index_t const n = w.size[inner], all = w.size[across], *const step = w.stride[inner], *const row = w.stride[across];
  turned_operands const turned(w, across, tile[0], tile[1]);
  unsigned char* const* const place = turned.place;
  char const* repeated[max_operands]{}; // address of an element that the row repeats
  int most = 1;
  for (int k = 0; k < count; ++k) most = most > w.itemsize[k] ? most : w.itemsize[k];
  index_t const block = width / most;
  bool quick = true; // true if nothing is packed or converted
  index_t apart[max_operands];
  for (int k = 0; k < count; ++k) {
    apart[k] = place[k] ? width : row[k];
    quick = quick && !w.convert[k] && (place[k] || step[k] == w.itemsize[k] || (step[k] == 0 && k > 0));
  }
  unsigned const ones = detail::repeated_in_rows(w);
  loop const whole = !quick ? nullptr : ones ? beside.find(ones) : f;
  w.size[across] = 1; // the walk stays on the other dimensions
  do
    for (index_t r = 0; r < all; r += rows)
      for (index_t c = 0; c < n; c += block) {
        index_t const h = all - r < rows ? all - r : rows, m = n - c < block ? n - c : block;
        for (int k = 1; k < count; ++k)
          if (place[k] && turned.same[k] == k)
            tiles_of(w.itemsize[k])(reinterpret_cast<char*>(place[k]), width, w.itemsize[k],
                                    w.data[k] + r * row[k] + c * step[k], row[k], step[k], h, m);
        if (whole) {
          void const* in[max_operands];
          for (int k = 1; k < count; ++k)
            in[k - 1] = place[k] ? static_cast<void const*>(place[k]) : w.data[k] + r * row[k] + c * step[k];
          detail::call_on_rows(whole, m, h, w.data[0] + r * row[0] + c * step[0], in, apart, count);
          continue;
        }
        for (index_t i = 0; i < h; ++i) {
          void* p[max_operands];
          for (int k = 0; k < count; ++k) {
            char* const source = w.data[k] + (r + i) * row[k] + c * step[k];
            p[k] = place[k] ? static_cast<void*>(place[k] + i * width) : source;
            if (!place[k] && step[k] != w.itemsize[k]) {
              p[k] = packed[k];
              bool const kept = step[k] == 0 && repeated[k] == source;
              if (!kept)
                detail::gather(packed[k], w.itemsize[k], source, step[k], step[k] == 0 ? block : m, w.itemsize[k]);
              repeated[k] = step[k] == 0 ? source : nullptr;
            }
            if (k > 0) p[k] = detail::as_taken(w, k, m, p[k], converted[k]);
          }
          f(static_cast<std::size_t>(m), p[0], p + 1);
        }
      }
  while (w.next());
}

/// Computes short rows: as many as fit are packed together.
VARVE_NOINLINE inline void pointwise_short_rows(walk& w, loop f) {
  alignas(64) unsigned char packed[max_operands][block * 8], converted[max_operands][block * 8];
  char* target[block];
  index_t const n = w.size[w.rank - 1], rows = block / n;
  index_t const* stride = w.stride[w.rank - 1];
  bool adjacent[max_operands], constant[max_operands];
  char* start[max_operands];
  for (int k = 0; k < w.count; ++k) {
    adjacent[k] = w.adjacent(k);
    constant[k] = k > 0 && w.constant(k);
    start[k] = w.data[k];
    if (constant[k]) detail::gather(packed[k], w.itemsize[k], w.data[k], 0, block, w.itemsize[k]);
  }
  for (bool more = true; more;) {
    index_t r = 0;
    for (; more && r < rows; ++r) {
      target[r] = w.data[0];
      for (int k = 1; k < w.count; ++k)
        if (!adjacent[k] && !constant[k])
          detail::gather(packed[k] + r * n * w.itemsize[k], w.itemsize[k], w.data[k], stride[k], n, w.itemsize[k]);
      more = w.next();
    }
    void* p[max_operands];
    for (int k = 0; k < w.count; ++k) {
      p[k] = adjacent[k] ? static_cast<void*>(start[k]) : packed[k];
      if (k > 0) p[k] = detail::as_taken(w, k, r * n, p[k], converted[k]);
      start[k] += r * n * w.itemsize[k];
    }
    f(static_cast<std::size_t>(r * n), p[0], p + 1);
    if (!adjacent[0])
      for (index_t i = 0; i < r; ++i)
        detail::gather(target[i], stride[0], packed[0] + i * n * w.itemsize[0], w.itemsize[0], n, w.itemsize[0]);
  }
}
} // namespace detail

namespace detail {
VARVE_NOINLINE inline void pointwise_strided(dims const& sizes, operand out, operand const* in, int count, loop f,
                                             loops_beside const& beside) {
  walk w(sizes, out, in, count);
  index_t const n = numel(varve::detail::as_numbers(sizes));
  int across = -1;
  if (n >= 256 && w.stride[w.rank - 1][0] == w.itemsize[0] && w.size[w.rank - 1] >= 8)
    for (int k = 1; k <= count && across < 0; ++k) across = turned_along(w, k);
  if (across >= 0) return pointwise_tiles(w, f, beside, across);
  if (w.rank == 1 || w.size[w.rank - 1] >= 32) pointwise_rows(w, f, beside);
  else pointwise_short_rows(w, f);
}
/// Computes a strided call in threads that share the outermost dimension.
VARVE_NOINLINE inline void pointwise_in_parts(dims const& sizes, operand out, operand const* in, int count, loop f,
                                              loops_beside const& beside) {
  int d = 0;
  while (d + 1 < sizes.n && sizes.numbers()[d] == 1) ++d;
  index_t const n = numel(varve::detail::as_numbers(sizes));
  varve::fusion::share(sizes.n ? sizes.numbers()[d] : 1, 1, n, [&](index_t from, index_t to) {
    dims part = sizes;
    part[d] = to - from;
    operand to_out = out, moved[max_operands];
    to_out.data = static_cast<char*>(out.data) + from * out.strides[d] * out.itemsize;
    for (int k = 0; k < count; ++k) {
      moved[k] = in[k];
      moved[k].data = static_cast<char*>(in[k].data) + from * in[k].strides[d] * in[k].itemsize;
    }
    pointwise_strided(part, to_out, moved, count, f, beside);
  });
}
/// Runs a kernel over contiguous memory, in threads if it is large. `bytes` holds the item size of each operand, the
/// result first.
VARVE_INLINE void pointwise_flat(index_t n, void* out, void const* const* in, int const* bytes, int count, loop f) {
  if constexpr (varve::fusion::threaded)
    if (n >= varve::fusion::shared_points) [[unlikely]]
      return varve::fusion::share(n, 64, n, [&](index_t from, index_t to) {
        void const* p[max_operands];
        for (int k = 0; k < count; ++k) p[k] = static_cast<char const*>(in[k]) + from * bytes[k + 1];
        f(static_cast<std::size_t>(to - from), static_cast<char*>(out) + from * bytes[0], p);
      });
  f(static_cast<std::size_t>(n), out, in);
}
} // namespace detail

/// Runs a contiguous kernel over operands of common `sizes` with any strides. Inputs of other types are converted by
/// their `convert`. A stride of 0 broadcasts an input, and strides may be negative. Rank 0 is one element, and an empty
/// shape does nothing. There are at most 8 inputs. `out` may be strided and may be the same memory as an input.
/// Otherwise it must not overlap an input or itself. `beside` holds further kernels of the same function.
VARVE_NOINLINE inline void pointwise(dims const& sizes, operand out, operand const* in, int count, loop f,
                                     loops_beside const& beside = {}) {
  index_t const n = numel(varve::detail::as_numbers(sizes));
  if (n == 0) return;
  bool contiguous = detail::is_contiguous(sizes, out.strides);
  for (int k = 0; k < count && contiguous; ++k)
    contiguous = !in[k].convert && detail::is_contiguous(sizes, in[k].strides);
  if (contiguous) {
    void const* p[detail::max_operands];
    int bytes[detail::max_operands + 1]{out.itemsize};
    for (int k = 0; k < count; ++k) p[k] = in[k].data, bytes[k + 1] = in[k].itemsize;
    return detail::pointwise_flat(n, out.data, p, bytes, count, f);
  }
  if constexpr (varve::fusion::threaded)
    if (n >= varve::fusion::shared_points && varve::fusion::most_threads() > 1)
      return detail::pointwise_in_parts(sizes, out, in, count, f, beside);
  detail::pointwise_strided(sizes, out, in, count, f, beside);
}

} // namespace varve::kernel
