// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>
#include <varve/graph/operator_class.hpp>
#include <varve/shape/sample.hpp>
#include <varve/shape/size_numbers.hpp>

#include <bit>

/// @file
/// Symbolic sizes of graphs. One function is traced for two sets of sample sizes, and the two graphs are read back as
/// one. Sizes and attributes in which the two differ become entries of its table (`graph::expressions`). Some passes
/// compute with sizes. They receive the graph for the samples again (`at_sample`), and their results are read back
/// (`on_samples`).
namespace varve {
namespace fusion {
namespace detail {
constexpr bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
} // namespace detail

/// Adds a guard unless the list contains it.
constexpr void add_guard(list<size_guard>& guards, size_guard const& g) {
  for (size_guard const& o : guards)
    if (o.is == g.is && known_equal(o.left, g.left) && known_equal(o.right, g.right) && known_equal(o.unless, g.unless))
      return;
  guards.push_back(g);
}

/// A collector of the conditions that two graphs or plans impose on the symbolic sizes.
struct guard_reader {
  size_reader& sizes;
  list<size_guard>& guards;

  /// Adds the conditions on sizes on which the decisions of two plans depend: the values must be at least 0.
  constexpr void asked(list<index_t> const& first, list<index_t> const& second) {
    for (std::size_t k = 0; k < first.size(); ++k) at_least_0(first[k], second[k]);
  }
  /// Adds the conditions that no size is negative, that slices stay inside, and that loops have at least one step. Axes
  /// that `amax` reduces must not be empty where its result has elements.
  constexpr void graphs(graph const& a, graph const& b) {
    list<operator_class> const what = identify(a);
    for (std::size_t k = 0; k < a.nodes.size(); ++k) nodes(a, b, static_cast<std::ptrdiff_t>(k), what[k]);
  }

private:
  constexpr void at_least_0(index_t x, index_t y, index_t unless = 1) {
    if (x == y) return;
    extent const size = sizes.read(x, y);
    if (sizes.failed) return;
    add_guard(guards, {relation::less_equal, 0, size, unless});
  }
  constexpr bool never_negative(index_t s) const {
    size_range any[max_symbols];
    for (size_range& r : any) r.least = 0;
    return is_run_time(s) && sizes.table.view().range(s, any).least >= 0;
  }
  static constexpr dims const& operand(graph const& g, node const& nd) { return g.nodes[g.edges[nd.first]].out.sizes; }
  constexpr void nodes(graph const& a, graph const& b, std::ptrdiff_t k, operator_class what) {
    node const &n = a.nodes[k], &m = b.nodes[k];
    for (int d = 0; d < n.out.sizes.n && d < m.out.sizes.n; ++d)
      if (index_t const x = n.out.sizes[d], y = m.out.sizes[d]; x != y && !never_negative(sizes.read(x, y)))
        at_least_0(x, y);
    bool const back = what == operator_class::slice_backward;
    if (what == operator_class::slice || back) {
      dims const &s = back ? n.at[1] : n.at[0], &t = back ? m.at[1] : m.at[0];
      int const axis = static_cast<int>(s[0]);
      at_least_0((back ? n.out.sizes : operand(a, n))[axis] - s[2], (back ? m.out.sizes : operand(b, m))[axis] - t[2]);
      at_least_0(s[2] - s[1], t[2] - t[1]), at_least_0(s[1], t[1]);
    } else if (what == operator_class::scan) {
      at_least_0(n.at[1][0] - 1, m.at[1][0] - 1);
    } else if (what == operator_class::convolution) { // result and input are not empty
      for (int d = 2; d < n.out.sizes.n; ++d)
        at_least_0(n.out.sizes[d] - 1, m.out.sizes[d] - 1), at_least_0(operand(a, n)[d] - 1, operand(b, m)[d] - 1);
    } else if (what == operator_class::amax || what == operator_class::amin || what == operator_class::argmax) {
      for (index_t d : n.at[0])
        at_least_0(operand(a, n)[static_cast<int>(d)] - 1, operand(b, m)[static_cast<int>(d)] - 1,
                   sizes.read(numel(n.out.sizes), numel(m.out.sizes)));
    }
  }
};

namespace detail {
/// A reader that merges two graphs into the first: its numbers that differ from those of the other become entries of
/// its table.
struct graph_reader {
  graph& a;
  graph const& b;
  size_reader& sizes;
  sized_problem problem = sized_problem::none;

