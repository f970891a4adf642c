// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/aot/partition.hpp>

#include <cstdint>

namespace varve {

/// Limits for `min_cut_partition`.
struct min_cut_options {
  /// The bytes of intermediate values that may be saved, as a fraction of those that `default_partition` saves. Cheap
  /// operators are recomputed first. If that is not enough, the largest other results are recomputed too, except random
  /// ones.
  double memory_budget = 1.0;
};

namespace detail {
/// A flow network from node 0 to node 1 and its minimum cut. Algorithm: levels and blocking flows (Dinic 1970).
class flow_network {
public:
  static constexpr std::int64_t unbounded = std::int64_t{1} << 60;
  constexpr explicit flow_network(int nodes) : first_(static_cast<std::size_t>(nodes), -1) {}
  constexpr void connect(int from, int to, std::int64_t capacity) {
    arc(from, to, capacity);
    arc(to, from, 0);
  }
  /// Computes a maximum flow and marks the nodes on the side of node 0.
  constexpr list<char> source_side() {
    while (find_levels()) {
      at_ = first_;
      while (push_one_path()) {}
    }
    list<char> r(first_.size(), 0);
    for (std::size_t n = 0; n < r.size(); ++n) r[n] = level_[n] >= 0;
    return r;
  }

private:
  struct arc_t {
    int to, next;
    std::int64_t left;
  };
  list<arc_t> arcs_;
  list<int> first_, level_, at_;

  constexpr void arc(int from, int to, std::int64_t capacity) {
    arcs_.push_back({to, first_[from], capacity});
    first_[from] = static_cast<int>(arcs_.size()) - 1;
  }
  constexpr bool find_levels() {
    level_ = list<int>(first_.size(), -1);
    list<int> queue(1, 0);
    level_[0] = 0;
    for (std::size_t k = 0; k < queue.size(); ++k)
      for (int a = first_[queue[k]]; a >= 0; a = arcs_[a].next)
        if (arcs_[a].left > 0 && level_[arcs_[a].to] < 0) {
          level_[arcs_[a].to] = level_[queue[k]] + 1;
          queue.push_back(arcs_[a].to);
        }
    return level_[1] >= 0;
  }
  /// Pushes flow along one path of rising levels. Without recursion, since programs are long.
  constexpr bool push_one_path() {
    list<int> path; // arcs
    int n = 0;
    while (n != 1) {
      int& a = at_[n];
      while (a >= 0 && !(arcs_[a].left > 0 && level_[arcs_[a].to] == level_[n] + 1)) a = arcs_[a].next;
      if (a >= 0) {
        path.push_back(a);
        n = arcs_[a].to;
      } else {
        if (path.empty()) return false;
        n = arcs_[path[path.size() - 1] ^ 1].to;
        path.pop_back();
        at_[n] = arcs_[at_[n]].next;
      }
    }
    std::int64_t most = unbounded;
    for (int a : path) most = arcs_[a].left < most ? arcs_[a].left : most;
    for (int a : path) arcs_[a].left -= most, arcs_[a ^ 1].left += most;
    return true;
  }
};

/// Returns the bytes of a value. A symbolic size counts as 1024.
constexpr std::int64_t bytes_of(meta const& m) {
  std::int64_t n = static_cast<std::int64_t>(itemsize(m.type));
  for (int k = 0; k < m.sizes.n; ++k) n *= m.sizes[k].is_entry() ? 1024 : m.sizes[k].number();
  return n;
}

/// A search for the values between the two passes that are cheapest to save.
struct least_cut {
  graph const& g;
  joint_shape const shape;
  joint_ends const ends;
  list<char> const late;    // depends on a tangent
  list<char> again, random; // may be recomputed; must not be

  constexpr least_cut(graph const& of, joint_shape s)
      : g(of), shape(s), ends(of, s), late(of_tangents(of, s.primals)), again(of.nodes.size(), 0),
        random(of.nodes.size(), 0) {
    list<operator_class> const what = identify(g);
    region const& f = g.regions[0];
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
      node const& nd = g.nodes[n];
      op_kind const k = nd.op->kind;
      random[n] = k == op_kind::random || draws(g, nd, true) || acts(g, nd) || nd.op == &handle<local_scalar_t>;
      again[n] = !random[n] && !nd.regions_count && nd.function < 0 &&
                 (k == op_kind::pointwise || k == op_kind::convert || k == op_kind::view || k == op_kind::factory ||
                  k == op_kind::constant || what[n] == operator_class::expand || is_getitem(nd));
    }
  }
  constexpr bool is_primal(int n) const { return g.nodes[n].op->kind == op_kind::placeholder; }

