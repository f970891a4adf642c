// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/scratch_memory.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/plan/tables.hpp>
#include <varve/plan/threads.hpp>

#include <cstring>

namespace varve::fusion {

/// Fills `n` elements of dtype `t` with a number. (A template, so that it costs nothing unless used.)
template <class = void>
VARVE_NOINLINE void fill_elements(dtype t, void* out, index_t n, double value) {
  on_dtype(t, "fuse", [&]<class T>() {
    for (index_t k = 0; k < n; ++k) static_cast<T*>(out)[k] = kernel::cast<T>(value);
  });
}

/// A runner of one loop nest, block by block. `buffer[k]` is the address of buffer k of its function; `scratch` has
/// room for `body.scratch` bytes. Threads (`threads.hpp`) share a loop if every step of the outermost loop writes its
/// own elements.
template <class = void>
class block_runner {
public:
  VARVE_NOINLINE static void run(block_view const& v, block_body const& b, std::byte* const* buffer,
                                 std::byte* scratch) {
    if constexpr (threaded)
      if (loop_parts const parts = parts_of(v, b); parts.count > 1) return run_in_parts(v, b, buffer, parts);
    block_runner r{v, b, buffer, scratch};
    r.clear_all();
    r.outer();
  }

  block_runner(block_view const& view, block_body const& body_, std::byte* const* buffer_, std::byte* scratch)
      : v(view), b(body_), buffer(buffer_), accesses(v.accesses + b.access_first), places(v.places + b.place_first),
        sinks(v.sinks + b.sink_first), sinks_end(sinks + b.sink_count), at(reinterpret_cast<std::byte**>(scratch)),
        begin(0), end(b.extent[0]) {
    sink_at = at + b.place_count, moves = reinterpret_cast<index_t*>(sink_at + b.sink_count);
    auto* const blocks = scratch + block_header(b.place_count, b.memory_count, b.sink_count);
    for (int k = b.memory_count; k < b.place_count; ++k) at[k] = blocks + places[k].byte * b.block;
    auto bytes = [&](int access) { return accesses[access].stride[b.tile] * b.chunk * accesses[access].itemsize; };
    for (int k = 0; k < b.memory_count; ++k) moves[k] = bytes(places[k].access);
    for (int k = 0; k < b.sink_count; ++k) moves[b.memory_count + k] = bytes(sinks[k].access);
  }
  /// Sets destinations of folds to the neutral element, except memory for single rows.
  void clear_all() const {
    for (block_sink const* s = sinks; s != sinks_end; ++s)
      if (s->clear && !accesses[s->access].own) clear(*s);
  }
  /// Runs rounds `from` to `to` of the outermost loop. Memory for single rows has room for these rounds only.
  void rows(index_t from, index_t to) {
    begin = from, end = to;
    for (block_sink const* s = sinks; s != sinks_end; ++s)
      if (s->clear && accesses[s->access].own) clear(*s);
    outer();
  }

private:
  block_view const& v;
  block_body const& b;
  std::byte* const* buffer;
  block_access const* accesses;
  block_place const* places;
  block_sink const *sinks, *sinks_end;
  std::byte** at;        // addresses of the places in the current block
  std::byte** sink_at;   // addresses of the sinks in the current block
  index_t* moves;        // by how many bytes both advance from block to block
  index_t i[max_rank]{}; // indices of the loops around blocks; for loop `tile`, where the block begins
  index_t begin, end;    // of the outermost loop
  index_t chunk = 0;
  bool first = true;

