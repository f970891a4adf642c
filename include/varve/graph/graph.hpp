// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/core/dtype.hpp>
#include <varve/core/list.hpp>
#include <varve/dispatch/boxed_function.hpp>
#include <varve/dispatch/handle.hpp>
#include <varve/shape/size_table.hpp>

/// @file
/// Two forms: `graph` (lists, what passes work on) and `static_graph` (arrays, what outlives the compiler) show
/// themselves as a `graph_view`. `verify`, `equal`, printing, counting and iteration are written once, on that. `thaw`
/// and `freeze` convert. Sizes and attributes are numbers, or entries of the graph's own table of expressions
/// (`extent`): such a graph has symbolic sizes. Names of arguments and results (`named.hpp`) are a pointer to a
/// constant table: passes copy it, and only printing and emission look at it.
namespace varve {

/// Are operators of a node recorded for a gradient: as around it, or, whatever the mode there, as it was called
/// (`no_grad`, `enable_grad`)? Read by `interpret`.
enum class recording : unsigned char { as_around, off, on };

/// One operation of a graph. Operands are the node numbers `graph::edges[first .. first + count)`, always smaller than
/// the node's own.
struct node {
  op_handle const* op = nullptr;
  attributes at{};
  meta out{};
  int first = 0;
  int count = 0;
  /// Value of a rank-0 `constant` node, where the elements of another `constant` begin in `graph::constants`, or the
  /// number of a `placeholder`.
  double value = 0;
  /// First and last-but-one subgraph of a higher-order node: `graph::regions[regions_first .. + regions_count)`.
  int regions_first = 0;
  int regions_count = 0;
  /// Of a call of a custom function: which of `graph::functions` it is. Its subgraph is what `forward` computes.
  int function = -1;
  recording mode = recording::as_around;
  /// Written while a trace ran on values of this one for their shapes: no part of the program (`without_scaffolds`).
  bool scaffold = false;
  /// ... zeros of the shape of a value that the trace did not know.
  bool unknown = false;
  /// Written by `forward` of a custom function while the compiler traced: the text without the function, whose
  /// derivative is not that of the text. `interpret` refuses to be differentiated there.
  bool text = false;
  /// Of a placeholder: the program takes it as if it lay by rows, since it writes into what a reshape of it shows.
  bool by_rows = false;
};

/// A function with rules of its own that a graph made at run time calls: the first `operands` operands of the node are
/// given to it, what follows is for the subgraph alone.
struct kept_function {
  boxed_function call{};
  char const* name = "";
  int operands = 0;
};

/// A function inside a graph: its nodes are contiguous, its placeholders come first. Region 0 is the whole program.
struct region {
  int node_first = 0, node_count = 0;
  int inputs = 0;
  /// Results are the node numbers `graph::results[result_first .. + result_count)`.
  int result_first = 0, result_count = 0;
};

/// Is a node a constant whose elements lie in `graph::constants`?
constexpr bool is_array_constant(node const& n) { return n.op->kind == op_kind::constant && n.out.sizes.n > 0; }

/// Array sizes of a graph.
struct graph_sizes {
  std::size_t nodes, edges, results, regions, constants, expressions, guards;
};

/// Names for readers, of a program's arguments and then of its results; fewer are those of the first. `named` gives
/// them.
struct graph_names {
  char const* const* text = nullptr;
  int count = 0;
};

/// A graph of either form, to look at: printing, verifying and comparing are written once.
struct graph_view {
  node const* nodes;
  int const* edges;
  int const* results;
  region const* regions;
  double const* constants;
  size_expression const* expressions;
  size_guard const* guards;
  graph_sizes sizes;
  graph_names names;
  kept_function const* functions = nullptr;
  std::size_t function_count = 0;

