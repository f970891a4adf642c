// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/core/dtype.hpp>
#include <varve/dispatch/handle.hpp>
#include <varve/graph/list.hpp>

namespace varve {

/// One operation of a graph. Operands are the node numbers `graph::edges[first .. first + count)`, always smaller than the node's own.
struct node {
  op_handle const* op = nullptr;
  attributes at{};
  meta out{};
  int first = 0;
  int count = 0;
  /// Value of a rank-0 `constant` node, or the number of a `placeholder`.
  double value = 0;
  /// First and last-but-one subgraph of a higher-order node: `graph::regions[regions_first .. + regions_count)`.
  int regions_first = 0;
  int regions_count = 0;
};

/// A function inside a graph: its nodes are contiguous, its placeholders come first. Region 0 is the whole program.
struct region {
  int node_first = 0, node_count = 0;
  int inputs = 0;
  /// Results are the node numbers `graph::results[result_first .. + result_count)`.
  int result_first = 0, result_count = 0;
};

/// The one intermediate representation: a list of operations in execution order, with the functions of higher-order operators as further regions.
/// Usable in constant expressions; `static_graph` is the form that outlives them.
struct graph {
  list<node> nodes;
  list<int> edges;
  list<int> results;
  list<region> regions;
};

/// Array sizes of a frozen graph.
struct graph_sizes {
  std::size_t nodes, edges, results, regions;
};

/// A graph of known size: a value of a constant expression that may be kept, printed, asserted on and executed.
template <graph_sizes S>
struct static_graph {
  node nodes[S.nodes ? S.nodes : 1]{};
  int edges[S.edges ? S.edges : 1]{};
  int results[S.results ? S.results : 1]{};
  region regions[S.regions ? S.regions : 1]{};
  static constexpr graph_sizes sizes = S;

  constexpr static_graph() = default;
  constexpr explicit static_graph(graph const& g) {
    for (std::size_t k = 0; k < S.nodes; ++k) nodes[k] = g.nodes[k];
    for (std::size_t k = 0; k < S.edges; ++k) edges[k] = g.edges[k];
    for (std::size_t k = 0; k < S.results; ++k) results[k] = g.results[k];
    for (std::size_t k = 0; k < S.regions; ++k) regions[k] = g.regions[k];
  }
  /// The same graph in the form that passes work on.
  constexpr graph thaw() const {
    return {list<node>(nodes, nodes + S.nodes), list<int>(edges, edges + S.edges), list<int>(results, results + S.results),
            list<region>(regions, regions + S.regions)};
  }
  /// Number of nodes of an operator: `g.count(vv::sigmoid)`.
  template <class Op>
  constexpr int count(Op const&) const {
    int n = 0;
    for (std::size_t k = 0; k < S.nodes; ++k) n += nodes[k].op == &varve::handle<Op>;
    return n;
  }
  /// Number of nodes that compute something: neither placeholders nor constants.
  constexpr int operations() const {
    int n = 0;
    for (std::size_t k = 0; k < S.nodes; ++k) n += nodes[k].op->kind != op_kind::placeholder && nodes[k].op->kind != op_kind::constant;
    return n;
  }
};

namespace detail {
template <class Make>
struct frozen_sizes {
  static constexpr graph_sizes compute() {
    graph const g = Make{}();
    return {g.nodes.size(), g.edges.size(), g.results.size(), g.regions.size()};
  }
};
} // namespace detail

/// Freezes the graph that `Make{}()` computes: it is computed twice, once for its sizes.
template <class Make>
constexpr auto freeze(Make) {
  if constexpr (!evaluates<detail::frozen_sizes<Make>>) {
    static_assert((detail::frozen_sizes<Make>::compute(), true), "varve: this function cannot be traced"); // the compiler tells why
    return static_graph<graph_sizes{}>{};
  } else {
    constexpr graph_sizes s = detail::frozen_sizes<Make>::compute();
    return static_graph<s>(Make{}());
  }
}

} // namespace varve
