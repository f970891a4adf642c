// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/pointwise.hpp>
#include <varve/kernel/reduce.hpp>
#include <varve/plan/program.hpp>

/// @file
/// A planned graph as tables that `block/run.hpp` executes. Kernels do here on blocks, which stay in the first-level
/// cache, what the compiler's loops do element by element. All of it is plain data, made by `table_steps.hpp` and
/// `tables_of_graph.hpp` at run time or at compile time. Kernels are numbers until the tables are linked.
///
/// A block has 512 or 1024 elements of each value. Few such values exist at a time, in places that are reused, so that
/// they stay in the first-level cache. Products of matrices call their kernel. Functions of `cond` and `scan` are
/// further functions of the same tables, and all memory of a call is one piece of known size. A `block_program`
/// consists of lists while it is made and of arrays in the executable afterwards; the runner uses a `block_view` of
/// either. `kernel_key`s name the kernels, and linking turns the names into pointers. At run time they are looked up
/// (`fuse/graph.hpp`); at compile time each named kernel is instantiated once (`fuse/table_driven.hpp`).
namespace varve::fusion {

/// How the addresses of an access advance through one block.
struct block_access {
  int buffer;
  int itemsize;
  index_t offset;
  index_t stride[max_rank];
  /// The elements of a block repeat the first `period` ones, which are contiguous. `all`: the whole block is
  /// contiguous. 0: there is no such period.
  index_t period;
  bool all;
  /// Every block reads the same elements.
  bool once;
  /// The buffer contains only the rows that its group currently processes.
  bool own;
};

/// Where one block of a value is: read from or written to memory (`access` >= 0), or in the scratch memory, where
/// `byte` is the offset in bytes per element of a block.
struct block_place {
  int access;
  int byte;
};

/// The operation of a link in a chain, on the value `r` in its registers and operands in memory. For a call, which has
/// no registers, it names the operation on the operands in their order: `add`, `sub`, `mul`, `divide`, `fma` (x y + z)
/// and `fnma` (z - x y).
enum class chain_op : unsigned char {
  none,     // a call that cannot be in a chain
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

/// The `out` of a link whose result only the next link uses.
inline constexpr int no_place = -1000;
/// One step of a block. `call`: one kernel call per block. `copy`: collects elements that are not contiguous. `index`:
/// an affine function of the loop indices. `fill`: a number. `chain`: a call whose kernel executes the `count` steps
/// after it, all of kind `link`, one after the other in registers.
struct block_step {
  enum class kind : unsigned char { call, copy, index, fill, chain, link } what;
  dtype type;
  /// It runs for the first block only.
  bool once;
  int kernel; // of `call` and `chain`
  int out;    // a place
  int access; // of `copy` and `index`
  int count;
  int in[4];
  double value;                 // of `fill` and `link`
  chain_op op = chain_op::none; // of `call` and `link`
  char single = 0;              // bit mask of their operands that are one element for the whole block
  char keep = 0;                // of a `link`: 1 + the registers into which its result is copied, 0: none
};
/// Limits of a chain: its links; values that only the chain needs, of which a few registers at a time are kept near
/// (`~k` in place of a place is the k-th); values in further registers (`~(most_near + k)`); and operands that are
/// single elements, or the number that the link contains (`in_link`).
inline constexpr int most_links = 64, most_near = 16, most_kept = 2, most_single = 16,
                     in_link = ~(most_near + most_kept);

/// A result of a block: written by the step that computes it (`from` is -1), stored, or folded into memory.
struct block_sink {
  sink_kind kind;
  bool clear; // the memory contains nothing yet
  int from;   // a place
  int itemsize;
  int access;
  int fold;
};

/// Loops, outermost first. The loops from `tile` inwards make up one block, which takes `chunk` rounds of the outermost
/// of them at a time.
struct block_body {
  int rank, tile;
  index_t extent[max_rank];
  index_t chunk, inner; // `inner`: elements in one round
  index_t block;        // elements that a block has room for
  index_t scratch;      // bytes, including the table of addresses at the front
  int access_first;
  int place_first, memory_count, place_count; // those in memory come first
  int step_first, step_count;
  int sink_first, sink_count;
};

/// Returns the bytes in front of the blocks: the addresses of places and sinks, and the number of bytes by which those
/// in memory advance from block to block.
constexpr index_t block_header(int places, int in_memory, int sinks) {
  return (static_cast<index_t>(sizeof(void*)) * (places + in_memory + 2 * sinks) + 63) / 64 * 64;
}

/// Loop nests that run in turns, `rows` rounds of the outermost loop of each at a time, of `extent` in total. The
/// buffers with memory for that many rows are `ports[own_first .. own_first + own_count)`.
struct block_group {
  static constexpr int most = 32; // nests
  int body_first, body_count;
  int own_first, own_count;
  index_t extent, rows;
  index_t points;    // of the loops that threads may share, otherwise 0
  index_t own_bytes; // of its buffers
  index_t scratch;   // bytes, including `own_bytes` at the front
};

/// A call of an operator with loops of its own.
struct block_call {
  call_info info;
  int callee;
};

/// A function of the graph: its buffers, its stages, and its bytes of memory, including those of functions that it
/// calls. Its number is that of its region.
struct block_function {
  int buffer_first, buffer_count;
  int stage_first, stage_count;
  index_t workspace;
  index_t addresses; // bytes for the addresses of buffers and of what is passed to functions
  index_t memory;
};

/// The operations on blocks, besides operators.
enum class block_op : unsigned char { add, sub, mul, greatest, least, fma, fnma, equal };

/// The name of a kernel over blocks: of an operator computing in `type`, of `arithmetic`, of the conversion from `from`
/// to `type`, or of chains. `single` is a bit mask of operands of arithmetic that are one element for the whole block,
/// such as the value of a row.
struct kernel_key {
  enum class kind : unsigned char { op, arithmetic, convert, chain } what;
  block_op arithmetic;
  dtype type, from;
  op_handle const* op;
  int single;
};
/// The name of a fold of blocks of dtype `type` into memory.
struct fold_key {
  sink_kind kind;
  dtype type;
};
/// The name of what executes a call: with results of `type` and, where it matters, indices or operands of dtype
/// `other`.
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

/// The tables under construction.
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
  bool writes_arguments = false; // true if the function writes into its arguments; it was then not planned
};

/// How calls of one kind are executed; `table` is for operators that have only a tensor implementation.
struct block_callee {
  void (*run)(block_callee const&, call_info const&, std::byte* const* in, std::byte* out);
  void const* table;
};

/// Linked tables of either form, ready to run.
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

} // namespace varve::fusion