  constexpr node const* begin() const { return nodes; }
  constexpr node const* end() const { return nodes + sizes.nodes; }
  /// Number of the `k`-th operand of a node.
  constexpr int operand(node const& n, int k) const { return edges[n.first + k]; }
};

/// What every form of a graph `G` answers: `for (node const& n : g)`, `g.count(vv::sigmoid)`, `g.operations()`.
template <class G>
struct graph_questions {
  constexpr node const* begin() const { return static_cast<G const&>(*this).view().begin(); }
  constexpr node const* end() const { return static_cast<G const&>(*this).view().end(); }
  /// Number of nodes of an operator, all functions included.
  template <class Op>
  constexpr int count(Op const&) const {
    static_assert(
        requires { sizeof(rules<Op>); },
        "varve: count: this operator is made of others, and what stands in a graph are those: softmax of amax, exp and "
        "sum, matmul of mm; graphs name higher-order operators, such as cond, in node.op->name");
    int n = 0;
    if constexpr (requires { sizeof(rules<Op>); })
      for (node const& nd : *this) n += nd.op == &varve::handle<Op>;
    return n;
  }
  /// The symbolic size of this name, as metas and attributes of the graph have it: `g.nodes[k].out.sizes ==
  /// dims{g.symbol("n"), 3}`. `value_error` where it has none.
  constexpr index_t symbol(char const* name) const {
    graph_view const g = static_cast<G const&>(*this).view();
    for (std::size_t k = 0; k < g.sizes.expressions; ++k)
      if (g.expressions[k].op == size_op::symbol && known_equal(g.expressions[k].b, varve::symbol(name)))
        return extent::entry(static_cast<index_t>(k)).number();
    refuse::argument_is_invalid("graph", "it has no symbolic size of this name");
  }
  /// Number of nodes that compute something: neither placeholders nor constants.
  constexpr int operations() const {
    int n = 0;
    for (node const& nd : *this) n += nd.op->kind != op_kind::placeholder && nd.op->kind != op_kind::constant;
    return n;
  }
};

/// The one intermediate representation: a list of operations in execution order, with the functions of higher-order
/// operators as further regions. Usable in constant expressions; `static_graph` is the form that outlives them.
struct graph : graph_questions<graph> {
  list<node> nodes;
  list<int> edges;
  list<int> results;
  list<region> regions;
  /// Elements of the constants of rank > 0, row-major, whatever their dtype. Integers that no double is have no place
  /// here and are refused while tracing.
  list<double> constants;
  /// What sizes and attributes that are no numbers are, and what the graph was made under: it is not for other sizes.
  size_table expressions;
  list<size_guard> guards;
  graph_names names{};
  /// Custom functions that it calls: of graphs made at run time only.
  list<kept_function> functions{};

  constexpr graph_view view() const {
    return {nodes.data(),
            edges.data(),
            results.data(),
            regions.data(),
            constants.data(),
            expressions.data(),
            guards.data(),
            {nodes.size(), edges.size(), results.size(), regions.size(), constants.size(), expressions.size(),
             guards.size()},
            names,
            functions.data(),
            functions.size()};
  }
  constexpr operator graph_view() const { return view(); }
};

/// A graph of known size: a value of a constant expression that may be kept, printed, asserted on and executed.
template <graph_sizes S>
struct static_graph : graph_questions<static_graph<S>> {
  node nodes[S.nodes ? S.nodes : 1]{};
  int edges[S.edges ? S.edges : 1]{};
  int results[S.results ? S.results : 1]{};
  region regions[S.regions ? S.regions : 1]{};
  double constants[S.constants ? S.constants : 1]{};
  size_expression expressions[S.expressions ? S.expressions : 1]{};
  size_guard guards[S.guards ? S.guards : 1]{};
  graph_names names{};
  static constexpr graph_sizes sizes = S;

  constexpr static_graph() = default;
  constexpr explicit static_graph(graph const& g) : names(g.names) {
    for (std::size_t k = 0; k < S.nodes; ++k) nodes[k] = g.nodes[k];
    for (std::size_t k = 0; k < S.edges; ++k) edges[k] = g.edges[k];
    for (std::size_t k = 0; k < S.results; ++k) results[k] = g.results[k];
    for (std::size_t k = 0; k < S.regions; ++k) regions[k] = g.regions[k];
    for (std::size_t k = 0; k < S.constants; ++k) constants[k] = g.constants[k];
    for (std::size_t k = 0; k < S.expressions; ++k) expressions[k] = g.expressions.data()[k];
    for (std::size_t k = 0; k < S.guards; ++k) guards[k] = g.guards[k];
  }
  constexpr graph_view view() const {
    return {nodes, edges, results, regions, constants, expressions, guards, S, names};
  }
  constexpr operator graph_view() const { return view(); }
  /// The same graph in the form that passes work on.
  constexpr graph thaw() const {
    graph g;
    g.nodes = list<node>(nodes, nodes + S.nodes), g.edges = list<int>(edges, edges + S.edges),
    g.results = list<int>(results, results + S.results);
    g.regions = list<region>(regions, regions + S.regions),
    g.constants = list<double>(constants, constants + S.constants);
    g.expressions = size_table(expressions, expressions + S.expressions);
    g.guards = list<size_guard>(guards, guards + S.guards);
    g.names = names;
    return g;
  }
};

/// Does a graph write into values?
constexpr bool has_mutation(graph_view g) {
  for (node const& n : g)
    if (n.op->kind == op_kind::mutation) return true;
  return false;
}

namespace detail {
template <class Make>
struct frozen_sizes {
  static constexpr graph_sizes compute() {
    graph const g = Make{}();
    return g.view().sizes;
  }
};
} // namespace detail

/// Freezes the graph that `Make{}()` computes: it is computed twice, once for its sizes.
template <class Make>
constexpr auto freeze(Make) {
  if constexpr (!evaluates<detail::frozen_sizes<Make>>) {
    static_assert((Make{}(), true),
                  "varve: this function cannot be traced; if a limit is named, pass -fconstexpr-steps=1000000000 "
                  "(clang) or -fconstexpr-ops-limit=1000000000 (g++)"); // the compiler tells why
    return static_graph<graph_sizes{}>{};
  } else {
    constexpr graph_sizes s = detail::frozen_sizes<Make>::compute();
    return static_graph<s>(Make{}());
  }
}

} // namespace varve
