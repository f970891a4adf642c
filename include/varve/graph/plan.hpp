// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/arena.hpp>
#include <varve/graph/lower.hpp>
#include <varve/graph/seed.hpp>

/// @file
/// Planning: which values are stored, which loops compute them, in which order.
namespace varve::loop {

/// Plans a graph (region 0). Work is bounded by the number of loops times the number of nodes.
class planner {
public:
  constexpr explicit planner(graph const& graph_) : g(graph_), what(identify(graph_)), roles(graph_, what) {
    std::size_t const n = g.nodes.size();
    stored.assign(n, 0), group.assign(n, -1), buffer_of.assign(n, -1);
    for (std::size_t k = 0; k < n; ++k) opaque.push_back(roles.of[k] == role::call);
  }
  constexpr program run() {
    results();
    auto const own = static_cast<std::size_t>(g.regions[0].node_count);
    for (std::size_t k = 0; k < own; ++k) {
      if (roles.of[k] != role::inlined && roles.of[k] != role::source) stored[k] = 1;
      if (roles.of[k] == role::call)
        for (int e = 0; e < g.nodes[k].count; ++e) store(base(input(g.nodes[k], e)));
    }
    for (int round = 0; round < 12 && !arrange(); ++round) {}
    for (std::size_t k = 0; k < own; ++k)
      if (stored[k] && buffer_of[k] < 0) buffer_of[k] = new_buffer(g.nodes[k], place::arena, 0);
    for (std::size_t k = 0; k < groups.size(); ++k) {
      if (groups[k].call >= 0) call(groups[k].call);
      else boxes(static_cast<int>(k));
    }
    place_in_arena(p);
    return static_cast<program&&>(p);
  }

private:
  struct one_group {
    dims space;
    int call = -1;
    std::vector<member> members{};
  };
  graph const& g;
  std::vector<known> what;
  role_table roles;
  std::vector<char> stored{}, opaque{};
  std::vector<int> group{}, buffer_of{};
  std::vector<member> copies{};
  std::vector<one_group> groups{};
  program p{};