  static loop_parts parts_of(block_view const& v, block_body const& b) {
    index_t points = 1;
    for (int l = 0; l < b.rank; ++l) points *= b.extent[l];
    for (int k = b.sink_first; k < b.sink_first + b.sink_count; ++k)
      if (v.sinks[k].kind != sink_kind::store && v.accesses[b.access_first + v.sinks[k].access].stride[0] == 0)
        points = 0;
    loop_parts r(b.extent[0], b.tile == 0 ? b.chunk : 1, points);
    if (int const n = most_threads(); n < r.count)
      r.count = n; // there is memory for this many threads; results do not depend on their number
    return r;
  }
  VARVE_NOINLINE static void run_in_parts(block_view const& v, block_body const& b, std::byte* const* buffer,
                                          loop_parts const& parts) {
    index_t const bytes = (b.scratch + 63) / 64 * 64;
    scratch_block const scratch(static_cast<std::size_t>(parts.count * bytes));
    block_runner{v, b, buffer, scratch.data()}.clear_all();
    for_each_part(parts.count, [&](int k) {
      block_runner{v, b, buffer, scratch.data() + k * bytes}.rows(parts.begin(k), parts.begin(k + 1));
    });
  }

  /// Returns the address where the current block of an access begins.
  std::byte* address(block_access const& a) const {
    index_t p = a.offset;
    for (int l = 0; l <= b.tile; ++l) p += a.stride[l] * i[l];
    if (a.own) p -= a.stride[0] * begin;
    return buffer[a.buffer] + p * a.itemsize;
  }
  void clear(block_sink const& s) const {
    block_access const& a = accesses[s.access];
    clear(v.folds[s.fold], a, 0, buffer[a.buffer] + a.offset * a.itemsize);
  }
  /// Clears row by row the part of memory that the loops from `l` inwards cover.
  void clear(kernel::detail::reducer const& fold, block_access const& a, int l, std::byte* p) const {
    auto extent = [&](int k) { return k ? b.extent[k] : end - begin; };
    while (l < b.rank && a.stride[l] == 0) ++l;
    if (l == b.rank) return fold.clear(1, p);
    int last = b.rank - 1;
    while (a.stride[last] == 0) --last;
    if (l == last && a.stride[l] == 1) return fold.clear(extent(l), p);
    for (index_t k = 0; k < extent(l); ++k) clear(fold, a, l + 1, p + k * a.stride[l] * a.itemsize);
  }
  void outer() {
    for (int l = 0; l < b.tile; ++l)
      if (i[l] = l ? 0 : begin; i[l] >= last(l)) return;
    if (b.inner == 0) return;
    for (int const t = b.tile;;) {
      index_t const n = last(t);
      i[t] = t ? 0 : begin;
      for (int k = 0; k < b.memory_count; ++k) at[k] = address(accesses[places[k].access]);
      for (int k = 0; k < b.sink_count; ++k) sink_at[k] = address(accesses[sinks[k].access]);
      while (i[t] < n) {
        chunk = n - i[t] < b.chunk ? n - i[t] : b.chunk;
        block();
        if ((i[t] += b.chunk) >= n) break; // no address points past the end of its memory
        for (int k = 0; k < b.memory_count; ++k) at[k] += moves[k];
        for (int k = 0; k < b.sink_count; ++k) sink_at[k] += moves[b.memory_count + k];
      }
      int l = t - 1;
      for (; l >= 0 && ++i[l] == last(l); --l) i[l] = l ? 0 : begin;
      if (l < 0) return;
    }
  }
  /// The end of loop `l`.
  index_t last(int l) const { return l ? b.extent[l] : end; }
  void block() {
    index_t const n = chunk * b.inner;
    for (block_step const *s = v.steps + b.step_first, *const end = s + b.step_count; s != end; ++s) {
      if (s->what == block_step::kind::call) {
        void const* const in[] = {at[s->in[0]], at[s->in[1]], at[s->in[2]], at[s->in[3]]};
        v.kernels[s->kernel](static_cast<std::size_t>(n), at[s->out], in);
      } else if (s->what == block_step::kind::chain) {
        v.kernels[s->kernel](static_cast<std::size_t>(n), const_cast<block_step*>(s),
                             reinterpret_cast<void const* const*>(at));
        s += s->count;
      } else if (s->once && !first) {
        continue;
      } else if (s->what == block_step::kind::fill) {
        fill_elements<>(s->type, at[s->out], s->once ? b.block : n, s->value);
      } else if (s->what == block_step::kind::index) {
        count(accesses[s->access], s->type, at[s->out]);
      } else {
        copy(accesses[s->access], at[s->out], n);
      }
    }
    for (int k = 0; k < b.sink_count; ++k) leave(sinks[k], sink_at[k], n);
    first = false;
  }
  /// Calls `f(first element in the block, address relative to the block's, elements)` for each row of the block.
  template <class F>
  void for_each_row(block_access const& a, F const& f) const {
    int const last = b.rank - 1;
    auto extent = [&](int l) { return l == b.tile ? chunk : b.extent[l]; };
    index_t const row = extent(last), rows = row ? chunk * b.inner / row : 0;
    index_t j[max_rank]{}, p = 0;
    for (index_t k = 0; k < rows; ++k) {
      f(k * row, p, row);
      for (int l = last - 1; l >= b.tile; --l) {
        p += a.stride[l];
        if (++j[l] < extent(l)) break;
        p -= a.stride[l] * j[l];
        j[l] = 0;
      }
    }
  }
  /// Copies the elements of a block into contiguous memory.
  void copy(block_access const& a, std::byte* to, index_t n) const {
    std::byte const* const from = address(a);
    if (a.period == 1) return kernel::detail::gather(to, a.itemsize, from, 0, n, a.itemsize);
    if (a.period > 1) { // the copied part is doubled until it is long enough
      index_t have = a.period < n ? a.period : n;
      std::memcpy(to, from, static_cast<std::size_t>(have * a.itemsize));
      for (index_t more = 0; have < n; have += more) {
        more = n - have < have ? n - have : have;
        std::memcpy(to + have * a.itemsize, to, static_cast<std::size_t>(more * a.itemsize));
      }
      return;
    }
    index_t const step = a.stride[b.rank - 1] * a.itemsize;
    for_each_row(a, [&](index_t element, index_t p, index_t row) {
      kernel::detail::gather(to + element * a.itemsize, a.itemsize, from + p * a.itemsize, step, row, a.itemsize);
    });
  }
  /// Writes the values of an access that is an affine function of the loop indices.
  void count(block_access const& a, dtype t, std::byte* to) const {
    index_t start = a.offset;
    for (int l = 0; l <= b.tile; ++l) start += a.stride[l] * i[l];
    index_t const step = a.stride[b.rank - 1];
    on_dtype(t, "fuse", [&]<class T>() {
      for_each_row(a, [&](index_t element, index_t p, index_t row) {
        for (index_t k = 0; k < row; ++k) reinterpret_cast<T*>(to)[element + k] = static_cast<T>(start + p + k * step);
      });
    });
  }
  /// Stores a block, or folds it into memory.
  void leave(block_sink const& s, std::byte* to, index_t n) const {
    block_access const& a = accesses[s.access];
    std::byte const* const x = at[s.from];
    index_t const step = a.stride[b.rank - 1];
    if (s.kind == sink_kind::store) {
      if (a.all) return void(std::memcpy(to, x, static_cast<std::size_t>(n * a.itemsize)));
      for_each_row(a, [&](index_t element, index_t p, index_t row) {
        kernel::detail::gather(to + p * a.itemsize, step * a.itemsize, x + element * a.itemsize, a.itemsize, row,
                               a.itemsize);
      });
      return;
    }
    kernel::detail::reducer const& fold = v.folds[s.fold];
    if (a.all) return fold.columns(1, n, n, x, to);
    if (a.period == 1) return fold.row(n, x, to);
    if (a.period > 1) return fold.columns(n / a.period, a.period, a.period, x, to);
    for_each_row(a, [&](index_t element, index_t p, index_t row) {
      std::byte const* const from = x + element * s.itemsize;
      std::byte* const here = to + p * a.itemsize;
      if (step == 0) fold.row(row, from, here);
      else if (step == 1) fold.columns(1, row, row, from, here);
      else
        for (index_t k = 0; k < row; ++k) fold.row(1, from + k * s.itemsize, here + k * step * a.itemsize);
    });
  }
};

} // namespace varve::fusion
