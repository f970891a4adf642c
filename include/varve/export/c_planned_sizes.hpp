// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/graph/read_sizes.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace varve::c99 {

/// The symbolic sizes of a graph, before it is planned: copies the graph without guards, and with a table that has only
/// the sizes of its nodes.
class planned_sizes {
public:
  /// Throws `value_error` if there are more than six symbols, and for operators with sizes that data decide, or that
  /// are not made by sums and products.
  VARVE_COLD static graph of(graph const& g) {
    planned_sizes const all(g);
    if (int const n = varve::detail::names_of(g).count; n > fusion::max_symbols)
      refuse::argument_is_invalid("emit_c",
                                  "the graph has more than six symbolic sizes; trace some of them as numbers");
    graph r = g;
    r.guards = {}, r.expressions = {};
    for (int s = 0; s < fusion::max_symbols; ++s) // in the order of their numbers, as samples have it
      for (std::size_t k = 0; k < g.expressions.size(); ++k)
        if (size_expression const& e = g.expressions.data()[k]; e.op == size_op::symbol && e.a.number() == s)
          r.expressions.symbol(s, e.b);
    for (node& n : r.nodes) {
      auto const own = [&](dims& d) {
        for (int k = 0; k < d.n; ++k) all.check(n, d[k]), d[k] = r.expressions.imported(all.view, d[k]);
      };
      own(n.out.sizes);
      for (int k = 0; k < n.at.count; ++k) own(n.at.fact[k]);
    }
    return r;
  }
  /// Adds the guards of `from` to a graph with the same symbols.
  VARVE_COLD static void add_guards(graph& g, graph const& from) {
    auto const own = [&](extent e) { return g.expressions.imported(from.expressions.view(), e); };
    for (size_guard const& a : from.guards)
      fusion::add_guard(g.guards, {a.is, own(a.left), own(a.right), own(a.unless)});
  }

private:
  size_view view;
  std::vector<index_t> symbols{}; // those that arguments mention

  explicit planned_sizes(graph const& g) : view(g.expressions.view()) {
    for (int k = 0; k < g.regions[0].inputs; ++k)
      for (extent const e : g.nodes[k].out.sizes) find(e);
  }
  void find(extent e) {
    if (!e.is_entry()) return;
    size_expression const& x = view[e];
    if (x.op == size_op::symbol) symbols.push_back(x.a.number());
    else find(x.a), find(x.b);
  }
  void check(node const& n, extent whole) const { check(n, whole, whole); }
  void check(node const& n, extent whole, extent e) const {
    if (!e.is_entry()) return;
    size_expression const& x = view[e];
    bool const is_symbol = x.op == size_op::symbol;
    if (is_symbol && std::find(symbols.begin(), symbols.end(), x.a.number()) == symbols.end())
      refuse_size(n, whole, "which data decide; call it outside of the graph, or select by where and products");
    if (is_symbol) return;
    if (x.op != size_op::sum && x.op != size_op::product)
      refuse_size(n, whole, "which is not made by sums and products; trace that size as a number");
    check(n, whole, x.a), check(n, whole, x.b);
  }
  [[noreturn]] void refuse_size(node const& n, extent size, char const* why) const {
    refuse::argument_is_invalid(
        "emit_c", (std::string("operator ") + n.op->name + " has the size " + view.text(size) + ", " + why).c_str());
  }
};

} // namespace varve::c99

#pragma GCC diagnostic pop
