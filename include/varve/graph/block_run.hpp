// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstring>
#include <varve/graph/block_body.hpp>
#include <varve/kernel/convert.hpp>

namespace varve::loop {

/// Runs a loop nest block by block. `buffer[k]` is where buffer k of the program begins, `scratch` has room for `body.scratch` bytes.
template <class = void>
class block_runner {
public:
  VARVE_NOINLINE static void run(block_body const& b, std::byte* const* buffer, std::byte* scratch) {
    block_runner r{b, buffer, reinterpret_cast<std::byte**>(scratch), scratch};
    r.start();
    r.outer(0);
  }

private:
  using place = block_value::place;
  block_body const& b;
  std::byte* const* buffer;
  std::byte** at; // of values, in the present block
  std::byte* scratch;
  index_t i[max_rank]{}; // the loops around blocks; of the outermost one in them, where the block begins
  index_t chunk = 0;
  bool first = true;

  block_runner(block_body const& body_, std::byte* const* buffer_, std::byte** at_, std::byte* scratch_) : b(body_), buffer(buffer_), at(at_), scratch(scratch_) {}

  void start() {
    auto* const blocks = scratch + (b.values.size() * sizeof(void*) + 63) / 64 * 64;
    auto* const constants = static_cast<std::byte*>(b.constants.raw());
    for (std::size_t v = 0; v < b.values.size(); ++v) {
      block_value const& x = b.values[v];
      at[v] = x.where == place::memory ? nullptr : (x.where == place::constant ? constants : blocks) + x.byte * b.block;
    }
    for (block_sink const& s : b.sinks)
      if (s.clear) clear(s, 0, buffer[access(s.access).buffer] + access(s.access).offset * access(s.access).itemsize);
  }
  block_access const& access(int a) const { return b.accesses[static_cast<std::size_t>(a)]; }
  /// Where the present block of an access begins.
  std::byte* address(block_access const& a) const {
    index_t p = a.offset;
    for (int l = 0; l <= b.tile; ++l) p += a.stride[l] * i[l];
    return buffer[a.buffer] + p * a.itemsize;
  }
  /// Gives what is to be folded into its neutral value: row by row over the loops from `l` inwards.
  void clear(block_sink const& s, int l, std::byte* p) const {
    block_access const& a = access(s.access);
    while (l < b.rank && a.stride[l] == 0) ++l;
    if (l == b.rank) return s.fold.clear(1, p);
    int last = b.rank - 1;
    while (a.stride[last] == 0) --last;
    if (l == last && a.stride[l] == 1) return s.fold.clear(b.extent[l], p);
    for (index_t k = 0; k < b.extent[l]; ++k) clear(s, l + 1, p + k * a.stride[l] * a.itemsize);
  }
  void outer(int l) {
    if (l < b.tile) {
      for (i[l] = 0; i[l] < b.extent[l]; ++i[l]) outer(l + 1);
      return;
    }
    if (b.inner == 0) return;
    for (i[l] = 0; i[l] < b.extent[l]; i[l] += b.chunk) {
      chunk = b.extent[l] - i[l] < b.chunk ? b.extent[l] - i[l] : b.chunk;
      block();
    }
  }
  void block() {
    index_t const n = chunk * b.inner;
    for (std::size_t v = 0; v < b.values.size(); ++v)
      if (b.values[v].where == place::memory) at[v] = address(access(b.values[v].access));
    for (block_step const& s : b.steps) {
      if (s.what == block_step::kind::call) {
        void const* const in[] = {at[s.in[0]], at[s.in[1]], at[s.in[2]], at[s.in[3]]};
        s.f(static_cast<std::size_t>(n), at[s.out], in);
      } else if (block_access const& a = access(s.access); s.what == block_step::kind::index) {
        count(a, b.values[static_cast<std::size_t>(s.out)].type, at[s.out]);
      } else if (first || !a.once) {
        copy(a, at[s.out], n);
      }
    }
    for (block_sink const& s : b.sinks) leave(s, n);
    first = false;
  }
  /// Brings the elements of a block together.
  void copy(block_access const& a, std::byte* to, index_t n) const {
    std::byte const* const from = address(a);
    if (a.period == 1) return kernel::detail::gather(to, a.itemsize, from, 0, n, a.itemsize);
    if (a.period > 1) { // what is there is doubled until it is enough
      index_t have = a.period < n ? a.period : n;
      std::memcpy(to, from, static_cast<std::size_t>(have * a.itemsize));
      for (index_t more = 0; have < n; have += more) {
        more = n - have < have ? n - have : have;
        std::memcpy(to + have * a.itemsize, to, static_cast<std::size_t>(more * a.itemsize));
      }
      return;
    }
    index_t const step = a.stride[b.rank - 1] * a.itemsize;
    for_each_row(b, chunk, a, [&](index_t element, index_t p, index_t row) {
      kernel::detail::gather(to + element * a.itemsize, a.itemsize, from + p * a.itemsize, step, row, a.itemsize);
    });
  }
  /// The affine function of the loop indices that an access is.
  void count(block_access const& a, dtype t, std::byte* to) const {
    index_t start = a.offset;
    for (int l = 0; l <= b.tile; ++l) start += a.stride[l] * i[l];
    index_t const step = a.stride[b.rank - 1];
    on_dtype(t, "fuse", [&]<class T>() {
      for_each_row(b, chunk, a, [&](index_t element, index_t p, index_t row) {
        for (index_t k = 0; k < row; ++k) reinterpret_cast<T*>(to)[element + k] = static_cast<T>(start + p + k * step);
      });
    });
  }
  /// Stores a block, or folds it into memory.
  void leave(block_sink const& s, index_t n) const {
    if (s.value < 0) return;
    block_access const& a = access(s.access);
    std::byte const* const x = at[s.value];
    std::byte* const to = address(a);
    index_t const step = a.stride[b.rank - 1];
    if (s.kind == sink_kind::store) {
      if (a.all) return void(std::memcpy(to, x, static_cast<std::size_t>(n * a.itemsize)));
      for_each_row(b, chunk, a, [&](index_t element, index_t p, index_t row) {
        kernel::detail::gather(to + p * a.itemsize, step * a.itemsize, x + element * a.itemsize, a.itemsize, row, a.itemsize);
      });
      return;
    }
    if (a.all) return s.fold.columns(1, n, n, x, to);
    if (a.period == 1) return s.fold.row(n, x, to);
    if (a.period > 1) return s.fold.columns(n / a.period, a.period, a.period, x, to);
    int const size = itemsize(b.values[static_cast<std::size_t>(s.value)].type);
    for_each_row(b, chunk, a, [&](index_t element, index_t p, index_t row) {
      std::byte const* const from = x + element * size;
      std::byte* const here = to + p * a.itemsize;
      if (step == 0) s.fold.row(row, from, here);
      else if (step == 1) s.fold.columns(1, row, row, from, here);
      else
        for (index_t k = 0; k < row; ++k) s.fold.row(1, from + k * size, here + k * step * a.itemsize);
    });
  }
};

} // namespace varve::loop
