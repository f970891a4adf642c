// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/read_sizes.hpp>
#include <varve/plan/arena.hpp>

/// @file
/// Programs whose sizes are known when they run, made from two plans for sample sizes.
///
/// If the two plans differ in anything other than a size, such as a constant of the function, the function is refused.
/// If the planner compared a symbolic size, for example to order two slices, the outcome becomes a condition that each
/// call checks. A call binds the symbols, computes all expressions into a local array and runs the loops. Loops with
/// run-time bounds run as whole vectors; the last vector overlaps the one before, or is masked if there are fewer
/// elements than lanes. Everything static stays a constant. Temporaries of symbolic size are pieces of one block of the
/// thread's scratch memory. Programs of static sizes share all of this code and contain none of it.
namespace varve::fusion {

namespace detail {
/// A reader that turns the numbers of `p` that differ from those of `q` into expressions.
struct program_reader {
  program& p;
  program const& q;
  size_reader& sizes;
  sized_problem problem = sized_problem::none;

  constexpr void expect(bool same, sized_problem otherwise) {
    if (!same && problem == sized_problem::none) problem = otherwise;
  }
  constexpr bool run() {
    program_sizes const a = program_sizes::of(p), b = program_sizes::of(q);
    expect(a.holds(b) && b.holds(a) && p.asked.size() == q.asked.size(), sized_problem::structure);
    if (problem != sized_problem::none) return false;
    for (std::size_t k = 0; k < p.constants.size(); ++k)
      expect(same_bits(p.constants[k], q.constants[k]), sized_problem::value);
    for (std::size_t k = 0; k < p.steps.size(); ++k) {
      expect(p.steps[k].kind == q.steps[k].kind && p.steps[k].op == q.steps[k].op && p.steps[k].slot == q.steps[k].slot,
             sized_problem::structure);
      expect(same_bits(p.steps[k].value, q.steps[k].value), sized_problem::value);
    }
    for (std::size_t k = 0; k < p.ports.size(); ++k) expect(p.ports[k] == q.ports[k], sized_problem::structure);
    for (std::size_t k = 0; k < p.stages.size(); ++k) {
      expect(p.stages[k].kind == q.stages[k].kind && p.stages[k].number == q.stages[k].number &&
                 p.stages[k].out == q.stages[k].out,
             sized_problem::structure);
      expect(same_bits(p.stages[k].value, q.stages[k].value), sized_problem::value);
    }
    for (std::size_t k = 0; k < p.bodies.size(); ++k) {
      body& x = p.bodies[k];
      body const& y = q.bodies[k];
      expect(x.type == y.type && x.rank == y.rank && x.vector == y.vector && x.unroll == y.unroll &&
                 x.paired == y.paired,
             sized_problem::structure);
      for (int l = 0; l < x.rank && l < y.rank; ++l) x.extent[l] = sizes.read(x.extent[l], y.extent[l]);
    }
    for (std::size_t k = 0; k < p.accesses.size(); ++k) {
      access& x = p.accesses[k];
      expect(x.buffer == q.accesses[k].buffer, sized_problem::structure);
      x.offset = sizes.read(x.offset, q.accesses[k].offset);
      for (int l = 0; l < max_rank; ++l) x.stride[l] = sizes.read(x.stride[l], q.accesses[k].stride[l]);
    }
    for (std::size_t k = 0; k < p.buffers.size(); ++k)
      p.buffers[k].elements = sizes.read(p.buffers[k].elements, q.buffers[k].elements);
    for (std::size_t k = 0; k < p.results.size(); ++k) sizes.read(p.results[k].sizes, q.results[k].sizes);
    for (std::size_t k = 0; k < p.calls.size(); ++k) {
      call_info& x = p.calls[k];
      for (int e = 0; e < 3; ++e) sizes.read(x.in[e].sizes, q.calls[k].in[e].sizes);
      sizes.read(x.out.sizes, q.calls[k].out.sizes);
      for (int e = 0; e < x.at.count; ++e) sizes.read(x.at.fact[e], q.calls[k].at.fact[e]);
    }
    expect(!sizes.failed, sized_problem::size);
    return problem == sized_problem::none;
  }
};

/// Assigns pieces of the scratch memory to the buffers of run-time size; several buffers share a piece if their
/// lifetimes do not overlap. Places the other buffers again. Returns the number of pieces.
constexpr int place_in_scratch(program& p) {
  list<life> const lives = lifetimes(p);
  int pieces = 0;
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer& b = p.buffers[k];
    if (b.where != place::arena || !is_run_time(b.elements)) continue;
    int best = pieces;
    for (bool const alike : {false, true}) // preferably one of the same size
      for (int piece = 0; piece < pieces; ++piece) {
        bool free = true, same = false;
        for (std::size_t o = 0; o < k; ++o) {
          if (p.buffers[o].where != place::scratch || p.buffers[o].number != piece) continue;
          free = free && (lives[o].to < lives[k].from || lives[k].to < lives[o].from);
          same = same || (p.buffers[o].elements == b.elements && itemsize(p.buffers[o].type) == itemsize(b.type));
        }
        if (free && (same || !alike)) best = piece;
      }
    b.where = place::scratch, b.number = best;
    if (best == pieces) ++pieces;
  }
  place_in_arena(p);
  return pieces;
}
} // namespace detail

