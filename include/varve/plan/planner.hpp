// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/dce.hpp>
#include <varve/plan/arena.hpp>
#include <varve/plan/demand.hpp>
#include <varve/plan/lower.hpp>

/// @file
/// Planning: which values are stored, which loops compute them, and in which order.
namespace varve::fusion {

/// The planner of a graph (region 0). Work is bounded by the number of loops times the number of nodes.
class planner {
public:
  constexpr explicit planner(graph const& graph_) : g(graph_), what(identify(graph_)), roles(graph_, what) {
    std::size_t const n = g.nodes.size();
    stored.assign(n, 0), opaque.assign(n, 0), group.assign(n, -1), buffer_of.assign(n, -1), uses.assign(n, 0);
    char* calls = opaque.data();
    for (role r : roles.of) *calls++ = r == role::call;
    int* const used = uses.data();
    for (int e : g.edges) ++used[e];
    for (int r : g.results) ++uses[r];
  }
  /// Plans the graph. With `samples`, sizes stand for symbolic ones, and decisions that depend on them are recorded.
  constexpr program run(bool samples) {
    results();
    auto const own = static_cast<std::size_t>(g.regions[0].node_count);
    role const* const of = roles.of.data();
    for (std::size_t k = 0; k < own; ++k) {
      if (of[k] != role::inlined && of[k] != role::source) stored[k] = 1;
      if (of[k] == role::call)
        for (int e = 0; e < g.nodes[k].count; ++e) store(base(input(g.nodes[k], e)));
    }
    for (int round = 0; round < 12 && !arrange(); ++round) {}
    for (std::size_t k = 0; k < own; ++k)
      if (stored[k] && buffer_of[k] < 0) buffer_of[k] = new_buffer(g.nodes[k], place::arena, 0);
    facts const f{g, what.data(), stored.data(), opaque.data(), group.data()};
    unfolding u(f, -1, false);
    if (samples) u.asked = &p.asked;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      if (groups[k].call >= 0) call(groups[k].call);
      else boxes(static_cast<int>(k), u);
    }
    drop_unread(p);
    place_in_arena(p);
    return static_cast<program&&>(p);
  }

private:
  struct one_group {
    dims space;
    int call = -1;
    list<member> members{};
  };
  graph const& g;
  list<operator_class> what;
  role_table roles;
  list<char> stored{}, opaque{};
  list<int> group{}, buffer_of{}, uses{};
  list<member> copies{};
  list<one_group> groups{};
  program p{};