  /// Returns the values to save.
  constexpr list<int> values() const {
    region const& f = g.regions[0];
    list<char> used(g.nodes.size(), 0);
    for (int n : ends.gradients) used[n] = 1;
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      if (late[n])
        for (int k = 0; k < g.nodes[n].count; ++k) used[g.edges[g.nodes[n].first + k]] = 1;
    // Node n has the entry 2 + 2 n and the exit 3 + 2 n; cutting between them means saving its value.
    flow_network flow(2 + 2 * static_cast<int>(g.nodes.size()));
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
      if (late[n]) continue;
      int const in = 2 + 2 * n, out = in + 1;
      bool const several = g.nodes[n].regions_count && is_tuple(n);
      flow.connect(in, out, several ? flow_network::unbounded : cost(n));
      if (is_primal(n) || !again[n]) flow.connect(0, in, flow_network::unbounded);
      if (used[n]) flow.connect(out, 1, flow_network::unbounded);
      for (int k = 0; k < g.nodes[n].count; ++k)
        if (int const x = g.edges[g.nodes[n].first + k]; !late[x]) flow.connect(3 + 2 * x, in, flow_network::unbounded);
    }
    list<char> const side = flow.source_side();
    list<int> r;
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      if (!late[n] && side[2 + 2 * n] && !side[3 + 2 * n]) r.push_back(n);
    return r;
  }
  /// Returns the bytes that saving costs. Arguments cost nothing.
  constexpr std::int64_t bytes(list<int> const& saved) const {
    std::int64_t n = 0;
    for (int v : saved) n += is_primal(v) ? 0 : bytes_of(g.nodes[v].out);
    return n;
  }
  /// Marks the largest saved value whose operator is not recomputed yet for recomputation. Returns false if there is
  /// none.
  constexpr bool give_up_one(list<int> const& saved) {
    int largest = -1;
    for (int n : saved)
      if (int const made = is_getitem(g.nodes[n]) ? g.edges[g.nodes[n].first] : n;
          !is_primal(n) && !again[made] && !random[made] &&
          (largest < 0 || bytes_of(g.nodes[n].out) > bytes_of(g.nodes[largest].out)))
        largest = n;
    if (largest < 0) return false;
    again[is_getitem(g.nodes[largest]) ? g.edges[g.nodes[largest].first] : largest] = 1;
    return true;
  }

private:
  /// True if the result is read only by its parts (`getitem`).
  constexpr bool is_tuple(int n) const {
    for (std::size_t k = 0; k < g.nodes.size(); ++k)
      if (is_getitem(g.nodes[k]) && g.edges[g.nodes[k].first] == n) return true;
    return false;
  }
  /// Returns the cost of saving a value: it is written and read. Arguments exist anyway and are only read.
  constexpr std::int64_t cost(int n) const { return (is_primal(n) ? 1 : 2) * (bytes_of(g.nodes[n].out) + 1); }
};
} // namespace detail

/// Cuts a joint graph so that saved values need little memory. Elementwise operators, views and constants are
/// recomputed in the backward pass where that saves bytes. Products, sums, random draws and calls of functions are not.
/// For `cos(cos(cos(x)))` it saves only x. Time: a maximum flow through the forward part.
constexpr partition min_cut_partition(graph const& g, joint_shape s, min_cut_options o = {}) {
  detail::least_cut cut(g, s);
  list<int> saved = cut.values();
  if (o.memory_budget < 1) {
    auto const all = static_cast<double>(cut.bytes(detail::saved_by_default(g, s)));
    while (static_cast<double>(cut.bytes(saved)) > o.memory_budget * all && cut.give_up_one(saved))
      saved = cut.values();
  }
  return detail::partition_at(g, s, saved);
}

} // namespace varve
