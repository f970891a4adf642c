// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>
#include <varve/plan/planner.hpp>
#include <varve/plan/row_groups.hpp>
#include <varve/plan/table_steps.hpp>

#include <array>
#include <bit>

namespace varve::fusion {

/// A planner of a graph and its functions as tables.
template <class Kernels>
class block_graph_planner {
public:
  static constexpr block_program plan(graph const& g) {
    block_program r;
    block_graph_planner planner(r);
    r.functions.assign(g.regions.size(), block_function{0, 0, 0, -1, 0, 0, 0});
    for (int k = 0; k < g.regions[0].inputs; ++k) r.arguments.push_back(g.nodes[k].out);
    planner.function(g, 0);
    return r;
  }

private:
  block_program& r;
  Kernels kernels;

  constexpr explicit block_graph_planner(block_program& r_) : r(r_), kernels(r_.keys) {}

  static constexpr index_t aligned(index_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Appends the elements of a constant as bytes. Returns the first byte.
  constexpr index_t constant(program const& p, buffer const& b) {
    while (r.constants.size() % 64) r.constants.push_back(0);
    auto const first = static_cast<index_t>(r.constants.size());
    on_dtype(b.type, "fuse", [&]<class T>() {
      for (index_t e = 0; e < b.elements; ++e)
        for (unsigned char byte :
             std::bit_cast<std::array<unsigned char, sizeof(T)>>(static_cast<T>(p.constants[b.number + e])))
          r.constants.push_back(byte);
    });
    return first;
  }
  constexpr int callee(call_info const& c) {
    callee_key const key{c.what, c.out.type,
                         c.operands > 1   ? c.in[1].type
                         : c.operands > 0 ? c.in[0].type
                                          : c.out.type,
                         c.op};
    for (std::size_t k = 0; k < r.keys.callees.size(); ++k)
      if (callee_key const& o = r.keys.callees[k]; o.what == key.what && o.type == key.type && o.other == key.other &&
                                                   (o.op == key.op || key.what != operator_class::other))
        return static_cast<int>(k);
    r.keys.callees.push_back(key);
    return static_cast<int>(r.keys.callees.size()) - 1;
  }
  constexpr int ports(program const& p, int from, int count) {
    int const first = static_cast<int>(r.ports.size());
    for (int k = 0; k < count; ++k) r.ports.push_back(p.ports[from + k]);
    return first;
  }
  static constexpr index_t greater(index_t a, index_t b) { return a > b ? a : b; }

  /// Plans loop nests that run in turns, and makes `s` their stage. Returns the bytes of scratch memory.
  constexpr index_t turns(program const& p, row_group const& from, stage& s) {
    block_group g{static_cast<int>(r.bodies.size()),
                  from.last - from.first + 1,
                  static_cast<int>(r.ports.size()),
                  static_cast<int>(from.own.size()),
                  from.extent,
                  from.rows,
                  0,
                  from.own_bytes,
                  from.own_bytes};
    bool shared = true;
    for (row_buffer const& o : from.own) r.ports.push_back(o.buffer);
    for (int k = from.first; k <= from.last; ++k) {
      body const& b = p.bodies[p.stages[k].number];
      block_planner<Kernels>::plan(p, b, kernels, r, from.rows);
      g.scratch += aligned(r.bodies.back().scratch);
      index_t points = 1;
      for (int l = 0; l < b.rank; ++l) points *= b.extent[l];
      g.points += points;
      shared = shared && !folds_rows(p, b);
    }
    if (!shared) g.points = 0;
    s.kind = stage_kind::rows, s.number = static_cast<int>(r.groups.size());
    r.groups.push_back(g);
    return g.scratch;
  }
  /// Plans region 0 of `g` as function `number`, followed by the functions that it calls.
  constexpr void function(graph const& g, int number) {
    program p = fusion::plan(g);
    list<row_group> const groups = row_planner<dependent<void, Kernels>>(p).run();
    if (number == 0) r.results = p.results;
    block_function f{static_cast<int>(r.buffers.size()),
                     static_cast<int>(p.buffers.size()),
                     static_cast<int>(r.stages.size()),
                     static_cast<int>(p.stages.size()),
                     p.workspace,
                     0,
                     0};
    for (buffer b : p.buffers) {
      if (b.where == place::constant) b.number = constant(p, b);
      r.buffers.push_back(b);
    }
    index_t hungriest = 0, handed = 0;
    row_group const* next = groups.data();
    for (int k = 0; k < static_cast<int>(p.stages.size()); ++k) {
      stage s = p.stages[k];
      if (next != groups.data() + groups.size() && k == next->first) {
        hungriest = greater(hungriest, turns(p, *next, s));
        k = next++->last;
      } else if (s.kind == stage_kind::loops) {
        body const& b = p.bodies[s.number];
        s.number = static_cast<int>(r.bodies.size());
        block_planner<Kernels>::plan(p, b, kernels, r);
        hungriest = greater(hungriest, r.bodies.back().scratch);
      } else if (s.kind != stage_kind::fill) {
        call_info const& c = p.calls[s.number];
        s.number = static_cast<int>(r.calls.size());
        bool const inner = s.kind == stage_kind::branch || s.kind == stage_kind::scan;
        r.calls.push_back({c, inner ? -1 : callee(c)});
        if (inner) {
          int const carried = s.kind == stage_kind::scan ? static_cast<int>(c.at[0][0]) : 0;
          s.in[1] = ports(p, s.in[1], c.operands), s.in[2] = ports(p, s.in[2], c.results + carried);
          handed = greater(handed, c.operands + c.results + 2 * carried);
        }
      } else {
        s.number = kernels.fold(s.value == 0  ? sink_kind::sum
                                : s.value < 0 ? sink_kind::greatest
                                              : sink_kind::least,
                                p.buffers[s.out].type);
      }
      r.stages.push_back(s);
    }
    f.stage_count = static_cast<int>(r.stages.size()) - f.stage_first;
    r.functions[number] = f; // known from here on
    for (int k = f.stage_first; k < f.stage_first + f.stage_count; ++k) {
      stage const s = r.stages[k];
      if (s.kind != stage_kind::branch && s.kind != stage_kind::scan) continue;
      call_info const c = r.calls[s.number].info;
      hungriest = greater(hungriest, called(g, c.region));
      if (s.kind == stage_kind::branch) hungriest = greater(hungriest, called(g, c.region + 1));
      if (c.condition >= 0) hungriest = greater(hungriest, called(g, c.condition));
    }
    f.addresses = aligned(static_cast<index_t>(sizeof(void*)) * (f.buffer_count + handed));
    f.memory = f.addresses + aligned(f.workspace) + aligned(hungriest);
    r.functions[number] = f;
  }
  /// Plans a function unless it is planned already. Returns the bytes that it needs.
  constexpr index_t called(graph const& g, int region) {
    if (r.functions[region].stage_count < 0) {
      graph const inner = function_of(g, region);
      function(inner, region);
    }
    return r.functions[region].memory;
  }
};

/// Returns the tables of an (optimized) graph and of all functions that it calls, not yet linked. Throws `value_error`
/// for graphs with writes or effects.
template <class Kernels>
constexpr block_program plan_blocks(graph const& g) {
  return block_graph_planner<Kernels>::plan(g);
}

} // namespace varve::fusion