  constexpr int input(node const& n, int k) const { return detail::at(g.edges, n.first + k); }
  constexpr void store(int n) {
    if (detail::at(what, n) != known::placeholder) detail::at(stored, n) = 1;
  }
  /// The node whose buffer holds the elements of `n`: reshapes are free.
  constexpr int base(int n) const {
    while (detail::at(what, n) == known::reshape && !detail::at(stored, n)) n = input(detail::at(g.nodes, n), 0);
    return n;
  }
  constexpr int new_buffer(node const& n, place where, index_t number) {
    p.buffers.push_back({where, n.out.type, number, numel(n.out.sizes)});
    return static_cast<int>(p.buffers.size()) - 1;
  }
  constexpr void results() {
    region const& r = g.regions[0];
    for (int k = 0; k < r.inputs; ++k) detail::at(buffer_of, r.node_first + k) = new_buffer(detail::at(g.nodes, r.node_first + k), place::argument, k);
    for (int k = 0; k < r.result_count; ++k) {
      int const n = detail::at(g.results, r.result_first + k), b = base(n);
      int const buffer = new_buffer(detail::at(g.nodes, n), place::result, k);
      p.results.push_back(detail::at(g.nodes, n).out);
      if (detail::at(what, b) == known::placeholder || detail::at(stored, b)) copies.push_back({n, buffer});
      else detail::at(stored, b) = 1, detail::at(buffer_of, b) = buffer;
    }
  }
  /// Assigns every stored node to a loop or a call. False when more values turned out to need storing.
  constexpr bool arrange() {
    groups.clear();
    bool stable = true;
    std::vector<int> seen(g.nodes.size(), -1);
    for (std::size_t k = 0; k < g.nodes.size() && static_cast<int>(k) < g.regions[0].node_count; ++k) {
      if (!stored[k]) continue;
      if (opaque[k]) {
        int after = -1;
        for (int e = 0; e < g.nodes[k].count; ++e) {
          int const b = base(input(g.nodes[k], e));
          store(b);
          if (detail::at(group, b) > after) after = detail::at(group, b);
        }
        if (what[k] == known::getitem) { // written by its operand
          group[k] = after;
          continue;
        }
        group[k] = static_cast<int>(groups.size()); // always after its operands: groups are executed in order
        groups.push_back({dims{}, static_cast<int>(k)});
      } else {
        stable = join({static_cast<int>(k), -1}, seen) && stable;
      }
    }
    for (member const& c : copies) stable = join(c, seen) && stable;
    return stable;
  }
  constexpr bool join(member const& m, std::vector<int>& seen) {
    using detail::at;
    dims const space = m.copy_to < 0 ? roles.space(m.node) : squeeze(at(g.nodes, m.node).out.sizes);
    facts const f{g, what, stored, opaque, group};
    unfolding u(f, -1, true);
    u.self = m.copy_to < 0 ? m.node : -1;
    std::vector<root> none;
    seed(u, roles, buffer_of, m, none);
    std::size_t const seeds = u.all.size();
    u.run();
    int earliest = 0;
    bool stable = true;
    for (instance const& i : u.all) {
      int n = i.node;
      if (i.as != instance::form::load || at(what, n) == known::placeholder) continue;
      bool const linear = !u.is_leaf(n);
      if (linear) n = base(input(at(g.nodes, n), 0));
      if (at(what, n) == known::placeholder) continue;
      if (!at(stored, n)) {
        at(stored, n) = 1;
        stable = false;
        continue;
      }
      bool const together = !linear && at(roles.of, n) == role::inlined && u.is_identity(i, space);
      int const after = at(group, n) + (together ? 0 : 1);
      if (after > earliest) earliest = after;
    }
    int j = earliest;
    while (j < static_cast<int>(groups.size()) && (at(groups, j).call >= 0 || !(at(groups, j).space == space))) ++j;
    // Values that would be computed too often are stored: in descending order, since what a stored value needs is then not needed here.
    std::vector<char> needed(u.all.size(), 0);
    for (std::size_t i = 0; i < seeds; ++i) needed[i] = 1;
    index_t const volume = numel(space);
    std::vector<index_t> again(static_cast<std::size_t>(u.highest) + 1, 0); // cost of what is computed at several indices
    for (int n = 0; n <= u.highest; ++n) {
      int const h = at(u.head, n);
      if (h < 0 || at(u.all, h).next < 0 || at(u.all, h).as != instance::form::value) continue;
      node const& nd = at(g.nodes, n);
      index_t c = role_table::own(at(what, n));
      for (int k = 0; k < nd.count; ++k) c += at(again, input(nd, k));
      at(again, n) = c;
    }
    int const own = m.copy_to < 0 ? m.node : -1;
    for (int n = u.highest; n >= 0; --n) {
      int const h = at(u.head, n);
      if (h < 0) continue;
      int maps = 0;
      for (int i = h; i >= 0; i = at(u.all, i).next) maps += at(needed, i);
      if (!maps) continue;
      bool keep = false;
      if (n != own && at(u.all, h).as == instance::form::value && at(what, n) != known::constant && at(what, n) != known::arange) {
        index_t const size = numel(at(g.nodes, n).out.sizes), w = at(roles.weight, n);
        bool const repeated = size == 1 ? volume > 1 && w >= 1 : size * 2 <= volume && w >= 2 && !roles.unrolls(own);
        keep = repeated || (at(again, n) >= 8 && 2 * maps * volume > 3 * size) || (w >= 8 && at(seen, n) >= 0 && at(seen, n) != j);
        at(seen, n) = j;
      }
      if (keep) {
        at(stored, n) = 1;
        stable = false;
        continue;
      }
      for (int i = h; i >= 0; i = at(u.all, i).next)
        for (int k = 0; k < at(u.all, i).count; ++k) at(needed, at(u.args, at(u.all, i).args + k)) = 1;
    }
    if (j == static_cast<int>(groups.size())) groups.push_back({space});
    at(groups, j).members.push_back(m);
    if (m.copy_to < 0) at(group, m.node) = j;
    return stable;
  }
  constexpr void branch(int n) {
    node const& nd = detail::at(g.nodes, n);
    region const& r = detail::at(g.regions, nd.regions_first);
    stage s;
    s.kind = stage_kind::branch;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.region = nd.regions_first, c.operands = nd.count - 1, c.results = r.result_count;
    s.in[0] = detail::at(buffer_of, base(input(nd, 0)));
    s.in[1] = static_cast<int>(p.slots.size());
    for (int k = 1; k < nd.count; ++k) p.slots.push_back(detail::at(buffer_of, base(input(nd, k))));
    s.in[2] = static_cast<int>(p.slots.size());
    for (int k = 0; k < c.results; ++k) p.slots.push_back(c.results == 1 ? detail::at(buffer_of, n) : -1);
    for (int m = n + 1; m < g.regions[0].node_count; ++m)
      if (node const& item = detail::at(g.nodes, m); detail::at(what, m) == known::getitem && input(item, 0) == n)
        detail::at(p.slots, s.in[2] + static_cast<int>(item.at[0][0])) = detail::at(buffer_of, m);
    for (int k = 0; k < c.results; ++k) { // results nobody uses are written all the same
      int const result = detail::at(g.results, r.result_first + k);
      if (detail::at(p.slots, s.in[2] + k) < 0) detail::at(p.slots, s.in[2] + k) = new_buffer(detail::at(g.nodes, result), place::arena, 0);
    }
    p.calls.push_back(c);
    p.stages.push_back(s);
  }
  constexpr void call(int n) {
    if (detail::at(what, n) == known::cond) return branch(n);
    node const& nd = detail::at(g.nodes, n);
    stage s;
    s.kind = detail::at(what, n) == known::mm ? stage_kind::matmul : stage_kind::call;
    s.number = static_cast<int>(p.calls.size());
    call_info c;
    c.what = detail::at(what, n), c.out = nd.out, c.at = nd.at;
    for (int k = 0; k < nd.count && k < 3; ++k) c.in[k] = detail::at(g.nodes, input(nd, k)).out;
    p.calls.push_back(c);
    s.out = detail::at(buffer_of, n);
    for (int k = 0; k < nd.count && k < 3; ++k) s.in[k] = detail::at(buffer_of, base(input(nd, k)));
    p.stages.push_back(s);
  }
  /// Emits the loops of a group: one, or several over boxes when pieces of the space differ.
  constexpr void boxes(int j) {
    using detail::at;
    one_group const& gr = at(groups, j);
    facts const f{g, what, stored, opaque, group};
    unfolding u(f, j, false);
    std::vector<box> todo(1);
    for (int d = 0; d < gr.space.n; ++d) todo[0].hi[d] = gr.space[d];
    bool split = false;
    while (!todo.empty()) {
      u.clear();
      u.range = todo.back();
      todo.pop_back();
      std::vector<root> roots;
      for (member const& m : gr.members) seed(u, roles, buffer_of, m, roots);
      u.run();
      if (u.cut_dim >= 0) {
        if (!split)
          for (root const& r : roots)
            if (r.kind != sink_kind::store) fill(p, r.at.buffer, r.kind);
        split = true;
        box left = u.range, right = u.range;
        left.hi[u.cut_dim] = right.lo[u.cut_dim] = u.cut_at;
        todo.push_back(right), todo.push_back(left);
        continue;
      }
      for (root& r : roots) r.accumulate = split && r.kind != sink_kind::store;
      lower(u, gr.space.n, roots, buffer_of, p);
    }
  }
};

/// The stages that compute region 0 of an (optimized) graph.
constexpr program plan(graph const& g) { return planner(g).run(); }

} // namespace varve::loop