  constexpr void expect(bool same, sized_problem otherwise) {
    if (!same && problem == sized_problem::none) problem = otherwise;
  }
  constexpr sized_problem run() {
    expect(same_structure(), sized_problem::structure);
    for (std::size_t k = 0; k < a.constants.size() && problem == sized_problem::none; ++k)
      expect(same_bits(a.constants[k], b.constants[k]), sized_problem::value);
    if (problem != sized_problem::none) return problem;
    list<size_guard> guards;
    if (!sizes.only_known) guard_reader{sizes, guards}.graphs(a, b);
    for (std::size_t k = 0; k < a.nodes.size(); ++k) read(a.nodes[k], b.nodes[k]);
    expect(!sizes.failed, sized_problem::size);
    a.expressions = sizes.table, a.guards = guards;
    return problem;
  }

private:
  static constexpr bool same(list<int> const& x, list<int> const& y) {
    bool r = x.size() == y.size();
    for (std::size_t k = 0; r && k < x.size(); ++k) r = x[k] == y[k];
    return r;
  }
  static constexpr bool same(attributes const& x, attributes const& y) {
    bool r = x.count == y.count;
    for (int k = 0; r && k < x.count; ++k) r = x[k].n == y[k].n;
    return r;
  }
  constexpr bool same_structure() const {
    bool r = a.nodes.size() == b.nodes.size() && a.regions.size() == b.regions.size() &&
             a.constants.size() == b.constants.size() && same(a.edges, b.edges) && same(a.results, b.results);
    for (std::size_t k = 0; r && k < a.nodes.size(); ++k) {
      node const &x = a.nodes[k], &y = b.nodes[k];
      r = x.op == y.op && x.first == y.first && x.count == y.count && x.regions_first == y.regions_first &&
          x.regions_count == y.regions_count && x.out.type == y.out.type && x.out.sizes.n == y.out.sizes.n &&
          same(x.at, y.at);
    }
    for (std::size_t k = 0; r && k < a.regions.size(); ++k) {
      region const &x = a.regions[k], &y = b.regions[k];
      r = x.node_first == y.node_first && x.node_count == y.node_count && x.inputs == y.inputs &&
          x.result_first == y.result_first && x.result_count == y.result_count;
    }
    return r;
  }
  constexpr void read(node& x, node const& y) {
    expect(same_bits(x.value, y.value), sized_problem::value);
    sizes.read(x.out.sizes, y.out.sizes);
    for (int k = 0; k < x.at.count; ++k) sizes.read(x.at.fact[k], y.at[k]);
    if (x.op != &sym_numel_handle || is_run_time(x.at[0][0])) return;
    x.op = &constant_handle, x.value = static_cast<double>(x.at[0][0]), x.at = {}; // it depends on no symbol
  }
};
} // namespace detail
} // namespace fusion

namespace detail {
constexpr bool is_symbolic(graph_view const& g) { return g.sizes.expressions > 0; }

/// The symbols of a table, in their order.
constexpr fusion::symbol_names names_of(graph_view const& g) {
  fusion::symbol_names r;
  for (std::size_t k = 0; k < g.sizes.expressions; ++k)
    if (size_expression const& e = g.expressions[k]; e.op == size_op::symbol && r.count < fusion::symbol_names::most)
      r.names[r.count++] = e.b.number();
  return r;
}
/// The values of the expressions of a graph for a set of samples.
constexpr size_numbers sampled_sizes(graph_view const& g, int point) {
  bool few = names_of(g).count <= fusion::max_symbols;
  for (std::size_t k = 0; k < g.sizes.expressions; ++k) // of a file the numbers of symbols may be any
    if (size_expression const& e = g.expressions[k]; e.op == size_op::symbol)
      few = few && e.a.number() >= 0 && e.a.number() < fusion::max_symbols;
  if (!few) refuse::argument_is_invalid("graph", "there are samples for six symbolic sizes only");
  return {g.expressions, g.expressions + g.sizes.expressions, fusion::samples[point]};
}
/// True if some size is computed from symbols by more than sums and products.
constexpr bool has_quotients(graph_view const& g) {
  for (std::size_t k = 0; k < g.sizes.expressions; ++k)
    if (size_op const op = g.expressions[k].op; op != size_op::symbol && op != size_op::sum && op != size_op::product)
      return true;
  return false;
}
/// Returns a graph with samples in place of its symbols.
constexpr graph at_sample(graph const& g, int point) {
  size_numbers const sizes = sampled_sizes(g, point);
  graph r = g;
  for (node& n : r.nodes) n.out.sizes = sizes.of(n.out.sizes), n.at = sizes.of(n.at);
  r.expressions = {}, r.guards = {};
  return r;
}
constexpr void refuse_sizes(char const* what, fusion::sized_problem p) {
  using fusion::sized_problem;
  if (p == sized_problem::value)
    refuse::argument_is_invalid(what, "a symbolic size became a number of the function; use mean, or pass the count as "
                                      "an argument");
  if (p == sized_problem::structure)
    refuse::argument_is_invalid(what, "what the function does depends on a symbolic size; use one that does not branch "
                                      "on sizes, or a spec of numbers");
  if (p == sized_problem::size)
    refuse::argument_is_invalid(what, "a size is neither a number nor made of symbols by products, constants and sums "
                                      "of two, nor, where sizes are divided, one that the graph had before; give one "
                                      "of the symbols a number in the specs");
}
/// Applies a pass that computes with sizes to a graph with symbolic sizes: on both sets of samples, then reads the
/// results back as one graph.
template <class Pass>
constexpr graph on_samples(char const* name, graph const& g, Pass pass) {
  graph const first = at_sample(g, 0), second = at_sample(g, 1); // named, as all graphs are: g++ 12 loses temporaries
  graph a = pass(first, 0);
  graph const b = pass(second, 1);
  fusion::symbol_names const names = names_of(g);
  fusion::size_reader sizes(names.count, names.names);
  size_view const old(g.expressions.data());
  if (has_quotients(g)) { // only sizes known before: at the samples (n*m) // (n - 1) equals m + 1
    sizes.only_known = true;
    size_numbers const x = sampled_sizes(g, 0), y = sampled_sizes(g, 1);
    for (std::size_t k = 0; k < g.expressions.size(); ++k) {
      extent const e = extent::entry(static_cast<index_t>(k));
      sizes.know(x.of(e), y.of(e), sizes.table.imported(old, e));
    }
  }
  refuse_sizes(name, fusion::detail::graph_reader{a, b, sizes}.run());
  auto const now = [&](extent e) { return a.expressions.imported(old, e); };
  for (size_guard const& asked : g.guards)
    fusion::add_guard(a.guards, {asked.is, now(asked.left), now(asked.right), now(asked.unless)});
  return a;
}
} // namespace detail
} // namespace varve
