// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/core/dims.hpp>
#include <varve/kernel/simd.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// @file
/// Traversal of strided memory of any element type: dimensions are sorted and merged, and rows are gathered or copied.
namespace varve::kernel {

/// An element of 1, 2, 4, 8 or 16 bytes that is only moved, whatever its type.
template <int Bytes>
struct item {
  unsigned char bytes[Bytes];
};
/// Calls `f.template operator()<item<B>>()` for elements of B bytes, where B is 1, 4, 8 or 16.
template <class F>
decltype(auto) on_item(int bytes, F&& f) {
  if (bytes == 4) return f.template operator()<item<4>>();
  if (bytes == 8) return f.template operator()<item<8>>();
  if (bytes == 16) return f.template operator()<item<16>>();
  return f.template operator()<item<1>>();
}

/// A kernel over `n` contiguous elements; `in` points to the addresses of the inputs. `out` may be one of the inputs.
using loop = void (*)(std::size_t n, void* out, void const* const* in);
/// A `loop` for which some inputs are single elements: bit k of `which` is set for input k.
struct loop_beside {
  unsigned which = 0;
  loop run = nullptr;
};

/// Memory of a value: the address of its first element, the strides in elements for the dimensions it is used with
/// (0 = broadcast), and the bytes of one element.
struct operand {
  void* data;
  index_t const* strides;
  int itemsize;
  loop convert = nullptr; ///< for an input of `pointwise`: converts its elements to the type that the kernel expects
  operand() = default;
  operand(void* d, index_t const* s, int bytes) : data(d), strides(s), itemsize(bytes) {}
  /// Wraps an input. It is only read, though its pointer has the same type as that of an output.
  operand(void const* d, index_t const* s, int bytes) : data(const_cast<void*>(d)), strides(s), itemsize(bytes) {}
};

namespace detail {
inline constexpr int max_operands = 9; // an output and eight inputs

inline bool is_contiguous(dims const& sizes, index_t const* strides) {
  index_t expected = 1;
  for (int d = sizes.n - 1; d >= 0; --d) {
    index_t const size = sizes.numbers()[d];
    if (size != 1 && strides[d] != expected) return false;
    expected *= size;
  }
  return true;
}

/// Copies every second of twice as many elements as a register has.
template <class T, std::size_t... I>
VARVE_INLINE void copy_evens(char* to, char const* from, std::index_sequence<I...>) {
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  native a, b;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + sizeof a, sizeof b);
  native const r = __builtin_shufflevector(a, b, (2 * I)...);
  std::memcpy(to, &r, sizeof r);
}
template <int Bytes>
inline void gather_items(char* to, index_t to_stride, char const* from, index_t from_stride, index_t n) {
  if (to_stride == Bytes && from_stride == Bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(n * Bytes));
    return;
  }
  index_t i = 0;
  if constexpr (Bytes == 1)
    if (to_stride == 1 && from_stride == 0 && n > 0) {
      std::memset(to, static_cast<unsigned char>(*from), static_cast<std::size_t>(n));
      return;
    }
  if constexpr (Bytes == 4 || Bytes == 8)
    if (to_stride == Bytes && from_stride == 0) { // one element repeated
      using T = std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>;
      T x;
      std::memcpy(&x, from, Bytes);
      for (constexpr index_t L = lanes<T>; i + L <= n; i += L) {
        batch<T> const v(x);
        std::memcpy(to + i * Bytes, &v, sizeof(v));
      }
    }
  if constexpr ((Bytes == 4 || Bytes == 8) && lanes<std::int32_t> > 1)
    if (to_stride == Bytes && from_stride == 2 * Bytes) { // every second element; nothing is read behind the last one
      using T = std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>;
      for (constexpr index_t L = lanes<T>; i + L < n; i += L)
        detail::copy_evens<T>(to + i * Bytes, from + i * 2 * Bytes, std::make_index_sequence<lanes<T>>{});
    }
  to += i * to_stride;
  from += i * from_stride;
  for (; i < n; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, Bytes);
}
/// Copies `n` items of 1, 2, 4, 8 or 16 bytes between strides in bytes.
VARVE_NOINLINE inline void gather(void* to, index_t to_stride, void const* from, index_t from_stride, index_t n,
                                  int itemsize) {
  auto* const t = static_cast<char*>(to);
  auto const* const s = static_cast<char const*>(from);
  if (itemsize == 4) detail::gather_items<4>(t, to_stride, s, from_stride, n);
  else if (itemsize == 8) detail::gather_items<8>(t, to_stride, s, from_stride, n);
  else if (itemsize == 2) detail::gather_items<2>(t, to_stride, s, from_stride, n);
  else if (itemsize == 16) detail::gather_items<16>(t, to_stride, s, from_stride, n);
  else detail::gather_items<1>(t, to_stride, s, from_stride, n);
}

