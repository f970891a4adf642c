// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/pointwise.hpp>
#include <varve/kernel/reduce.hpp>
#include <varve/plan/program.hpp>

/// @file
/// A planned graph as tables that `block/run.hpp` walks through: what the compiler's loops do element by element,
/// kernels do here on blocks that stay in the first cache. All of it is plain data, made by `table_steps.hpp` and
/// `tables_of_graph.hpp` at run time or by the compiler; kernels are numbers until the tables are linked.
///
/// A block has 512 or 1024 elements of each value. There are few such values at a time, in places that are used again,
/// so that they stay in the first cache. Products of matrices go to their kernel. Functions of `cond` and `scan` are
/// further functions of the same tables, and all memory of a call is one piece of known size. A `block_program` is
/// lists while it is made and arrays of the executable afterwards; the runner walks a `block_view` of either. Kernels
/// are named by `kernel_key`s; linking turns names into pointers: at run time by looking them up (`fuse/graph.hpp`), in
/// the compiler by instantiating each named kernel once (`fuse/table_driven.hpp`).
namespace varve::loop {

/// How the addresses of an access go through one block.
struct block_access {
  int buffer;
  int itemsize;
  index_t offset;
  index_t stride[max_rank];
  /// The elements of a block are the first `period` ones again and again, and those follow one another. `all`: they all
  /// do; 0: there is no such period.
  index_t period;
  bool all;
  /// Every block sees the same elements.
  bool once;
  /// The buffer holds only the rows that its group is at.
  bool own;
};

/// Where one block of a value is: read from or written to memory (`access` >= 0), or in the scratch memory, `byte`
/// bytes in per element of a block.
struct block_place {
  int access;
  int byte;
};

/// Arithmetic of a chain, on the value `r` that is in its registers and on operands in memory. Of a call, which has no
/// registers: `add`, `sub`, `mul`, `divide`, `fma` (x y + z) and `fnma` (z - x y) of its operands in their order.
enum class chain_op : unsigned char {
  none,     // a call that no chain knows
  load,     // a
  add,      // r + a
  sub,      // r - a
  from,     // a - r
  mul,      // r a
  divide,   // r / a
  divides,  // a / r
  square,   // r r
  fma,      // r a + b
  fma_on,   // a b + r
  fnma,     // b - r a
  fnma_from // r - a b
};

/// One kernel call per block; or the copying of elements that do not follow one another (`copy`), an affine function of
/// the loop indices (`index`), or a number (`fill`). Or a `chain`: a call whose kernel does the `count` steps behind
/// it, all of kind `link`, one after the other in registers. A link that only the next one needs has no `out`
/// (`no_place`).
inline constexpr int no_place = -1000;
struct block_step {
  enum class kind : unsigned char { call, copy, index, fill, chain, link } what;
  dtype type;
  /// The first block is all there is to do.
  bool once;
  int kernel; // of `call` and `chain`
  int out;    // places
  int access; // of `copy` and `index`
  int count;
  int in[4];
  double value;                 // of `fill` and `link`
  chain_op op = chain_op::none; // of `call` and `link`
  char single = 0;              // their operands, bit by bit, that are one element for the whole block
  char keep = 0;                // of a `link`: 1 + the registers that its result is copied to, 0: none
};
/// What a chain may have: links; values that nobody else needs, of which some registers at a time are kept near (`~k`
/// instead of a place is the k-th); values in further registers (`~(most_near + k)`); and operands that are single
/// elements, or the number that a link says (`in_link`).
inline constexpr int most_links = 64, most_near = 16, most_kept = 2, most_single = 16,
                     in_link = ~(most_near + most_kept);

/// What is left behind of a block: written by the step that computes it (`from` is -1), stored, or folded into memory.
struct block_sink {
  sink_kind kind;
  bool clear; // the memory holds nothing yet
  int from;   // a place
  int itemsize;
  int access;
  int fold;
};

/// Loops, outermost first; the loops from `tile` inwards make up one block, `chunk` rounds of the outermost of them at
/// a time.
struct block_body {
  int rank, tile;
  index_t extent[max_rank];
  index_t chunk, inner; // `inner`: elements in one round
  index_t block;        // elements that a block has room for
  index_t scratch;      // bytes, with the table of addresses in front
  int access_first;
  int place_first, memory_count, place_count; // those in memory come first
  int step_first, step_count;
  int sink_first, sink_count;
};

/// Bytes in front of the blocks: addresses of the places and of what sinks leave, and by how much those in memory move
/// from block to block.
constexpr index_t block_header(int places, int in_memory, int sinks) {
  return (static_cast<index_t>(sizeof(void*)) * (places + in_memory + 2 * sinks) + 63) / 64 * 64;
}

/// Loop nests that take turns, `rows` rounds of the outermost loop of each at a time; there are `extent`. Its buffers
/// with memory for so many rows are `ports[own_first .. + own_count)`.
struct block_group {
  static constexpr int most = 32; // nests
  int body_first, body_count;
  int own_first, own_count;
  index_t extent, rows;
  index_t points;    // of the loops that threads may share, else 0
  index_t own_bytes; // of its buffers
  index_t scratch;   // bytes, with these in front
};

/// A call with loops of its own.
struct block_call {
  call_info info;
  int callee;
};

/// A function of the graph: its buffers, its stages, and bytes of memory, those of the functions it calls included. Its
/// number is that of its region.
struct block_function {
  int buffer_first, buffer_count;
  int stage_first, stage_count;
  index_t workspace;
  index_t addresses; // bytes: of buffers, and what is handed to functions
  index_t memory;
};

/// What a block is combined by, besides operators.
enum class block_op : unsigned char { add, sub, mul, greatest, least, fma, fnma, equal };

/// Names a kernel over blocks: of an operator computing in `type`, of `arithmetic`, of the conversion from `from` to
/// `type`, or of chains. `single`: operands (bit by bit) of arithmetic that are one element for the whole block, such
/// as the value of a row.
struct kernel_key {
  enum class kind : unsigned char { op, arithmetic, convert, chain } what;
  block_op arithmetic;
  dtype type, from;
  op_handle const* op;
  int single;
};
/// Names how blocks of dtype `type` are folded into memory.
struct fold_key {
  sink_kind kind;
  dtype type;
};
/// Names what executes a call: results of `type`, where it matters with indices or operands of `other`.
struct callee_key {
  operator_class what;
  dtype type, other;
  op_handle const* op;
};

/// The names that linking turns into pointers, each once.
struct block_keys {
  list<kernel_key> kernels;
  list<fold_key> folds;
  list<callee_key> callees;
};

/// The tables while they are being made.
struct block_program {
  list<buffer> buffers;
  list<int> ports;
  list<stage> stages;
  list<block_call> calls;
  list<block_body> bodies;
  list<block_group> groups;
  list<block_access> accesses;
  list<block_place> places;
  list<block_step> steps;
  list<block_sink> sinks;
  list<block_function> functions;
  list<unsigned char> constants;
  list<meta> arguments, results;
  block_keys keys;
  bool writes_arguments = false; // and was not planned
};

/// How calls of one kind are executed; `table` is for those that only tensors know.
struct block_callee {
  void (*run)(block_callee const&, call_info const&, std::byte* const* in, std::byte* out);
  void const* table;
};

/// Linked tables of either form, to run.
struct block_view {
  buffer const* buffers;
  int const* ports;
  stage const* stages;
  block_call const* calls;
  block_body const* bodies;
  block_group const* groups;
  block_access const* accesses;
  block_place const* places;
  block_step const* steps;
  block_sink const* sinks;
  block_function const* functions;
  unsigned char const* constants;
  kernel::loop const* kernels;
  kernel::detail::reducer const* folds;
  block_callee const* callees;
};

} // namespace varve::loop
