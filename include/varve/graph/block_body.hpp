// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>
#include <varve/graph/program.hpp>
#include <varve/kernel/pointwise.hpp>
#include <varve/kernel/reduce.hpp>
#include <varve/value/tensor.hpp>

/// @file
/// A loop nest of a program made ready to run block by block: what the compiler's loops do element by element, kernels do here on blocks that stay in the first cache.
namespace varve::loop {

/// How the addresses of an access go through one block.
struct block_access {
  int buffer;
  int itemsize;
  index_t offset;
  index_t stride[max_rank];
  /// The elements of a block are the first `period` ones again and again, and those follow one another. `all`: they all do; 0: there is no such period.
  index_t period;
  bool all;
  /// Every block sees the same elements.
  bool once;
};

/// Where the elements of one block of a value are.
struct block_value {
  enum class place : unsigned char { memory, scratch, constant } where;
  dtype type;
  int access = -1;   // memory: where it is read from, or written to; scratch: where it is copied from
  index_t byte = 0;  // in the scratch memory or among the constants, per element of a block
  double number = 0; // of a constant
};

/// One kernel call per block, or the copying of elements that do not follow one another (`copy`), or an affine function of the loop indices (`index`).
struct block_step {
  enum class kind : unsigned char { call, copy, index } what;
  kernel::loop f;
  int out;
  int access; // of `copy` and `index`
  int count;
  int in[4];
};

/// What is left behind of a block: written by the step that computes it (`value` is -1), stored, or folded into memory.
struct block_sink {
  sink_kind kind;
  int value;
  int access;
  bool clear; // the memory holds nothing yet
  kernel::detail::reducer fold;
};

/// Loops, outermost first; the loops from `tile` inwards make up one block, `chunk` rounds of the outermost of them at a time.
struct block_body {
  int rank = 0, tile = 0;
  index_t extent[max_rank]{};
  index_t chunk = 1, inner = 1; // `inner`: elements in one round
  index_t block = 0;            // elements that a block has room for
  index_t scratch = 0;          // bytes, with the table of addresses in front
  std::vector<block_access> accesses;
  std::vector<block_value> values;
  std::vector<block_step> steps;
  std::vector<block_sink> sinks;
  tensor constants; // blocks of equal elements
};

/// Calls `f(first element in the block, address relative to the block's, elements)` for each row of a block of `chunk` rounds.
template <class F>
void for_each_row(block_body const& b, index_t chunk, block_access const& a, F const& f) {
  int const last = b.rank - 1;
  auto extent = [&](int l) { return l == b.tile ? chunk : b.extent[l]; };
  index_t const row = extent(last), rows = row ? chunk * b.inner / row : 0;
  index_t i[max_rank]{}, at = 0;
  for (index_t k = 0; k < rows; ++k) {
    f(k * row, at, row);
    for (int l = last - 1; l >= b.tile; --l) {
      at += a.stride[l];
      if (++i[l] < extent(l)) break;
      at -= a.stride[l] * i[l];
      i[l] = 0;
    }
  }
}

} // namespace varve::loop
