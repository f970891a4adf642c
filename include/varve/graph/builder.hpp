// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

namespace varve {

namespace detail {
/// The shape rule of operators that exist only in graphs.
constexpr meta no_shape(attributes const&, meta const*, int) { return {}; }
} // namespace detail
/// The operator of inputs.
inline constexpr op_handle placeholder_handle{"placeholder", op_kind::placeholder, 0, &detail::no_shape};
/// The operator of constants.
inline constexpr op_handle constant_handle{"constant", op_kind::constant, 0, &detail::no_shape};

/// Selects one of several results of a higher-order node; the attribute is {k}.
inline constexpr op_handle getitem_handle{.name = "getitem",
                                          .kind = op_kind::hop,
                                          .arity = 1,
                                          .shape = &detail::no_shape,
                                          .planned_as = operator_class::getitem};

/// The number of elements as a value, where it depends on a symbolic size; the attribute is {the number}. Only graphs
/// traced for sample sizes, and graphs read back from them (`graph/read_sizes.hpp`), contain it.
inline constexpr op_handle sym_numel_handle{.name = "sym_numel",
                                            .kind = op_kind::factory,
                                            .arity = 0,
                                            .shape = &detail::no_shape,
                                            .planned_as = operator_class::count};

namespace detail {
/// Returns a number as a graph stores it. Throws for integers that `double` cannot represent, which would change.
template <class T>
constexpr double held(T v) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    std::uint64_t n = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
    while (n > std::uint64_t{1} << 53 && n % 2 == 0) n /= 2;
    if (n > std::uint64_t{1} << 53)
      refuse::argument_is_invalid("trace", "an integer constant beyond 2^53 cannot be traced; pass it as an argument");
  }
  return static_cast<double>(v);
}
/// Copies the elements of an array constant of `from` into `into`, and makes `n` refer to the copy.
constexpr void take_constants(graph& into, graph const& from, node& n) {
  auto const first = static_cast<std::ptrdiff_t>(n.value);
  n.value = static_cast<double>(into.constants.size());
  for (index_t e = 0, all = numel(n.out.sizes); e < all; ++e) into.constants.push_back(from.constants[first + e]);
}
/// Appends regions [from, to) of `g` with their nodes. Region k >= 1 of `g` gets the number `rest + k - 1`; if `rest`
/// is 0, all numbers stay.
constexpr void append(graph& into, graph const& g, int from, int to, int rest) {
  for (int r = from; r < to; ++r) {
    region g_r = g.regions[static_cast<std::size_t>(r)];
    int const shift = static_cast<int>(into.nodes.size()) - g_r.node_first;
    for (int n = g_r.node_first; n < g_r.node_first + g_r.node_count; ++n) {
      node nd = g.nodes[static_cast<std::size_t>(n)];
      int const edge = static_cast<int>(into.edges.size());
      for (int k = 0; k < nd.count; ++k) into.edges.push_back(g.edges[static_cast<std::size_t>(nd.first + k)] + shift);
      nd.first = edge;
      if (is_array_constant(nd)) take_constants(into, g, nd);
      if (nd.regions_count && rest > 0) nd.regions_first = rest + nd.regions_first - 1;
      if (nd.function >= 0) {
        into.functions.push_back(g.functions[nd.function]);
        nd.function = static_cast<int>(into.functions.size()) - 1;
      }
      into.nodes.push_back(nd);
    }
    int const result = static_cast<int>(into.results.size());
    for (int k = 0; k < g_r.result_count; ++k)
      into.results.push_back(g.results[static_cast<std::size_t>(g_r.result_first + k)] + shift);
    g_r.node_first += shift;
    g_r.result_first = result;
    into.regions.push_back(g_r);
  }
}
} // namespace detail

namespace detail {
/// Marks the functions that region `r` calls, and those that they call.
constexpr void mark_called(graph const& g, int r, list<char>& called) {
  region const& own = g.regions[static_cast<std::size_t>(r)];
  for (int n = own.node_first; n < own.node_first + own.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    for (int k = 0; k < nd.regions_count; ++k)
      if (char& is_called = called[nd.regions_first + k]; !is_called) {
        is_called = 1;
        mark_called(g, nd.regions_first + k, called);
      }
  }
}
} // namespace detail

/// Returns region `r` of a graph as a graph of its own whose program it is. The functions inside keep their numbers;
/// those that it does not call are empty.
constexpr graph function_of(graph const& g, int r) {
  graph out;
  out.expressions = g.expressions, out.guards = g.guards;
  list<char> called(g.regions.size(), 0);
  detail::mark_called(g, r, called);
  detail::append(out, g, r, r + 1, 0);
  for (int k = 1; k < static_cast<int>(g.regions.size()); ++k)
    if (called[k]) {
      detail::append(out, g, k, k + 1, 0);
    } else {
      region none;
      none.node_first = static_cast<int>(out.nodes.size()), none.result_first = static_cast<int>(out.results.size());
      out.regions.push_back(none);
    }
  return out;
}