/// A program with run-time sizes as a constant. Numbers in its arrays that satisfy `is_run_time` stand for expressions.
template <program_sizes S>
struct sized_program : static_program<S> {
  static constexpr std::size_t most = 512;
  size_expression expressions[most]{};
  size_guard guards[most]{};
  int symbols = 0, expression_count = 0, guard_count = 0, pieces = 0;
  sized_problem problem = sized_problem::none;

  constexpr sized_program(program const& p, size_reader const& sizes, list<size_guard> const& asked, int pieces_,
                          sized_problem problem_)
      : static_program<S>(p), symbols(sizes.symbols), expression_count(static_cast<int>(sizes.table.size())),
        guard_count(static_cast<int>(asked.size())), pieces(pieces_), problem(problem_) {
    if (problem == sized_problem::none && (sizes.table.size() > most || asked.size() > most))
      problem = sized_problem::many;
    if (problem != sized_problem::none) expression_count = symbols, guard_count = 0, this->used = {};
    for (int k = 0; k < expression_count; ++k) expressions[k] = sizes.table.data()[k];
    for (int k = 0; k < guard_count; ++k) guards[k] = asked[k];
  }
};

/// True if `P` is a program with run-time sizes.
template <class P>
concept sized = requires { P::value.pieces; };

/// Returns the value of number `X` of a plan: the number itself, or the value of its expression in this call.
template <index_t X>
VARVE_INLINE constexpr index_t number_of([[maybe_unused]] auto const& mem) {
  if constexpr (is_run_time(X)) return mem.size[entry_of(X)];
  else return X;
}

/// The values of all expressions of `P`, for one call.
template <class P>
struct size_values {
  index_t size[P::value.expression_count + 1];

  VARVE_INLINE explicit size_values(index_t const* symbols) {
    compute(symbols, std::make_integer_sequence<int, P::value.expression_count>{});
  }
  VARVE_INLINE constexpr index_t value(extent e) const { return e.is_number() ? e.number() : size[e.entry()]; }
  /// True if a guard of the plan holds for these sizes.
  bool holds(size_guard const& g) const {
    return value(g.unless) == 0 || varve::detail::holds(g.is, value(g.left), value(g.right));
  }
  index_t number(extent x) const { return is_run_time(x) ? size[entry_of(x)] : x.number(); }
  dims of(dims const& s) const {
    dims r = s;
    for (int k = 0; k < r.n; ++k) r[k] = number(r[k]);
    return r;
  }
  /// Returns the bytes of scratch memory; `begin[k]` becomes the first byte of piece `k`.
  VARVE_INLINE index_t lay_out(index_t* begin) const {
    constexpr int pieces = P::value.pieces;
    index_t bytes[pieces + 1]{};
    take(bytes, std::make_integer_sequence<int, static_cast<int>(P::value.used.buffers)>{});
    index_t total = 0;
    for (int k = 0; k < pieces; ++k) begin[k] = total, total += (bytes[k] + 63) / 64 * 64;
    return total;
  }

private:
  template <int... K>
  VARVE_INLINE void compute([[maybe_unused]] index_t const* symbols, std::integer_sequence<int, K...>) {
    ((size[K] = computed<K>(symbols)), ...);
  }
  /// Returns the value of expression `K`. Its operands have smaller numbers.
  template <int K>
  VARVE_INLINE index_t computed([[maybe_unused]] index_t const* symbols) const {
    constexpr size_expression e = P::value.expressions[K];
    if constexpr (e.op == size_op::symbol) return symbols[e.a.number()];
    else return size_view::combine(e.op, value(e.a), value(e.b));
  }
  template <int... K>
  VARVE_INLINE void take(index_t* bytes, std::integer_sequence<int, K...>) const {
    (take_one<K>(bytes), ...);
  }
  template <int K>
  VARVE_INLINE void take_one(index_t* bytes) const {
    constexpr buffer b = P::value.buffers[K];
    if constexpr (b.where == place::scratch) {
      index_t const mine = number_of<b.elements>(*this) * itemsize(b.type);
      if (mine > bytes[b.number]) bytes[b.number] = mine;
    }
  }
};

} // namespace varve::fusion
