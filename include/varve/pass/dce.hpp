// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/rewriter.hpp>

namespace varve {

namespace detail {
/// Does a node draw random numbers? What comes after it depends on that, used or not.
constexpr bool draws(graph const& g, node const& n) {
  if (n.op->kind == op_kind::random) return n.at.count > 0; // the state of the generator has no attributes
  bool any = false;
  for (int r = 0; r < n.regions_count; ++r) {
    region const& inside = g.regions[n.regions_first + r];
    for (int k = 0; k < inside.node_count; ++k) any = any || draws(g, g.nodes[inside.node_first + k]);
  }
  return any;
}
} // namespace detail

/// Which nodes a result depends on; placeholders, mutations and draws count as such, and so does what `marks` says
/// already.
constexpr list<char> live_nodes(graph const& g, list<char> marks) {
  char* const live = marks.data();
  int const* const edges = g.edges.data();
  node const* const nodes = g.nodes.data();
  for (int r : g.results) live[r] = 1;
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    node const& nd = nodes[n];
    if (nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::mutation || detail::draws(g, nd)) live[n] = 1;
    if (live[n])
      for (int k = 0; k < nd.count; ++k) live[edges[nd.first + k]] = 1;
  }
  return marks;
}
constexpr list<char> live_nodes(graph const& g) { return live_nodes(g, list<char>(g.nodes.size(), 0)); }

/// The program without what was written on the way for shapes alone.
constexpr graph without_scaffolds(graph const& g) {
  list<char> part(g.nodes.size(), 0); // an operator of the program stays, used or not, and so does what it uses
  for (std::size_t n = 0; n < g.nodes.size(); ++n) part[n] = !g.nodes[n].scaffold;
  list<char> const live = live_nodes(g, part);
  rewriter w(g);
  return w.run(
      [&](int n) {
        if (!live[n]) return -1;
        int const mine = w.copy(g.nodes[n]);
        w.to.nodes.back().scaffold = false;
        return mine;
      },
      [] {});
}

/// Dead code elimination: drops every operation no result depends on. Placeholders, mutations, draws and the
/// regions stay.
constexpr graph dce(graph const& g) {
  list<char> const live = live_nodes(g);
  rewriter w(g);
  return w.run([&](int n) { return live[n] ? w.copy(g.nodes[n]) : -1; }, [] {});
}

} // namespace varve
