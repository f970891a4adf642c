// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/core/dtype.hpp>
#include <varve/core/list.hpp>
#include <varve/dispatch/boxed_function.hpp>
#include <varve/dispatch/handle.hpp>
#include <varve/shape/size_table.hpp>

/// @file
/// Graphs have two forms. Passes work on `graph`, which consists of lists; `static_graph` consists of arrays and
/// outlives the compiler. Both convert to a `graph_view`, on which `verify`, `equal`, printing, counting and iteration
/// are written once. `thaw` and `freeze` convert between the forms. Sizes and attributes are numbers, or entries of the
/// graph's own table of expressions (`extent`); a graph with such entries has symbolic sizes. Names of arguments and
/// results (`named.hpp`) are a pointer to a constant table. Passes copy the pointer; only printing and emission read
/// it.
namespace varve {

/// Whether the operators of a node are recorded for gradients. `as_around` keeps the mode in which the graph runs;
/// `off` and `on` restore the mode of the call (`no_grad`, `enable_grad`). `interpret` reads it.
enum class recording : unsigned char { as_around, off, on };

/// One operation of a graph. Its operands are the node numbers `graph::edges[first .. first + count)`, which are always
/// smaller than the node's own.
struct node {
  op_handle const* op = nullptr;
  attributes at{};
  meta out{};
  int first = 0;
  int count = 0;
  /// For a `constant` of rank 0 its value; for another `constant` the index in `graph::constants` where its elements
  /// begin; for a `placeholder` its number.
  double value = 0;
  /// The subgraphs of a higher-order node: `graph::regions[regions_first .. regions_first + regions_count)`.
  int regions_first = 0;
  int regions_count = 0;
  /// For a call of a custom function its index in `graph::functions`. The subgraph is what `forward` computes.
  int function = -1;
  recording mode = recording::as_around;
  /// True if a nested trace wrote the node while it used values of this trace for their shapes. Such a node is no part
  /// of the program (`without_scaffolds`).
  bool scaffold = false;
  /// True for a scaffold of zeros with the shape of a value that the trace did not know.
  bool unknown = false;
  /// True if the node is part of `forward` of a custom function that the compiler traced. The graph does not contain
  /// the function's own derivative, which may differ, so `interpret` refuses to differentiate the node.
  bool text = false;
  /// True for a placeholder that must be row-major, because the program writes through a reshape of it.
  bool by_rows = false;
};

/// A custom function, with rules of its own, that a graph made at run time calls. It receives the first `operands`
/// operands of the node; the others are for the subgraph alone.
struct kept_function {
  boxed_function call{};
  char const* name = "";
  int operands = 0;
};

/// A function inside a graph. Its nodes are contiguous, with the placeholders first. Region 0 is the whole program.
struct region {
  int node_first = 0, node_count = 0;
  int inputs = 0;
  /// The results are the node numbers `graph::results[result_first .. result_first + result_count)`.
  int result_first = 0, result_count = 0;
};

/// True if a node is a constant whose elements are in `graph::constants`.
constexpr bool is_array_constant(node const& n) { return n.op->kind == op_kind::constant && n.out.sizes.n > 0; }

/// The array sizes of a graph.
struct graph_sizes {
  std::size_t nodes, edges, results, regions, constants, expressions, guards;
};

/// Names for display, of a program's arguments and then of its results. If there are fewer, they belong to the first
/// values. `named` sets them.
struct graph_names {
  char const* const* text = nullptr;
  int count = 0;
};

/// A read-only view of a graph of either form, on which printing, verifying and comparing work.
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
  /// The number of the `k`-th operand of a node.
  constexpr int operand(node const& n, int k) const { return edges[n.first + k]; }
};

/// Queries that every form of a graph `G` supports: `for (node const& n : g)`, `g.count(vv::sigmoid)`,
/// `g.operations()`.
template <class G>
struct graph_questions {
  constexpr node const* begin() const { return static_cast<G const&>(*this).view().begin(); }
  constexpr node const* end() const { return static_cast<G const&>(*this).view().end(); }
  /// Returns the number of nodes of an operator, in all functions.
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
  /// Returns the symbolic size of this name, as it occurs in metas and attributes of the graph: `g.nodes[k].out.sizes
  /// == dims{g.symbol("n"), 3}`. Throws `value_error` if there is none.
  constexpr index_t symbol(char const* name) const {
    graph_view const g = static_cast<G const&>(*this).view();
    for (std::size_t k = 0; k < g.sizes.expressions; ++k)
      if (g.expressions[k].op == size_op::symbol && known_equal(g.expressions[k].b, varve::symbol(name)))
        return extent::entry(static_cast<index_t>(k)).number();
    refuse::argument_is_invalid("graph", "it has no symbolic size of this name");
  }
  /// Returns the number of nodes that compute something, which are neither placeholders nor constants.
  constexpr int operations() const {
    int n = 0;
    for (node const& nd : *this) n += nd.op->kind != op_kind::placeholder && nd.op->kind != op_kind::constant;
    return n;
  }
};

/// The only intermediate representation: a list of operations in execution order. The functions of higher-order
/// operators are further regions. Usable in constant expressions; `static_graph` is the form that outlives them.
struct graph : graph_questions<graph> {
  list<node> nodes;
  list<int> edges;
  list<int> results;
  list<region> regions;
  /// Elements of the constants of rank > 0, row-major, for all dtypes. Tracing refuses integers that `double` cannot
  /// represent.
  list<double> constants;
  /// The expressions to which symbolic sizes and attributes refer. `guards` are the conditions on sizes under which the
  /// graph was traced; it is not valid for other sizes.
  size_table expressions;
  list<size_guard> guards;
  graph_names names{};
  /// Custom functions that the graph calls; only graphs made at run time have them.
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

/// A graph of fixed size. It may be the value of a constant, and can be kept, printed, asserted on and executed.
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
  /// Returns the same graph in the form that passes work on.
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

/// True if a graph writes into values.
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

/// Freezes the graph that `Make{}()` computes. The graph is computed twice, once for its sizes.
template <class Make>
constexpr auto freeze(Make) {
  if constexpr (!evaluates<detail::frozen_sizes<Make>>) {
    static_assert((Make{}(), true),
                  "varve: this function cannot be traced; if a limit is named, pass -fconstexpr-steps=1000000000 "
                  "(clang) or -fconstexpr-ops-limit=1000000000 (g++)"); // the compiler's message states the reason
    return static_graph<graph_sizes{}>{};
  } else {
    constexpr graph_sizes s = detail::frozen_sizes<Make>::compute();
    return static_graph<s>(Make{}());
  }
}

} // namespace varve