/// Iteration over the rows of an output and its inputs. Dimensions are sorted so that the output's smallest strides are
/// innermost, and adjacent dimensions are merged if every operand allows it.
struct walk {
  int rank = 0, count = 0;
  index_t size[max_rank]{}, at[max_rank]{};
  index_t stride[max_rank][max_operands]; // in bytes; operand 0 is the output
  char* data[max_operands];               // the current row
  int itemsize[max_operands];
  loop convert[max_operands];

  VARVE_NOINLINE walk(dims const& sizes, operand const& out, operand const* in, int inputs) : count(inputs + 1) {
    for (int k = 0; k < count; ++k) {
      operand const& o = k == 0 ? out : in[k - 1];
      data[k] = static_cast<char*>(o.data);
      itemsize[k] = o.itemsize;
      convert[k] = o.convert;
    }
    for (int d = 0; d < sizes.n; ++d) {
      index_t const n = sizes.numbers()[d];
      if (n == 1) continue;
      index_t s[max_operands];
      for (int k = 0; k < count; ++k) s[k] = (k == 0 ? out : in[k - 1]).strides[d] * itemsize[k];
      int place = rank;
      while (place > 0 && is_outer(s, stride[place - 1])) --place;
      for (int e = rank; e > place; --e) move(e, e - 1);
      size[place] = n;
      for (int k = 0; k < count; ++k) stride[place][k] = s[k];
      ++rank;
    }
    merge();
    if (rank == 0) {
      size[0] = rank = 1;
      for (int k = 0; k < count; ++k) stride[0][k] = itemsize[k];
    }
  }

  /// Moves to the next row. Returns false after the last one, when all pointers are back at the first.
  bool next() {
    for (int d = rank - 2; d >= 0; --d) {
      bool const wraps = ++at[d] == size[d];
      if (wraps) at[d] = 0;
      for (int k = 0; k < count; ++k) data[k] += wraps ? -stride[d][k] * (size[d] - 1) : stride[d][k];
      if (!wraps) return true;
    }
    return false;
  }
  /// Returns whether an operand's elements are contiguous in the order of the iteration.
  bool adjacent(int k) const {
    index_t expected = itemsize[k];
    for (int d = rank - 1; d >= 0; expected *= size[d--])
      if (stride[d][k] != expected) return false;
    return true;
  }
  /// Returns whether an operand is a single broadcast element.
  bool constant(int k) const {
    for (int d = 0; d < rank; ++d)
      if (stride[d][k] != 0) return false;
    return true;
  }

private:
  static index_t magnitude(index_t x) { return x < 0 ? -x : x; }
  /// Returns whether a dimension with strides `a` belongs outside of one with strides `b`. The first operand that is
  /// not broadcast in either of them and whose strides differ decides.
  bool is_outer(index_t const* a, index_t const* b) const {
    for (int k = 0; k < count; ++k)
      if (a[k] != 0 && b[k] != 0 && magnitude(a[k]) != magnitude(b[k])) return magnitude(a[k]) > magnitude(b[k]);
    return false;
  }
  void move(int to, int from) {
    size[to] = size[from];
    for (int k = 0; k < count; ++k) stride[to][k] = stride[from][k];
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool fits = true;
      for (int k = 0; k < count; ++k) fits = fits && stride[last][k] == stride[d][k] * size[d];
      index_t const n = fits ? size[last] * size[d] : size[d];
      if (!fits) ++last;
      move(last, d);
      size[last] = n;
    }
    if (rank > 0) rank = last + 1;
  }
};

