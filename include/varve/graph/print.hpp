// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <varve/core/message.hpp>
#include <varve/graph/graph.hpp>

namespace varve {
namespace detail {

/// A number as short as it can be read back.
VARVE_COLD inline std::string number_text(double x) {
  if (x == static_cast<double>(static_cast<long long>(x > -1e15 && x < 1e15 ? x : 0)) && x > -1e15 && x < 1e15) return std::to_string(static_cast<long long>(x));
  char text[40];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  return text;
}

/// `float32[8, 3]`; a plain `float32` for rank 0.
VARVE_COLD inline std::string meta_text(meta const& m) { return std::string(name(m.type)) + (m.sizes.n ? to_string(m.sizes) : ""); }

/// The right-hand side of a node: `mul(%1, %2)`, `sum(%4, [0], [0])`, `constant(2)`, `placeholder(0)`.
VARVE_COLD inline std::string call_text(node const& n, int const* edges) {
  std::string s = n.op->name;
  s += '(';
  char const* comma = "";
  if (n.op->kind == op_kind::placeholder || n.op->kind == op_kind::constant) s += number_text(n.value);
  for (int k = 0; k < n.count; ++k, comma = ", ") s += comma + ("%" + std::to_string(edges[n.first + k]));
  for (int k = 0; k < n.at.count; ++k, comma = ", ") s += comma + to_string(n.at[k]);
  return s += ')';
}

VARVE_COLD inline void print_region(std::string& s, node const* nodes, int const* edges, int const* results, region const* regions, int r, std::string const& indent) {
  region const& g = regions[r];
  for (int n = g.node_first; n < g.node_first + g.node_count; ++n) {
    s += indent + "%" + std::to_string(n) + ": " + meta_text(nodes[n].out) + " = " + call_text(nodes[n], edges);
    if (nodes[n].regions_count) s += " {";
    s += '\n';
    for (int k = 0; k < nodes[n].regions_count; ++k) {
      if (k) s += indent + "} {\n";
      print_region(s, nodes, edges, results, regions, nodes[n].regions_first + k, indent + "  ");
    }
    if (nodes[n].regions_count) s += indent + "}\n";
  }
  s += indent + "return";
  for (int k = 0; k < g.result_count; ++k) s += std::string(k ? ", %" : " %") + std::to_string(results[g.result_first + k]);
  s += '\n';
}

VARVE_COLD inline void dot_region(std::string& s, node const* nodes, int const* edges, int const* results, region const* regions, int r, std::string const& indent) {
  region const& g = regions[r];
  for (int n = g.node_first; n < g.node_first + g.node_count; ++n) {
    node const& nd = nodes[n];
    bool const leaf = nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::constant;
    s += indent + "n" + std::to_string(n) + " [label=\"" + nd.op->name + (leaf ? " " + number_text(nd.value) : "");
    for (int k = 0; k < nd.at.count; ++k) s += " " + to_string(nd.at[k]);
    s += "\\n" + meta_text(nd.out) + "\"" + (leaf ? ", shape=box" : "") + "];\n";
    for (int k = 0; k < nd.count; ++k) s += indent + "n" + std::to_string(edges[nd.first + k]) + " -> n" + std::to_string(n) + ";\n";
    for (int k = 0; k < nd.regions_count; ++k) {
      int const sub = nd.regions_first + k;
      s += indent + "subgraph cluster_" + std::to_string(sub) + " {\n" + indent + "  label=\"" + nd.op->name + " " + std::to_string(k) + "\";\n";
      dot_region(s, nodes, edges, results, regions, sub, indent + "  ");
      s += indent + "}\n";
    }
  }
  for (int k = 0; k < g.result_count; ++k) {
    std::string const id = "r" + std::to_string(r) + "_" + std::to_string(k);
    s += indent + id + " [label=\"result " + std::to_string(k) + "\", shape=ellipse, style=bold];\n";
    s += indent + "n" + std::to_string(results[g.result_first + k]) + " -> " + id + ";\n";
  }
}
} // namespace detail

/// A graph as text that reads like code: one line `%3: float32[8, 3] = mul(%1, %2)` per operation, the functions of higher-order operators indented under it, `return` last.
VARVE_COLD inline std::string to_string(graph const& g) {
  std::string s;
  if (!g.regions.empty()) detail::print_region(s, g.nodes.data(), g.edges.data(), g.results.data(), g.regions.data(), 0, "");
  return s;
}
template <graph_sizes S>
VARVE_COLD std::string to_string(static_graph<S> const& g) {
  std::string s;
  if (S.regions) detail::print_region(s, g.nodes, g.edges, g.results, g.regions, 0, "");
  return s;
}

/// A graph in the DOT language of Graphviz; the functions of higher-order operators are clusters.
VARVE_COLD inline std::string to_dot(graph const& g) {
  std::string s = "digraph varve {\n  node [shape=plaintext];\n";
  if (!g.regions.empty()) detail::dot_region(s, g.nodes.data(), g.edges.data(), g.results.data(), g.regions.data(), 0, "  ");
  return s + "}\n";
}
template <graph_sizes S>
VARVE_COLD std::string to_dot(static_graph<S> const& g) {
  std::string s = "digraph varve {\n  node [shape=plaintext];\n";
  if (S.regions) detail::dot_region(s, g.nodes, g.edges, g.results, g.regions, 0, "  ");
  return s + "}\n";
}

} // namespace varve