/// A builder for one function of a graph while it is traced. Builders of the functions inside higher-order operators
/// form a stack. If an inner function uses a value of an outer one, the value becomes one additional input of the inner
/// function (lifting).
class graph_builder {
public:
  constexpr explicit graph_builder(graph_builder* outer = nullptr) : outer_(outer), root_(outer ? outer->root_ : this) {
    root_->current_ = this;
  }
  graph_builder(graph_builder const&) = delete;
  graph_builder& operator=(graph_builder const&) = delete;
  constexpr ~graph_builder() { root_->current_ = outer_; }

  /// The least size that is a sample for a symbolic one; all sizes from this one on are samples. 0 if there are none.
  constexpr index_t least_sample() const { return root_->least_sample_; }
  constexpr void sizes_are_samples(index_t least) { root_->least_sample_ = least; }

  /// True if traced values decide branches of C++, all as false, to find out that nothing else cannot be traced.
  constexpr bool follows_branches() const { return root_->follows_branches_; }
  constexpr void follow_branches() { root_->follows_branches_ = true; }

  /// The builder of the function that is being traced.
  constexpr graph_builder& current() { return *root_->current_; }

  constexpr int input(meta const& m) {
    node n;
    n.op = &placeholder_handle;
    n.out = m;
    n.out.number = false;
    n.value = static_cast<double>(inputs_);
    ++inputs_;
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int constant(dtype type, double v) {
    nodes_.push_back({&constant_handle, no_attributes, {type, {}}, 0, 0, v});
    nodes_.back().scaffold = scaffolds_ > 0;
    return static_cast<int>(nodes_.size()) - 1;
  }
  /// Writes a constant of rank > 0 with these elements.
  template <class T>
  constexpr int constant(dtype type, dims const& sizes, T const* elements) {
    node n;
    n.op = &constant_handle;
    n.out = {type, sizes};
    n.value = static_cast<double>(constants_.size());
    for (index_t e = 0, all = numel(sizes); e < all; ++e) constants_.push_back(detail::held(elements[e]));
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int add_node(op_handle const* op, attributes const& at, int const* operands, int count, meta const& out) {
    nodes_.push_back({op, at, {out.type, out.sizes}, static_cast<int>(edges_.size()), count});
    nodes_.back().scaffold = scaffolds_ > 0;
    nodes_.back().text = root_->texts_ > 0;
    for (int k = 0; k < count; ++k) edges_.push_back(operands[k]);
    return static_cast<int>(nodes_.size()) - 1;
  }
  /// Returns the number in this function of a node of an outer function, which becomes an additional input once.
  constexpr int lift(graph_builder const* owner, int id, meta const& m) {
    if (owner == this) return id;
    if (!outer_) refuse::argument_is_invalid("trace", "a value of another trace was used; pass it as an argument");
    int const outer_id = outer_->lift(owner, id, m);
    for (std::size_t k = 0; k < lifted_.size(); k += 2)
      if (lifted_[k] == outer_id) return lifted_[k + 1];
    int const mine = input(m);
    lifted_.push_back(outer_id);
    lifted_.push_back(mine);
    return mine;
  }
  constexpr void result(int id) { results_.push_back(id); }
  /// Returns a node written so far; `operand_of` returns the number of its first operand.
  constexpr node const& written(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  constexpr int count() const { return static_cast<int>(nodes_.size()); }
  constexpr int operand_of(int id) const { return edges_[static_cast<std::size_t>(written(id).first)]; }
  /// Moves all inputs before the operators, in the order of their numbers. Lifting may have added inputs in between.
  constexpr void inputs_first() {
    list<node> sorted;
    list<int> now(nodes_.size(), 0);
    for (int k = 0; k < inputs_; ++k)
      for (std::size_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n].op == &placeholder_handle && static_cast<int>(nodes_[n].value) == k) {
          now[n] = static_cast<int>(sorted.size());
          sorted.push_back(nodes_[n]);
        }
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (nodes_[n].op != &placeholder_handle) {
        now[n] = static_cast<int>(sorted.size());
        sorted.push_back(nodes_[n]);
      }
    for (int& e : edges_) e = now[static_cast<std::size_t>(e)];
    for (int& r : results_) r = now[static_cast<std::size_t>(r)];
    nodes_ = sorted;
  }
  /// Ends the tracing of an inner function. Further operators belong to the outer function.
  constexpr void close() { root_->current_ = outer_; }

  /// Writes a node with one or two inner functions, whose builders are closed. Values that they lifted become further
  /// operands: the union, in order of first use. The results are those of the first function.
  constexpr int emit_functions(op_handle const* op, attributes const& at, int const* operands, int count,
                               graph_builder& a, graph_builder* b = nullptr) {
    list<int> all(operands, operands + count), lifted;
    int const functions = b ? 2 : 1;
    graph_builder* const inner[] = {&a, b};
    for (int q = 0; q < functions; ++q)
      for (std::size_t k = 0; k < inner[q]->lifted_.size(); k += 2) {
        bool known = false;
        for (int id : lifted) known = known || id == inner[q]->lifted_[k];
        if (!known) lifted.push_back(inner[q]->lifted_[k]);
      }
    for (int id : lifted) all.push_back(id);
    for (int q = 0; q < functions; ++q) inner[q]->take_inputs(lifted, *this);
    graph const ga = a.finish();
    int const first = 1 + static_cast<int>(inner_.regions.size()), rest = first + functions,
              inside_a = static_cast<int>(ga.regions.size());
    detail::append(inner_, ga, 0, 1, rest);
    if (b) { // a named graph: g++ 12 loses temporaries that hold storage
      graph const gb = b->finish();
      int const rest_of_b = rest + inside_a - 1;
      detail::append(inner_, gb, 0, 1, rest_of_b);
      detail::append(inner_, ga, 1, inside_a, rest);
      detail::append(inner_, gb, 1, static_cast<int>(gb.regions.size()), rest_of_b);
    } else {
      detail::append(inner_, ga, 1, inside_a, rest);
    }
    meta const out = ga.results.empty() ? meta{} : ga.nodes[static_cast<std::size_t>(ga.results[0])].out;
    int const id = add_node(op, at, all.data(), static_cast<int>(all.size()), out);
    nodes_[static_cast<std::size_t>(id)].regions_first = first;
    nodes_[static_cast<std::size_t>(id)].regions_count = functions;
    several_ = ga.regions[0].result_count;
    return id;
  }
  /// Records that a node calls a custom function, whose `forward` is its subgraph.
  constexpr void keep(int id, kept_function const& f) {
    functions_.push_back(f);
    nodes_[static_cast<std::size_t>(id)].function = static_cast<int>(functions_.size()) - 1;
  }
  /// Marks a node as part of the traced body of a custom function (`node::text`).
  constexpr void is_text(int id) { nodes_[static_cast<std::size_t>(id)].text = true; }
  constexpr int is_unknown(int id) {
    nodes_[static_cast<std::size_t>(id)].unknown = true;
    return id;
  }
  constexpr void called_in(int id, recording mode) { nodes_[static_cast<std::size_t>(id)].mode = mode; }
  /// Counts open scaffolds. Nodes written while the count is not 0 belong to the program only if it uses them.
  constexpr void count_scaffolds(int by) { scaffolds_ += by; }
  /// Counts open bodies of custom functions. Nodes written while the count is not 0 are marked as `node::text`.
  constexpr void count_texts(int by) { root_->texts_ += by; }
  constexpr bool writes_scaffolds() const { return scaffolds_ > 0; }
  constexpr int scaffolds() const { return scaffolds_; }
  /// Returns the k-th result of a node just written by `emit_functions`. A single result is the node itself.
  constexpr int result_of(int id, int k, meta const& m) {
    if (several_ == 1) {
      nodes_[static_cast<std::size_t>(id)].out = m;
      return id;
    }
    return add_node(&getitem_handle, attributes(dims{k}), &id, 1, m);
  }

  /// Returns the finished function, followed by its inner functions.
  constexpr graph finish() const& {
    graph g;
    g.nodes = nodes_, g.edges = edges_, g.results = results_, g.constants = constants_, g.functions = functions_;
    end(g);
    return g;
  }
  constexpr graph finish() && {
    graph g;
    g.nodes = static_cast<list<node>&&>(nodes_), g.edges = static_cast<list<int>&&>(edges_),
    g.results = static_cast<list<int>&&>(results_), g.constants = static_cast<list<double>&&>(constants_),
    g.functions = static_cast<list<kept_function>&&>(functions_);
    end(g);
    return g;
  }

private:
  graph_builder* outer_;
  graph_builder* root_;
  graph_builder* current_ = nullptr; // set in the root only: the innermost open function
  constexpr void end(graph& g) const {
    g.regions.push_back({0, static_cast<int>(g.nodes.size()), inputs_, 0, static_cast<int>(g.results.size())});
    detail::append(g, inner_, 0, static_cast<int>(inner_.regions.size()), 0);
  }
  /// Adds inputs to the function so that it has one per lifted value of `outer`. They follow its arguments in that
  /// order, and all of them precede the operators.
  constexpr void take_inputs(list<int> const& lifted, graph_builder const& outer) {
    int const arguments = inputs_ - static_cast<int>(lifted_.size() / 2);
    for (std::size_t u = 0; u < lifted.size(); ++u) {
      int mine = -1;
      for (std::size_t k = 0; k < lifted_.size(); k += 2)
        if (lifted_[k] == lifted[u]) mine = lifted_[k + 1];
      if (mine < 0) mine = input(outer.nodes_[static_cast<std::size_t>(lifted[u])].out);
      nodes_[static_cast<std::size_t>(mine)].value = static_cast<double>(arguments + static_cast<int>(u));
    }
    inputs_first();
  }

  index_t least_sample_ = 0;      // set in the root only
  bool follows_branches_ = false; // set in the root only
  int inputs_ = 0, several_ = 1, scaffolds_ = 0, texts_ = 0;
  graph inner_; // finished inner functions; their regions are numbered as in the finished graph
  list<node> nodes_;
  list<int> edges_, results_, lifted_;
  list<double> constants_;
  list<kept_function> functions_;
};

} // namespace varve