/// Transposes a square of lanes x lanes elements; the input is contiguous along rows, the output along columns.
template <int Bytes>
VARVE_INLINE void copy_square(char* to, index_t to_row, char const* from, index_t from_col) {
  using T = std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>;
  batch<T> square[lanes<T>];
  for (std::size_t k = 0; k < lanes<T>; ++k)
    std::memcpy(&square[k], from + static_cast<index_t>(k) * from_col, sizeof(batch<T>));
  kernel::transpose<T>(square);
  for (std::size_t k = 0; k < lanes<T>; ++k)
    std::memcpy(to + static_cast<index_t>(k) * to_row, &square[k], sizeof(batch<T>));
}
/// Transposes memory; the input is contiguous along rows, the output usually along columns. Squares are transposed in
/// registers; the last square of a row or column overlaps the one before. Other cases use tiles, so that on both sides
/// a cache line stays in the first-level cache until it is no longer used.
template <int Bytes>
VARVE_NOINLINE void copy_tiles(char* to, index_t to_row, index_t to_col, char const* from, index_t from_row,
                               index_t from_col, index_t rows, index_t cols) {
  if constexpr ((Bytes == 4 || Bytes == 8) && lanes<std::int64_t> > 1) {
    constexpr index_t L = lanes<std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>>;
    if (rows >= L && cols >= L && to_col == Bytes && from_row == Bytes) {
      for (index_t r = 0; r < rows; r += L) {
        index_t const i = r + L <= rows ? r : rows - L;
        for (index_t c = 0; c < cols; c += L) {
          index_t const j = c + L <= cols ? c : cols - L;
          detail::copy_square<Bytes>(to + i * to_row + j * Bytes, to_row, from + i * Bytes + j * from_col, from_col);
        }
      }
      return;
    }
  }
  constexpr index_t tile = 32;
  for (index_t r = 0; r < rows; r += tile)
    for (index_t c = 0; c < cols; c += tile) {
      index_t const h = rows - r < tile ? rows - r : tile, w = cols - c < tile ? cols - c : tile;
      char* const t = to + r * to_row + c * to_col;
      char const* const f = from + r * from_row + c * from_col;
      for (index_t i = 0; i < h; ++i)
        detail::gather_items<Bytes>(t + i * to_row, to_col, f + i * from_row, from_col, w);
    }
}
/// Copies short rows column by column, some rows at a time, so that both memories stay in the first-level cache.
VARVE_NOINLINE inline void copy_columns(walk& w) {
  constexpr index_t some = 256;
  int const inner = w.rank - 1, outer = inner - 1;
  index_t const rows = w.size[outer], *const row = w.stride[outer], *const column = w.stride[inner];
  w.size[outer] = 1; // the walk stays on the other dimensions
  do
    for (index_t r = 0; r < rows; r += some)
      for (index_t c = 0; c < w.size[inner]; ++c)
        detail::gather(w.data[0] + r * row[0] + c * column[0], row[0], w.data[1] + r * row[1] + c * column[1], row[1],
                       rows - r < some ? rows - r : some, w.itemsize[1]);
  while (w.next());
}
} // namespace detail

/// Writes one element `n` times.
VARVE_NOINLINE inline void fill(void* to, void const* element, index_t n, int itemsize) {
  auto const* const bytes = static_cast<unsigned char const*>(element);
  bool same = n > 0;
  for (int k = 1; k < itemsize; ++k) same = same && bytes[k] == bytes[0];
  if (same) std::memset(to, bytes[0], static_cast<std::size_t>(n * itemsize)); // mainly for zeros
  else detail::gather(to, itemsize, element, 0, n, itemsize);
}

/// Copies elements of the same type between any strides; an input stride of 0 broadcasts. The memories must not
/// overlap.
VARVE_NOINLINE inline void copy_strided(dims const& sizes, operand out, operand in) {
  index_t const n = numel(varve::detail::as_numbers(sizes));
  if (n == 0) return;
  if (detail::is_contiguous(sizes, out.strides) && detail::is_contiguous(sizes, in.strides)) {
    std::memcpy(out.data, in.data, static_cast<std::size_t>(n * in.itemsize));
    return;
  }
  detail::walk w(sizes, out, &in, 1);
  int const inner = w.rank - 1;
  int across = -1; // the dimension along which the input is contiguous, if it is not the inner one
  for (int d = 0; d < inner; ++d)
    if (w.stride[d][1] == in.itemsize && w.stride[inner][1] != 0) across = d;
  if (across < 0 && inner > 0 && w.size[inner] <= 8 && w.size[inner - 1] > 4 * w.size[inner]) {
    detail::copy_columns(w);
    return;
  }
  if (across < 0) {
    do detail::gather(w.data[0], w.stride[inner][0], w.data[1], w.stride[inner][1], w.size[inner], in.itemsize);
    while (w.next());
    return;
  }
  index_t const rows = w.size[across], to_row = w.stride[across][0], from_row = w.stride[across][1];
  w.size[across] = 1; // the walk stays on the other dimensions
  do {
    auto const tiles = in.itemsize == 4    ? detail::copy_tiles<4>
                       : in.itemsize == 8  ? detail::copy_tiles<8>
                       : in.itemsize == 2  ? detail::copy_tiles<2>
                       : in.itemsize == 16 ? detail::copy_tiles<16>
                                           : detail::copy_tiles<1>;
    tiles(w.data[0], to_row, w.stride[inner][0], w.data[1], from_row, w.stride[inner][1], rows, w.size[inner]);
  } while (w.next());
}

} // namespace varve::kernel