  constexpr int input(node const& n, int k) const { return g.edges[n.first + k]; }
  constexpr void store(int n) {
    if (!is_given(what[n])) stored[n] = 1;
  }
  /// Returns the node whose buffer contains the elements of `n`: reshapes are free.
  constexpr int base(int n) const {
    while (what[n] == operator_class::reshape && !stored[n]) n = input(g.nodes[n], 0);
    return n;
  }
  constexpr int new_buffer(meta const& m, index_t rows) {
    p.buffers.push_back({place::arena, m.type, 0, numel(m.sizes) * rows, -1});
    return static_cast<int>(p.buffers.size()) - 1;
  }
  constexpr int new_buffer(node const& n, place where, index_t number) {
    p.buffers.push_back({where, n.out.type, number, numel(n.out.sizes), static_cast<int>(&n - g.nodes.data())});
    return static_cast<int>(p.buffers.size()) - 1;
  }
  /// Returns a new buffer with the elements of an array constant.
  constexpr int constants(node const& n) {
    auto const first = static_cast<std::ptrdiff_t>(n.value);
    int const buffer = new_buffer(n, place::constant, static_cast<index_t>(p.constants.size()));
    for (index_t e = 0, all = numel(n.out.sizes); e < all; ++e) p.constants.push_back(g.constants[first + e]);
    return buffer;
  }
  constexpr void results() {
    region const& r = g.regions[0];
    for (int k = 0; k < r.inputs; ++k)
      buffer_of[r.node_first + k] = new_buffer(g.nodes[r.node_first + k], place::argument, k);
    for (int k = 0; k < r.node_count; ++k)
      if (what[r.node_first + k] == operator_class::data)
        buffer_of[r.node_first + k] = constants(g.nodes[r.node_first + k]);
    for (int k = 0; k < r.result_count; ++k) {
      int const n = g.results[r.result_first + k], b = base(n);
      int const buffer = new_buffer(g.nodes[n], place::result, k);
      p.results.push_back(g.nodes[n].out);
      dims const all = contiguous_strides(g.nodes[n].out.sizes);
      if (is_given(what[b]) || stored[b]) copies.push_back({n, buffer, 0, all});
      else if (uses[b] == 1 && (what[b] == operator_class::cat || what[b] == operator_class::permute))
        spread(g, what, uses, {b, buffer, 0, contiguous_strides(g.nodes[b].out.sizes)}, copies);
      else stored[b] = 1, buffer_of[b] = buffer;
    }
  }
  /// Assigns every stored node to a loop or a call. Returns false if more values turned out to need storing.
  constexpr bool arrange() {
    groups.clear();
    bool stable = true;
    facts const f{g, what.data(), stored.data(), opaque.data(), group.data()};
    exploration e{unfolding(f, -1, true), list<int>(g.nodes.size(), -1), list<index_t>(g.nodes.size(), 0)};
    char const* const marks = stored.data();
    for (int k = 0; k < g.regions[0].node_count; ++k) {
      if (!marks[k]) continue;
      if (opaque[k]) {
        int after = -1;
        for (int e = 0; e < g.nodes[k].count; ++e) {
          int const b = base(input(g.nodes[k], e));
          store(b);
          if (group[b] > after) after = group[b];
        }
        if (what[k] == operator_class::getitem) { // written by its operand
          group[k] = after;
          continue;
        }
        group[k] = static_cast<int>(groups.size()); // always after its operands: groups are executed in order
        groups.push_back({dims{}, static_cast<int>(k)});
      } else {
        stable = join({static_cast<int>(k), -1}, e) && stable;
      }
    }
    for (member const& c : copies) stable = join(c, e) && stable;
    return stable;
  }
  /// The state that the members of a round share, so that each costs no more than what it needs.
  struct exploration {
    unfolding u;
    list<int> seen;      // the last loop that computed a node
    list<index_t> again; // cost of nodes that are computed at several indices; zeros between two members
  };
  /// Adds a member to the first loop that it may share. Returns false if more values turned out to need storing.
  constexpr bool join(member const& m, exploration& shared) {
    unfolding& u = shared.u;
    u.clear();
    dims const space = m.copy_to < 0 ? roles.space(m.node) : squeeze(g.nodes[m.node].out.sizes);
    u.self = m.copy_to < 0 ? m.node : -1;
    list<root> none;
    seed(u, roles, buffer_of, m, none);
    std::size_t const seeds = u.all.size();
    u.run();
    bool stable = true;
    int j = after_loads(u, space, stable);
    while (j < static_cast<int>(groups.size()) && (groups[j].call >= 0 || !(groups[j].space == space))) ++j;
    cost_at_several_indices(shared);
    stable = keep_costly(shared, seeds, numel(space), j) && stable;
    index_t* const costs = shared.again.data();
    for (instance const& i : u.all) costs[i.node] = 0;
    if (j == static_cast<int>(groups.size())) groups.push_back({space});
    groups[j].members.push_back(m);
    if (m.copy_to < 0) group[m.node] = j;
    return stable;
  }
  /// Returns the first group in which all loaded values are available: after the groups that store them, or the same
  /// group if a value is used at the same point. Values that are not stored yet are marked; then `stable` becomes
  /// false.
  constexpr int after_loads(unfolding const& u, dims const& space, bool& stable) {
    int earliest = 0;
    operator_class const* const kinds = what.data();
    for (instance const& i : u.all) {
      int n = i.node;
      if (i.as != instance::form::load || is_given(kinds[n])) continue;
      bool const linear = !u.is_leaf(n);
      if (linear) n = base(input(g.nodes[n], 0));
      if (is_given(kinds[n])) continue;
      if (!stored[n]) {
        stored[n] = 1;
        stable = false;
        continue;
      }
      bool const together = !linear && roles.of[n] == role::inlined && u.is_identity(i, space);
      int const after = group[n] + (together ? 0 : 1);
      if (after > earliest) earliest = after;
    }
    return earliest;
  }
  /// Computes the cost of values that are computed at several indices, including their operands of this kind.
  constexpr void cost_at_several_indices(exploration& shared) const {
    unfolding const& u = shared.u;
    int const* const heads = u.head.data();
    instance const* const all = u.all.data();
    index_t* const again = shared.again.data();
    for (int n = u.above(-1); n <= u.highest; n = u.above(n)) {
      int const h = heads[n];
      if (h < 0 || all[h].next < 0 || all[h].as != instance::form::value) continue;
      node const& nd = g.nodes[n];
      index_t c = role_table::own(what[n]);
      for (int k = 0; k < nd.count; ++k) c += again[input(nd, k)];
      again[n] = c;
    }
  }
  /// Marks values to be stored that loop `j` would compute too often. Nodes are visited in descending order, because
  /// operands of a stored value are then not needed here. The first `seeds` instances are needed anyway. Returns false
  /// if a value was marked.
  constexpr bool keep_costly(exploration& shared, std::size_t seeds, index_t volume, int j) {
    unfolding const& u = shared.u;
    list<char> needed(u.all.size(), 0);
    char* const wanted = needed.data();
    for (std::size_t i = 0; i < seeds; ++i) wanted[i] = 1;
    int const *const heads = u.head.data(), *const args = u.args.data();
    int* const seen = shared.seen.data();
    index_t const* const again = shared.again.data();
    instance const* const all = u.all.data();
    operator_class const* const kinds = what.data();
    int const own = u.self;
    bool stable = true;
    for (int n = u.highest; n >= 0; n = u.below(n)) {
      int const h = heads[n];
      if (h < 0) continue;
      int maps = 0;
      for (int i = h; i >= 0; i = all[i].next) maps += wanted[i];
      if (!maps) continue;
      bool keep = false;
      if (n != own && all[h].as == instance::form::value && kinds[n] != operator_class::constant &&
          kinds[n] != operator_class::arange && kinds[n] != operator_class::count) {
        index_t const size = numel(g.nodes[n].out.sizes), w = roles.weight[n];
        bool const repeated = size == 1 ? volume > 1 && w >= 1 : size * 2 <= volume && w >= 2 && !roles.unrolls(own);
        keep = repeated || (again[n] >= 8 && 2 * maps * volume > 3 * size) ||
               (seen[n] >= 0 && seen[n] != j && !roles.recomputes(n));
        seen[n] = j;
      }
      if (keep) {
        stored[n] = 1;
        stable = false;
        continue;
      }
      for (int i = h; i >= 0; i = all[i].next)
        for (int k = 0; k < all[i].count; ++k) wanted[args[all[i].args + k]] = 1;
    }
    return stable;
  }
  /// Plans a branch, whose operand 0 is the predicate, or a loop.
  constexpr void higher_order(int n) {
    node const& nd = g.nodes[n];
    region const& r = g.regions[nd.regions_first];
    bool const loop = what[n] == operator_class::scan;
    int const first = loop ? 0 : 1;
    if (loop && nd.at[1][0] == 0 &&
        (nd.at[0][1] > 0 || r.result_count > nd.at[0][0])) // as many rows as steps that will be executed
      refuse::argument_is_invalid("fuse", "reverse mode of a while_loop keeps what every step carries, and without a "
                                          "bound there is no place for it; give the loop one: while_loop<100>(...)");
    stage s = blank_stage;
    s.kind = loop ? stage_kind::scan : stage_kind::branch;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.region = nd.regions_first, c.operands = nd.count - first, c.results = r.result_count, c.at = nd.at;
    if (loop && nd.regions_count > 1) c.condition = nd.regions_first + 1, s.in[0] = new_buffer({dtype::bool_, {}}, 1);
    else if (!loop) s.in[0] = buffer_of[base(input(nd, 0))];
    s.in[1] = static_cast<int>(p.ports.size());
    for (int k = first; k < nd.count; ++k) p.ports.push_back(buffer_of[base(input(nd, k))]);
    s.in[2] = static_cast<int>(p.ports.size());
    for (int k = 0; k < c.results; ++k) p.ports.push_back(c.results == 1 ? buffer_of[n] : -1);
    for (int m = n + 1; m < g.regions[0].node_count; ++m)
      if (node const& item = g.nodes[m]; what[m] == operator_class::getitem && input(item, 0) == n)
        p.ports[s.in[2] + static_cast<int>(item.at[0][0])] = buffer_of[m];
    index_t const carried = loop ? nd.at[0][0].number() : c.results;
    for (int k = 0; k < c.results; ++k) // unused results are written too
      if (p.ports[s.in[2] + k] < 0)
        p.ports[s.in[2] + k] =
            new_buffer(g.nodes[g.results[r.result_first + k]].out, k < carried ? 1 : nd.at[1][0].number());
    for (int k = 0; loop && k < carried; ++k) p.ports.push_back(new_buffer(g.nodes[input(nd, k)].out, 1));
    p.calls.push_back(c);
    p.stages.push_back(s);
  }
  constexpr void call(int n) {
    if (what[n] == operator_class::cond || what[n] == operator_class::scan) return higher_order(n);
    node const& nd = g.nodes[n];
    stage s = blank_stage;
    s.kind = what[n] == operator_class::mm ? stage_kind::matmul : stage_kind::call;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.what = what[n], c.op = nd.op, c.out = nd.out, c.at = nd.at, c.operands = nd.count;
    for (int k = 0; k < nd.count && k < 3; ++k) c.in[k] = g.nodes[input(nd, k)].out;
    p.calls.push_back(c);
    s.out = buffer_of[n];
    for (int k = 0; k < nd.count && k < 3; ++k) s.in[k] = buffer_of[base(input(nd, k))];
    p.stages.push_back(s);
  }
  /// Emits the loops of a group: one nest, or several over boxes if parts of the space differ.
  constexpr void boxes(int j, unfolding& u) {
    one_group const& gr = groups[j];
    u.group = j;
    list<box> waiting(1, box{});
    for (int d = 0; d < gr.space.n; ++d) waiting[0].hi[d] = gr.space[d];
    bool split = false;
    while (!waiting.empty()) {
      u.clear();
      u.range = waiting.back();
      waiting.pop_back();
      list<root> roots;
      for (member const& m : gr.members) seed(u, roles, buffer_of, m, roots);
      u.run();
      if (u.cut_dim >= 0) {
        if (!split)
          for (root const& r : roots)
            if (r.kind != sink_kind::store) fill(p, r.at.buffer, r.kind);
        split = true;
        box left = u.range, right = u.range;
        if (u.asked)
          u.asked->push_back(u.cut_at - u.range.lo[u.cut_dim]), u.asked->push_back(u.range.hi[u.cut_dim] - u.cut_at);
        left.hi[u.cut_dim] = right.lo[u.cut_dim] = u.cut_at;
        waiting.push_back(right), waiting.push_back(left);
        continue;
      }
      for (root& r : roots) r.accumulate = split && r.kind != sink_kind::store;
      lower(u, gr.space.n, roots, buffer_of, p);
    }
  }
};

/// Returns the stages that compute region 0 of an (optimized) graph. Throws `value_error` for graphs with writes or
/// effects.
constexpr program plan(graph const& g, bool samples = false) {
  if (has_mutation(g))
    refuse::argument_is_invalid("fuse",
                                "the function writes into its argument; write into a clone of it, and return that");
  if (op_handle const* const hop = varve::detail::composite_hop_in(g))
    refuse::argument_is_invalid(hop->name, "it is made of other operators when it is called, which fused programs "
                                           "cannot; compile(f), or interpret(graph, x), runs it operator by operator");
  if (op_handle const* const effect = varve::detail::effect_in(g))
    refuse::argument_is_invalid(effect->name, "it does something outside of the program, which fused programs cannot; "
                                              "compile(f), or interpret(graph, x), runs it in its place");
  return planner(g).run(samples);
}

} // namespace varve::fusion
