// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>
#include <varve/core/number_text.hpp>
#include <varve/graph/graph.hpp>

#include <iosfwd>
#include <string>

namespace varve {
namespace detail {

/// Returns sizes as text, as in `[8, 3]`. It is `[2*n, 3]` if a size is an expression of the graph, or of the symbolic
/// program in which the graph was traced.
VARVE_COLD inline std::string sizes_text(graph_view const& g, dims const& d) {
  for (int k = 0; k < d.n; ++k)
    if (d[k].is_entry() && d[k].environment() != 0) return to_string(d);
  std::string s = "[";
  for (int k = 0; k < d.n; ++k) s += (k ? ", " : "") + size_view(g.expressions).text(d[k]);
  return s += "]";
}
/// Returns a dtype with its sizes, as in `float32[8, 3]`; a plain `float32` for rank 0.
VARVE_COLD inline std::string meta_text(graph_view const& g, meta const& m) {
  return std::string(name(m.type)) + (m.sizes.n ? sizes_text(g, m.sizes) : "");
}

/// Returns the number of a placeholder or constant. For an array constant returns the elements, at most the first 16.
VARVE_COLD inline std::string leaf_text(graph_view const& g, node const& n) {
  if (!is_array_constant(n)) return number_text(n.value);
  constexpr index_t shown = 16;
  std::string s = "[";
  index_t const count = numel(n.out.sizes);
  for (index_t e = 0; e < count && e < shown; ++e)
    s += (e ? ", " : "") + number_text(g.constants[static_cast<std::ptrdiff_t>(n.value) + e]);
  return s += count > shown ? ", ...]" : "]";
}

/// Returns the name of an argument of the program; nullptr for other nodes and for arguments without a name.
VARVE_COLD inline char const* argument_name(graph_view const& g, int n) {
  int const at = n < g.regions[0].inputs ? static_cast<int>(g.nodes[n].value) : g.names.count;
  return at < g.names.count ? g.names.text[at] : nullptr;
}
/// Returns the name of result `k` of region `r`; nullptr in regions other than the program and for results without a
/// name.
VARVE_COLD inline char const* result_name(graph_view const& g, int r, int k) {
  int const at = r == 0 ? g.regions[0].inputs + k : g.names.count;
  return at < g.names.count ? g.names.text[at] : nullptr;
}
/// Returns the text that refers to a value: `%12`, or `%x` for an argument that has a name.
VARVE_COLD inline std::string value_text(graph_view const& g, int n) {
  char const* const name = argument_name(g, n);
  return "%" + (name ? name : std::to_string(n));
}

/// Returns the right-hand side of a node: `mul(%1, %2)`, `sum(%4, [0], [0])`, `constant(2)`, `constant([1, 2])`,
/// `placeholder(0)`.
VARVE_COLD inline std::string call_text(graph_view const& g, node const& n) {
  std::string s = n.op->name;
  if (n.function >= 0) s = s + "[" + g.functions[n.function].name + "]";
  s += '(';
  char const* comma = "";
  if (n.op->kind == op_kind::placeholder || n.op->kind == op_kind::constant) s += leaf_text(g, n);
  for (int k = 0; k < n.count; ++k, comma = ", ") s += comma + value_text(g, g.operand(n, k));
  if (char text[256] = ""; n.op->text) {
    n.op->text(n.at, text, static_cast<int>(sizeof text) - 1);
    s = s + comma + '"' + text + '"';
  }
  for (int k = 0; k < n.at.count && !n.op->text; ++k, comma = ", ") s += comma + sizes_text(g, n.at[k]);
  s += ')';
  if (n.mode != recording::as_around) s += n.mode == recording::off ? " in no_grad" : " in enable_grad";
  return s;
}

VARVE_COLD inline void print_region(std::string& s, graph_view const& g, int r, std::string const& indent) {
  region const& f = g.regions[r];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    s += indent + value_text(g, n) + ": " + meta_text(g, g.nodes[n].out) + " = " + call_text(g, g.nodes[n]);
    if (g.nodes[n].regions_count) s += " {";
    s += '\n';
    for (int k = 0; k < g.nodes[n].regions_count; ++k) {
      if (k) s += indent + "} {\n";
      print_region(s, g, g.nodes[n].regions_first + k, indent + "  ");
    }
    if (g.nodes[n].regions_count) s += indent + "}\n";
  }
  s += indent + "return";
  for (int k = 0; k < f.result_count; ++k) {
    char const* const name = result_name(g, r, k);
    s += (k ? ", " : " ") + (name ? std::string(name) + " = " : "") + value_text(g, g.results[f.result_first + k]);
  }
  s += '\n';
}

VARVE_COLD inline void dot_region(std::string& s, graph_view const& g, int r, std::string const& indent) {
  region const& f = g.regions[r];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[n];
    bool const leaf = nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::constant;
    char const* const name = argument_name(g, n);
    s += indent + "n" + std::to_string(n) + " [label=\"" + nd.op->name +
         (name   ? std::string(" ") + name
          : leaf ? " " + leaf_text(g, nd)
                 : "");
    for (int k = 0; k < nd.at.count; ++k) s += " " + sizes_text(g, nd.at[k]);
    s += "\\n" + meta_text(g, nd.out) + "\"" + (leaf ? ", shape=box" : "") + "];\n";
    for (int k = 0; k < nd.count; ++k)
      s += indent + "n" + std::to_string(g.operand(nd, k)) + " -> n" + std::to_string(n) + ";\n";
    for (int k = 0; k < nd.regions_count; ++k) {
      int const sub = nd.regions_first + k;
      s += indent + "subgraph cluster_" + std::to_string(sub) + " {\n" + indent + "  label=\"" + nd.op->name + " " +
           std::to_string(k) + "\";\n";
      dot_region(s, g, sub, indent + "  ");
      s += indent + "}\n";
    }
  }
  for (int k = 0; k < f.result_count; ++k) {
    char const* const name = result_name(g, r, k);
    std::string const id = "r" + std::to_string(r) + "_" + std::to_string(k);
    s += indent + id + " [label=\"result " + (name ? name : std::to_string(k)) + "\", shape=ellipse, style=bold];\n";
    s += indent + "n" + std::to_string(g.results[f.result_first + k]) + " -> " + id + ";\n";
  }
}
} // namespace detail

/// Returns a graph of either form as text that reads like code. Each operation is a line such as `%3: float32[8, 3] =
/// mul(%1, %2)`. The functions of higher-order operators are indented under it, and `return` is last. Symbolic sizes
/// read `[n + 1, 3]`.
VARVE_COLD inline std::string to_string(graph_view const& g) {
  std::string s;
  if (g.sizes.regions) detail::print_region(s, g, 0, "");
  return s;
}

/// Writes `to_string(g)` to a stream, for a graph of either form: `std::cout << g`.
template <class Traits, class G>
  requires std::is_same_v<G, graph> || std::is_base_of_v<graph_questions<G>, G>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, G const& g) {
  out << to_string(g).c_str();
  return out;
}

/// Returns a graph of either form in the DOT language of Graphviz. The functions of higher-order operators are
/// clusters.
VARVE_COLD inline std::string to_dot(graph_view const& g) {
  std::string s = "digraph varve {\n  node [shape=plaintext];\n";
  if (g.sizes.regions) detail::dot_region(s, g, 0, "  ");
  return s + "}\n";
}

} // namespace varve
