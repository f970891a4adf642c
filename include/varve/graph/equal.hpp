// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

#include <bit>
#include <string_view>

namespace varve {

namespace detail {
/// The state of `equal`: the pairs of corresponding node numbers that are known so far.
struct matching {
  graph_view const &a, &b;
  list<int> to, from, pending{};
  size_table sizes;         // of the second graph, followed by those that only the first has
  list<extent> size_of_a{}; // for each expression of the first graph, the corresponding entry of `sizes`

  constexpr matching(graph_view const& x, graph_view const& y)
      : a(x), b(y), to(x.sizes.nodes, -1), from(y.sizes.nodes, -1),
        sizes(y.expressions, y.expressions + y.sizes.expressions) {
    int other = 0; // a number that no symbol of the second graph has
    for (size_expression const* e = y.expressions; e != y.expressions + y.sizes.expressions; ++e)
      if (e->op == size_op::symbol && e->a.number() >= other) other = static_cast<int>(e->a.number()) + 1;
    for (std::size_t k = 0; k < x.sizes.expressions; ++k) size_of_a.push_back(translated(x.expressions[k], other));
  }
  /// Returns the entry of `sizes` for an expression of the first graph. Symbols are the same if their names are.
  constexpr extent translated(size_expression const& e, int& other) {
    if (e.op != size_op::symbol) return sizes.combine(e.op, translated(e.a), translated(e.b));
    for (std::size_t k = 0; k < b.sizes.expressions; ++k)
      if (size_expression const& s = b.expressions[k];
          s.op == size_op::symbol && known_equal(s.b, e.b) && (e.b.is_name() || known_equal(s.a, e.a)))
        return extent::entry(static_cast<index_t>(k));
    return sizes.symbol(other++, e.b);
  }
  constexpr extent translated(extent e) const { return e.is_entry() ? size_of_a[e.entry()] : e; }
  constexpr bool same(dims const& x, dims const& y) const {
    if (size_of_a.empty()) return x == y;
    bool r = x.n == y.n;
    for (int k = 0; r && k < x.n; ++k) r = known_equal(translated(x[k]), y[k]);
    return r;
  }
  constexpr bool same(attributes const& x, attributes const& y) const {
    bool r = x.count == y.count;
    for (int k = 0; r && k < x.count; ++k) r = same(x[k], y[k]);
    return r;
  }

  /// Records two nodes as corresponding. Returns false if one of them corresponds to another node already.
  constexpr bool pair(int x, int y) {
    int &p = to[x], &q = from[y];
    if (p >= 0 || q >= 0) return p == y && q == x;
    p = y, q = x;
    pending.push_back(x);
    return true;
  }
  static constexpr bool same_operator(op_handle const& x, op_handle const& y) {
    return &x == &y || (x.own && y.own && x.kind == y.kind && x.arity == y.arity && std::string_view(x.name) == y.name);
  }
  static constexpr bool same_bits(double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  }

  /// True if two nodes are the same apart from their operands; these are paired and compared later.
  constexpr bool alike(node const& x, node const& y) {
    if (!same_operator(*x.op, *y.op) || x.out.type != y.out.type || !same(x.out.sizes, y.out.sizes) ||
        !same(x.at, y.at) || x.count != y.count || x.regions_count != y.regions_count || x.mode != y.mode ||
        (x.function < 0) != (y.function < 0))
      return false;
    if (x.function >= 0 && !a.functions[x.function].call.is(b.functions[y.function].call)) return false;
    if (is_array_constant(x)) {
      double const *const p = a.constants + static_cast<std::ptrdiff_t>(x.value), *const q =
                                                                                      b.constants +
                                                                                      static_cast<std::ptrdiff_t>(
                                                                                          y.value);
      for (index_t e = 0, all = numel(x.out.sizes); e < all; ++e)
        if (!same_bits(p[e], q[e])) return false;
    } else if (!same_bits(x.value, y.value)) {
      return false;
    }
    for (int k = 0; k < x.count; ++k)
      if (!pair(a.operand(x, k), b.operand(y, k))) return false;
    for (int k = 0; k < x.regions_count; ++k)
      if (!functions(a.regions[x.regions_first + k], b.regions[y.regions_first + k])) return false;
    return true;
  }
  constexpr bool functions(region const& f, region const& g) {
    if (f.inputs != g.inputs || f.result_count != g.result_count || f.node_count != g.node_count) return false;
    for (int k = 0; k < f.inputs; ++k)
      if (!pair(f.node_first + k, g.node_first + k)) return false;
    for (int k = 0; k < f.result_count; ++k)
      if (!pair(a.results[f.result_first + k], b.results[g.result_first + k])) return false;
    return true;
  }
  constexpr bool follow() {
    while (!pending.empty()) {
      int const x = pending.back();
      pending.pop_back();
      if (!alike(a.nodes[x], b.nodes[to[x]])) return false;
    }
    return true;
  }
};
} // namespace detail

/// True if two graphs, of either form, are the same up to the numbers of their nodes. They must have the same
/// operations, with the same attributes, dtypes, shapes, constants and inner functions. Operands, inputs and results
/// must correspond in the same order.
///
/// Symbolic sizes are equal if they are equal functions of symbols of the same names. Custom functions are equal if
/// they come from the same traced call of `apply`. A shared operation differs from a repeated one (`cse` merges these).
/// Operations on which no result depends are compared in their order. Takes time linear in the size of the graphs.
constexpr bool equal(graph_view const& g, graph_view const& h) {
  if (g.sizes.nodes != h.sizes.nodes || g.sizes.regions != h.sizes.regions) return false;
  detail::matching m(g, h);
  if (g.sizes.regions && !m.functions(g.regions[0], h.regions[0])) return false;
  if (!m.follow()) return false;
  // nodes on which no result depends, from the last to the first
  for (std::size_t x = g.sizes.nodes, y = h.sizes.nodes;;) {
    while (x > 0 && m.to[static_cast<std::ptrdiff_t>(x) - 1] >= 0) --x;
    while (y > 0 && m.from[static_cast<std::ptrdiff_t>(y) - 1] >= 0) --y;
    if (x == 0 || y == 0) return x == y;
    if (!m.pair(static_cast<int>(x) - 1, static_cast<int>(y) - 1) || !m.follow()) return false;
  }
}

} // namespace varve
