// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <vector>
#include <varve/core/dtype.hpp>
#include <varve/graph/known.hpp>

/// @file
/// What planning makes of a graph: a list of stages (loops and calls) over typed buffers, all of it data.
/// `plan.hpp` produces it, `emit.hpp` turns it into machine code.
namespace varve::loop {

/// Where a buffer lives.
enum class place : unsigned char { argument, result, arena };
/// A contiguous row-major array: the `number`-th argument or result, or `number` bytes into the arena.
struct buffer {
  place where = place::arena;
  dtype type = dtype::float32;
  index_t number = 0;
  index_t elements = 0;
};

/// Affine address in a buffer: `offset + sum(stride[l] * i[l])` over the loops, outermost first.
struct access {
  int buffer = -1;
  index_t offset = 0;
  index_t stride[max_rank]{};
};

/// One value computed in a loop body.
enum class step_kind : unsigned char {
  load,     // from memory
  records,  // as many neighbours of a strided load as a vector has lanes, into that many slots
  none,     // a slot that `records` fills
  constant, // `value`
  index,    // an affine function of the loop indices
  op,       // a lane kernel
  convert,  // to `type` from `from`
  sum,      // of all operands
  greatest, // of all operands
  least,    // of all operands
  dot,      // sum of products of operand pairs
  fma,      // a * b + c
  fnma      // c - a * b
};
/// Operands are slots: `s >= 0` is a value of this iteration, `~s` one computed before the innermost loop.
struct step {
  step_kind kind = step_kind::load;
  dtype type = dtype::float32, from = dtype::float32;
  op_handle const* op = nullptr;
  bool wide = false; // rounded to `type` in a body of doubles
  double value = 0;
  int access = -1;
  int args = 0, count = 0;
  int slot = 0;
};

/// What a loop body leaves behind.
enum class sink_kind : unsigned char { store, sum, greatest, least };
/// A sum may be one of products (`b` is a slot then): `acc += a * b`.
struct sink {
  sink_kind kind = sink_kind::store;
  bool product = false;
  /// The buffer already holds a partial result.
  bool accumulate = false;
  int a = 0, b = 0;
  int access = -1;
  /// The accumulator lives in a register while the loops from this one inwards run; -1: in memory.
  int level = -1;
};

/// Registers a body computes in; `wide` is double with every step rounded to its own dtype.
enum class lane : unsigned char { f32, f64, wide };
/// A nest of loops with one straight-line body. `vector` is the loop that runs in SIMD registers, -1 for none.
struct body {
  lane type = lane::f32;
  int rank = 0;
  index_t extent[max_rank]{};
  int vector = -1;
  int unroll = 1;
  int fixed_first = 0, fixed_count = 0; // steps before the innermost loop
  int step_first = 0, step_count = 0;
  int sink_first = 0, sink_count = 0;
};

/// One unit of execution.
enum class stage_kind : unsigned char { loops, fill, matmul, call, branch };
/// `loops`: body `number`. `fill`: buffer `out` with `value`. `matmul`, `call`: call `number` on the buffers `in`.
/// `branch`: predicate `in[0]`; the buffers of operands and results are the slots from `in[1]` and `in[2]` on.
struct stage {
  stage_kind kind = stage_kind::loops;
  int number = 0;
  int out = -1;
  int in[3]{-1, -1, -1};
  double value = 0;
};

/// What a `matmul` or `call` stage does: the operator and what is known of its operands.
struct call_info {
  known what = known::other;
  meta in[3]{}, out{};
  attributes at{};
  int region = 0, operands = 0, results = 0; // of a branch: the functions are regions `region` and `region + 1`
};

/// A planned graph while it is being made.
struct program {
  std::vector<buffer> buffers;
  std::vector<access> accesses;
  std::vector<step> steps;
  std::vector<int> slots;
  std::vector<sink> sinks;
  std::vector<body> bodies;
  std::vector<stage> stages;
  std::vector<call_info> calls;
  std::vector<meta> results;
  index_t workspace = 0;
};

/// Array sizes of a frozen program.
struct program_sizes {
  std::size_t buffers, accesses, steps, slots, sinks, bodies, stages, calls, results;
  static constexpr program_sizes of(program const& p) {
    return {p.buffers.size(), p.accesses.size(), p.steps.size(), p.slots.size(), p.sinks.size(), p.bodies.size(), p.stages.size(),
            p.calls.size(), p.results.size()};
  }
  constexpr bool holds(program_sizes const& o) const {
    return buffers >= o.buffers && accesses >= o.accesses && steps >= o.steps && slots >= o.slots && sinks >= o.sinks && bodies >= o.bodies &&
           stages >= o.stages && calls >= o.calls && results >= o.results;
  }
};

/// A planned graph as a constant. Its arrays may be larger than what is used; `used` says how much is.
template <program_sizes S>
struct static_program {
  buffer buffers[S.buffers + 1]{};
  access accesses[S.accesses + 1]{};
  step steps[S.steps + 1]{};
  int slots[S.slots + 1]{};
  sink sinks[S.sinks + 1]{};
  body bodies[S.bodies + 1]{};
  stage stages[S.stages + 1]{};
  call_info calls[S.calls + 1]{};
  meta results[S.results + 1]{};
  program_sizes used{};
  index_t workspace = 0;
  static constexpr program_sizes sizes = S;

  /// Copies what fits; whether all did is `sizes.holds(used)`.
  constexpr explicit static_program(program const& p) : used(program_sizes::of(p)), workspace(p.workspace) {
    if (!S.holds(used)) return;
    copy(buffers, p.buffers), copy(accesses, p.accesses), copy(steps, p.steps), copy(slots, p.slots), copy(sinks, p.sinks);
    copy(bodies, p.bodies), copy(stages, p.stages), copy(calls, p.calls), copy(results, p.results);
  }

private:
  template <class T>
  static constexpr void copy(T* to, std::vector<T> const& from) {
    for (T const& x : from) *to++ = x;
  }
};

} // namespace varve::loop
