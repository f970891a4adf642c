// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/arena.hpp>
#include <varve/shape/sample.hpp>

#include <bit>

/// @file
/// Programs whose sizes are known when they run: made of two plans for sample sizes.
///
/// A difference between the two plans in anything that is not a size, such as a constant of the function, refuses the
/// function. What the planner decided by comparing a symbolic size, such as that a slice lies before another, becomes a
/// condition that each call checks. A call binds the symbols, computes all expressions into a local array and runs the
/// loops: those with run-time bounds as whole vectors with a last one that overlaps, or is masked when there are fewer
/// elements than lanes. Everything static stays a constant. Temporaries of symbolic size lie in pieces of one block of
/// the thread's scratch memory. Programs of static sizes share all of this code and contain none of it.
namespace varve::loop {

/// Why two plans are not one program. `writes`: the function writes into its arguments, and was not planned.
enum class sized_problem : unsigned char { none, value, structure, size, many, writes };

namespace detail {
constexpr bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Turns the numbers of `p` that differ from those of `q` into expressions.
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
    for (std::size_t k = 0; k < p.slots.size(); ++k) expect(p.slots[k] == q.slots[k], sized_problem::structure);
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

/// What two plans ask of the symbolic sizes: what they decided by them (`asked`), that no size is negative, slices lie
/// inside, loops have something to walk through, and what `amax` reduces is not empty where it has a result.
constexpr void guards_of(graph const& a, graph const& b, list<index_t> const& asked, list<index_t> const& asked_too,
                         size_reader& sizes, list<size_guard>& guards) {
  auto at_least_0 = [&](index_t x, index_t y, index_t unless = 1) {
    if (x == y) return;
    extent const size = size_reader::extent_of(sizes.read(x, y));
    if (sizes.failed) return;
    size_guard const g{relation::less_equal, 0, size, size_reader::extent_of(unless)};
    for (size_guard const& o : guards)
      if (known_equal(o.right, size) && known_equal(o.unless, g.unless)) return;
    guards.push_back(g);
  };
  for (std::size_t k = 0; k < asked.size(); ++k) at_least_0(asked[k], asked_too[k]);
  list<operator_class> const what = identify(a);
  size_range any[max_symbols];
  for (size_range& r : any) r.least = 0;
  auto never_negative = [&](index_t s) {
    return is_run_time(s) && sizes.table.view().range(size_reader::extent_of(s), any).least >= 0;
  };
  for (std::size_t k = 0; k < a.nodes.size(); ++k) {
    node const &n = a.nodes[k], &m = b.nodes[k];
    for (int d = 0; d < n.out.sizes.n && d < m.out.sizes.n; ++d)
      if (index_t const x = n.out.sizes[d], y = m.out.sizes[d]; x != y && !never_negative(sizes.read(x, y)))
        at_least_0(x, y);
    auto from = [](graph const& g, node const& nd) -> dims const& { return g.nodes[g.edges[nd.first]].out.sizes; };
    bool const back = what[k] == operator_class::slice_backward;
    if (what[k] == operator_class::slice || back) {
      dims const &s = back ? n.at[1] : n.at[0], &t = back ? m.at[1] : m.at[0];
      int const axis = static_cast<int>(s[0]);
      at_least_0((back ? n.out.sizes : from(a, n))[axis] - s[2], (back ? m.out.sizes : from(b, m))[axis] - t[2]);
      at_least_0(s[2] - s[1], t[2] - t[1]), at_least_0(s[1], t[1]);
    } else if (what[k] == operator_class::scan) {
      at_least_0(n.at[1][0] - 1, m.at[1][0] - 1);
    } else if (what[k] == operator_class::convolution) { // has places, and a field
      for (int d = 2; d < n.out.sizes.n; ++d)
        at_least_0(n.out.sizes[d] - 1, m.out.sizes[d] - 1), at_least_0(from(a, n)[d] - 1, from(b, m)[d] - 1);
    } else if (what[k] == operator_class::amax || what[k] == operator_class::amin ||
               what[k] == operator_class::argmax) {
      for (index_t d : n.at[0])
        at_least_0(from(a, n)[static_cast<int>(d)] - 1, from(b, m)[static_cast<int>(d)] - 1,
                   sizes.read(numel(n.out.sizes), numel(m.out.sizes)));
    }
  }
}

/// Gives the buffers of run-time size pieces of the scratch memory, one for several whose lifetimes do not meet; the
/// others are placed anew. The number of pieces.
constexpr int place_in_scratch(program& p) {
  list<life> const lives = lifetimes(p);
  int pieces = 0;
  for (std::size_t k = 0; k < p.buffers.size(); ++k) {
    buffer& b = p.buffers[k];
    if (b.where != place::arena || !is_run_time(b.elements)) continue;
    int best = pieces;
    for (bool const alike : {false, true}) // rather one of the same size
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

/// A program with run-time sizes as a constant: the numbers of its arrays that are `is_run_time` stand for expressions.
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

/// Is `P` a program with run-time sizes?
template <class P>
concept sized = requires { P::value.pieces; };

/// The value of number `X` of a plan: itself, or what its expression came to for this call.
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
  /// Does the plan hold for these sizes, as far as one guard says?
  bool holds(size_guard const& g) const {
    return value(g.unless) == 0 || varve::detail::holds(g.is, value(g.left), value(g.right));
  }
  index_t number(index_t x) const { return is_run_time(x) ? size[entry_of(x)] : x; }
  dims of(dims const& s) const {
    dims r = s;
    for (int k = 0; k < r.n; ++k) r[k] = number(r[k]);
    return r;
  }
  /// Bytes of scratch memory; `begin[k]` becomes the first of piece `k`.
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
  /// Operands come before what is made of them.
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

} // namespace varve::loop
