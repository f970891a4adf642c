// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>

namespace varve {

/// The purpose for which a pass makes a graph: to be differentiated too (`interpret` under `grad`), or for its values
/// alone, as for planning and fusing.
enum class purpose : unsigned char { derivatives, values };

/// The frame of every pass. It copies a graph region by region and node by node into `to`. `now[n]` is the new number
/// of node `n`, or -1 if it was dropped.
struct rewriter {
  graph const& from;
  graph to{};
  list<int> now{};
  int* numbers = nullptr;
  int const* edges = nullptr;

  constexpr explicit rewriter(graph const& g) : from(g), now(g.nodes.size(), -1) {
    numbers = now.data(), edges = g.edges.data();
    to.nodes.reserve(g.nodes.size()), to.edges.reserve(g.edges.size()), to.results.reserve(g.results.size()),
        to.regions.reserve(g.regions.size());
    to.expressions = g.expressions, to.guards = g.guards, to.names = g.names, to.functions = g.functions;
  }
  rewriter(rewriter const&) = delete;
  rewriter& operator=(rewriter const&) = delete;
  /// Returns the number of the `k`-th operand of an old node in the new graph.
  constexpr int operand(node const& n, int k) const { return numbers[edges[n.first + k]]; }
  /// Appends `n` with operands given as new numbers. The elements of an array constant must be in `to` already.
  constexpr int append(node const& n, int const* in) {
    to.nodes.push_back(n);
    node& mine = to.nodes.back();
    mine.first = static_cast<int>(to.edges.size());
    for (int k = 0; k < mine.count; ++k) to.edges.push_back(in[k]);
    return static_cast<int>(to.nodes.size()) - 1;
  }
  /// Appends an old node as it is.
  constexpr int copy(node const& n) {
    to.nodes.push_back(n);
    node& mine = to.nodes.back();
    int const* const in = edges + mine.first;
    mine.first = static_cast<int>(to.edges.size());
    for (int k = 0; k < mine.count; ++k) to.edges.push_back(numbers[in[k]]);
    if (is_array_constant(mine)) detail::take_constants(to, from, mine);
    return static_cast<int>(to.nodes.size()) - 1;
  }
  /// Copies one region, which becomes the next one of `to`. Calls `start()`, whose nodes belong to it, then `each(n)`
  /// for each of its nodes.
  template <class Each, class Start>
  constexpr void copy_region(region r, Each const& each, Start const& start) {
    int const first = static_cast<int>(to.nodes.size()), result = static_cast<int>(to.results.size());
    start();
    for (int n = r.node_first; n < r.node_first + r.node_count; ++n) numbers[n] = each(n);
    for (int k = 0; k < r.result_count; ++k)
      to.results.push_back(now[static_cast<std::size_t>(from.results[static_cast<std::size_t>(r.result_first + k)])]);
    r.node_first = first, r.node_count = static_cast<int>(to.nodes.size()) - first, r.result_first = result;
    to.regions.push_back(r);
  }
  /// Calls `each(old number)`, which returns a new number or -1, for every node of every region, and `start()` at the
  /// beginning of each region.
  template <class Each, class Start>
  constexpr graph run(Each each, Start start) {
    for (region const& r : from.regions) { copy_region(r, each, start); }
    return static_cast<graph&&>(to);
  }
};

} // namespace varve
