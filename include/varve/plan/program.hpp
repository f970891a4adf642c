// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>
#include <varve/core/list.hpp>
#include <varve/graph/operator_class.hpp>

/// @file
/// The result of planning a graph: a list of stages (loops and calls) over typed buffers, all of it data. `planner.hpp`
/// produces it; `emit/` turns it into machine code. The small structures have no default values, so that an array of
/// zeros costs no compile time, however large it is. Each has a constant `blank_...` instead.
namespace varve::fusion {

/// Where a buffer is stored. Buffers of run-time size are in scratch memory (`core/scratch_memory.hpp`).
enum class place : unsigned char { argument, result, arena, constant, scratch };
/// A contiguous row-major array. `number` is the number of the argument or result, the byte in the arena, the first
/// element in the constants, or the piece of scratch memory.
struct buffer {
  place where;
  dtype type;
  index_t number;
  index_t elements;
  int node; // of the graph; -1: none
};

/// An affine address in a buffer: `offset + sum(stride[l] * i[l])` over the loops, outermost first.
struct access {
  int buffer;
  index_t offset;
  index_t stride[max_rank];
};
inline constexpr access blank_access{-1, 0, {}};

/// The kind of a step, which computes one value in a loop body.
enum class step_kind : unsigned char {
  load,     // from memory
  records,  // 16 bytes of neighbours of a strided load, into as many slots
  none,     // a slot that `records` fills
  constant, // `value`
  index,    // an affine function of the loop indices
  op,       // a lane kernel
  add,      // from here to `div`: operators that need no kernel
  sub,
  mul,
  div,
  convert,  // to `type` from `from`
  sum,      // of all operands
  greatest, // of all operands
  least,    // of all operands
  dot,      // sum of products of operand pairs
  fma,      // a * b + c
  fnma,     // c - a * b
  leave     // no value: sink `slot` of the body takes its value here
};
/// A step of a loop body. Operands are slots: `s >= 0` is a value of this iteration, `~s` one computed before the
/// innermost loop.
struct step {
  step_kind kind;
  dtype type, from;
  op_handle const* op;
  bool wide; // rounded to `type` in a body of doubles
  double value;
  int access;
  int args, count; // operands: `ports[args .. + count)`
  int in[3];       // the first three of them
  int slot;
  int node;   // of the graph
  bool apart; // its kernel is called, not inlined
  bool wraps; // its result wraps around in the range of `type`
  int kept;   // in a body with blocks: the place of its value for other blocks, among those computed before the loop;
              // -1: no other block uses it
};
inline constexpr step blank_step{
    step_kind::load, dtype::float32, dtype::float32, nullptr, false, 0, -1, 0, 0, {}, 0, -1, false, false, -1};
/// True for dtypes whose arithmetic can give results that the dtype cannot represent, but the registers for it can.
constexpr bool is_narrow(dtype t) { return t == dtype::bool_ || t == dtype::uint8 || t == dtype::int32; }

/// The kind of a sink, which stores or accumulates a value of a loop body.
enum class sink_kind : unsigned char {
  store,
  sum,
  greatest,
  least,
  count
}; // `count`: the emitted form of a sum for which `counts` is true
/// A result of a loop body. A sum may be one of products (`b` is then a slot): `acc += a * b`, or `acc -= a * b`.
struct sink {
  sink_kind kind;
  bool product, minus;
  /// The buffer already contains a partial result.
  bool accumulate;
  int a, b;
  int access;
  /// The accumulator is in a register while the loops from this one inwards run; -1: in memory.
  int level;
};
inline constexpr sink blank_sink{sink_kind::store, false, false, false, 0, 0, -1, -1};

/// The registers in which a body computes. `wide` is double with every step rounded to its own dtype; `i32` is used in
/// vectors only.
enum class lane : unsigned char { f32, f64, wide, i32, i64 };
template <lane L>
using lane_t = std::conditional_t<
    L == lane::f32, float,
    std::conditional_t<L == lane::i32, std::int32_t, std::conditional_t<L == lane::i64, std::int64_t, double>>>;
constexpr int width_of(lane l) {
  return static_cast<int>(l == lane::f32   ? kernel::lanes<float>
                          : l == lane::i32 ? kernel::lanes<std::int32_t>
                                           : kernel::lanes<double>);
}
/// A nest of loops with one straight-line body. `vector` is the loop that runs in SIMD registers, -1 for none.
struct body {
  lane type;
  int rank;
  index_t extent[max_rank];
  int vector;
  int unroll;
  bool paired;                  // two vectors step by step
  int fixed_first, fixed_count; // steps before the innermost loop
  int step_first, step_count;
  int sink_first, sink_count;
  // of a long body (`cut_bodies`); `kept` is the number of values that pass between its blocks
  int block_first, block_count;
  int kept;
  bool ordered; // the sinks are among the steps
};
inline constexpr body blank_body{lane::f32, 0, {}, -1, 1, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, false};

/// True if a sink, into a buffer of `type`, sums flags in registers of floats and may exceed the 2^24 that a float can
/// count. Integers then count them.
constexpr bool counts(body const& b, sink const& s, dtype type) {
  if (b.type != lane::f32 || s.kind != sink_kind::sum || is_floating(type) || s.level < 0) return false;
  index_t n = 1;
  for (int l = s.level; l < b.rank; ++l) {
    if (b.extent[l] > index_t{1} << 24) return true;
    n = n > index_t{1} << 24 ? n : n * b.extent[l];
  }
  return n > index_t{1} << 24;
}

/// A part of a long body that is compiled as a function.
struct block {
  int first, count;
};

/// The kind of a stage.
enum class stage_kind : unsigned char { loops, fill, matmul, call, branch, scan, rows };
/// A unit of execution. `loops`: body `number`. `fill`: fills buffer `out` with `value`. `matmul`, `call`: call
/// `number` on the buffers `in`. `branch`: `in[0]` is the predicate; the buffers of operands and results are in the
/// slots from `in[1]` and `in[2]` on. `scan`: any loop, with the same slots; after the results come second buffers of
/// carried values, and the result of its condition goes into `in[0]`. `rows`: group `number` of a `block_program`.
struct stage {
  stage_kind kind;
  int number;
  int out;
  int in[3];
  double value;
};
inline constexpr stage blank_stage{stage_kind::loops, 0, -1, {-1, -1, -1}, 0};

/// The operator of a `matmul`, `call`, `branch` or `scan` stage, and what is known about its operands.
struct call_info {
  operator_class what = operator_class::other;
  op_handle const* op = nullptr;
  meta in[3]{}, out{};
  attributes at{};
  int region = 0, operands = 0,
      results = 0; // of a branch: the functions are regions `region` and `region + 1`; of a loop the step is `region`
  int condition = -1; // of a loop: the region of its condition, if it has one
};

/// A planned graph under construction.
struct program {
  list<buffer> buffers;
  list<access> accesses;
  list<step> steps;
  list<int> ports;
  list<sink> sinks;
  list<body> bodies;
  list<block> blocks;
  list<stage> stages;
  list<call_info> calls;
  list<meta> results;
  list<double> constants;
  index_t workspace = 0;
  /// Numbers that the planner assumed to be at least 0, when sizes are samples.
  list<index_t> asked;
  bool writes_arguments = false; // true if the function writes into its arguments; it was then not planned
  int traced_operators = 0;
};

/// The array sizes of a frozen program.
struct program_sizes {
  std::size_t buffers, accesses, steps, ports, sinks, bodies, blocks, stages, calls, results, constants;
  static constexpr program_sizes of(program const& p) {
    return {p.buffers.size(), p.accesses.size(), p.steps.size(), p.ports.size(),   p.sinks.size(),    p.bodies.size(),
            p.blocks.size(),  p.stages.size(),   p.calls.size(), p.results.size(), p.constants.size()};
  }
  constexpr bool holds(program_sizes const& o) const {
    return buffers >= o.buffers && accesses >= o.accesses && steps >= o.steps && ports >= o.ports && sinks >= o.sinks &&
           bodies >= o.bodies && blocks >= o.blocks && stages >= o.stages && calls >= o.calls && results >= o.results &&
           constants >= o.constants;
  }
  /// True if both have the same sizes.
  constexpr bool is(program_sizes const& o) const { return holds(o) && o.holds(*this); }
};

/// A planned graph as a constant. Its arrays may be larger than needed; `used` contains the sizes in use.
template <program_sizes S>
struct static_program {
  buffer buffers[S.buffers + 1]{};
  access accesses[S.accesses + 1]{};
  step steps[S.steps + 1]{};
  int ports[S.ports + 1]{};
  sink sinks[S.sinks + 1]{};
  body bodies[S.bodies + 1]{};
  block blocks[S.blocks + 1]{};
  stage stages[S.stages + 1]{};
  call_info calls[S.calls + 1]{};
  meta results[S.results + 1]{};
  double constants[S.constants + 1]{};
  program_sizes used{};
  index_t workspace = 0;
  bool writes_arguments = false;
  int traced_operators = 0;
  static constexpr program_sizes sizes = S;

  /// Copies `p` if it fits, which is the case if `sizes.holds(used)`.
  constexpr explicit static_program(program const& p)
      : used(program_sizes::of(p)), workspace(p.workspace), writes_arguments(p.writes_arguments),
        traced_operators(p.traced_operators) {
    if (!S.holds(used)) return;
    copy(buffers, p.buffers), copy(accesses, p.accesses), copy(steps, p.steps), copy(ports, p.ports),
        copy(sinks, p.sinks);
    copy(bodies, p.bodies), copy(blocks, p.blocks), copy(stages, p.stages), copy(calls, p.calls),
        copy(results, p.results), copy(constants, p.constants);
  }

private:
  template <class T>
  static constexpr void copy(T* to, list<T> const& from) {
    for (T const& x : from) *to++ = x;
  }
};

} // namespace varve::fusion
