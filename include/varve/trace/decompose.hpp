// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/table.hpp>
#include <varve/pass/rewriter.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/trace/trace.hpp>

#include <tuple>

/// @file
/// Decomposition of operators. The node of an operator is replaced by the nodes that result from tracing a function on
/// the metas of its operands. The same function on proxies serves compile time and run time; it is also instantiated on
/// tensors, for run time only.
namespace varve {

namespace refuse {
[[noreturn]] VARVE_COLD inline void decomposition_calls_the_operator_that_it_replaces(char const* op) {
  refuse::with<value_error>((std::string("varve: decompose: the decomposition of ") + op + " calls " + op +
                             " again, itself or through another decomposition; write it in other operators")
                                .c_str());
}
[[noreturn]] VARVE_COLD inline void decomposition_gives_another_dtype_or_shape(char const* op, meta const& found,
                                                                               meta const& expected) {
  std::string const text = std::string("varve: decompose: the decomposition of ") + op + " gives " + name(found.type) +
                           to_string(found.sizes) + ", the operator gives " + name(expected.type) +
                           to_string(expected.sizes);
  if (found.type != expected.type) refuse::with<dtype_error>(text.c_str());
  refuse::with<shape_error>(text.c_str());
}
[[noreturn]] VARVE_COLD inline void decomposition_writes_into_its_operand(char const* op) {
  refuse::with<value_error>((std::string("varve: decompose: the decomposition of ") + op +
                             " writes into its operand; write into a clone of it")
                                .c_str());
}
} // namespace refuse

/// An operator and a function that expresses it by other operators: see `decomposition`.
template <class Tag, class F>
struct operator_decomposition {
  using tag = Tag;
  [[no_unique_address]] F f;
};
/// Returns a replacement of an operator, for `decompose`: `decomposition<sigmoid_t>([](auto const& x) { return
/// reciprocal(add(exp(neg(x)), 1)); })`. The function receives the operands, or `attributes const&` and the operands.
/// It returns one value with the dtype and shape of the operator's result. A user-defined operator is named by its tag,
/// too. Composites (`gelu`, `softmax`) cannot be decomposed, because graphs contain only the operators that they call.
template <class Tag, class F>
constexpr operator_decomposition<Tag, F> decomposition(F f) {
  static_assert(
      requires { rules<Tag>::arity; }, "varve: decompose: no node of a graph is this operator: a composite is what its "
                                       "body calls, a higher-order operator has functions of its own");
  if constexpr (requires { rules<Tag>::arity; })
    static_assert(rules<Tag>::kind != op_kind::mutation,
                  "varve: decompose: an in-place operator has no value to put in its place; name the operator that "
                  "computes what it writes");
  return {static_cast<F&&>(f)};
}

/// A table of several decompositions (PyTorch: `decomposition_table`).
template <class... D>
struct decomposition_list {
  std::tuple<D...> all;
  constexpr decomposition_list const& table() const { return *this; }
};
namespace detail {
template <class Tag, class F>
constexpr std::tuple<operator_decomposition<Tag, F>> decompositions_in(operator_decomposition<Tag, F> const& d) {
  return std::tuple<operator_decomposition<Tag, F>>(d);
}
template <class T>
  requires requires(T const& t) { t.table(); }
constexpr auto decompositions_in(T const& t) {
  return t.table().all;
}
template <class... D>
constexpr decomposition_list<D...> list_of_decompositions(std::tuple<D...> const& all) {
  return {all};
}
} // namespace detail

/// Joins decompositions and tables of decompositions. If two are for the same operator, the later one counts.
template <class... D>
constexpr auto decomposition_table(D const&... d) {
  return detail::list_of_decompositions(std::tuple_cat(detail::decompositions_in(d)...));
}

namespace detail {
/// Calls a decomposition on operands that are values of a trace, or tensors.
template <class F, class... X>
constexpr auto call_decomposition(F const& f, [[maybe_unused]] attributes const& at, X const&... x) {
  constexpr bool with_attributes = std::is_invocable_v<F const&, attributes const&, X const&...>,
                 without = !with_attributes && std::is_invocable_v<F const&, X const&...>;
  static_assert(
      with_attributes || without,
      "varve: decompose: the function must take the operands of its operator, or attributes const& and the operands");
  if constexpr (with_attributes) return f(at, x...);
  else if constexpr (without) return f(x...);
  else return nth<0>(x..., 0);
}
/// Instantiates the tensor tables of the operators used, so that the graph can be interpreted or fused. Never called.
template <class Tag, class F>
void decomposition_on_tensors(operator_decomposition<Tag, F> const& d, attributes const& at, boxed_args const& x) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (void)call_decomposition(d.f, at, x[static_cast<int>(K)]...);
  }(std::make_index_sequence<static_cast<std::size_t>(rules<Tag>::arity)>{});
}
template <class... D>
void decomposition_operators() {
  ((void)&decomposition_on_tensors<typename D::tag, decltype(D::f)>, ...);
  (void)registered_table<dependent<to_t, D...>, 1>(), (void)registered_table<dependent<expand_t, D...>, 1>(),
      (void)registered_table<dependent<arange_t, D...>, 2>(); // traces convert, repeat and count with these operators
}

template <class... D>
class decomposer {
public:
  /// Creates a decomposer. Sizes from `least_sample` on are samples of symbolic sizes; 0 means that there are none.
  constexpr explicit decomposer(std::tuple<D...> const& all, index_t least_sample = 0)
      : all_(all), least_sample_(least_sample) {}

  /// Returns the decomposed graph. Linear in the number of nodes created. Functions that decompositions add come after
  /// all others.
  constexpr graph run(graph const& g) {
    rewriter w(g);
    graph functions;
    graph r = w.run([&](int n) { return each(w, functions, n, std::index_sequence_for<D...>{}); }, [] {});
    append(r, functions, 0, static_cast<int>(functions.regions.size()), 0);
    return r;
  }

private:
  std::tuple<D...> const& all_;
  index_t least_sample_;
  list<op_handle const*> open_; // the operators being decomposed

  template <std::size_t... K>
  constexpr int each(rewriter& w, graph& functions, int n, std::index_sequence<K...>) {
    node const& nd = w.from.nodes[n];
    int made = -1;
    bool const found = (replaced<sizeof...(K) - 1 - K>(w, functions, nd, made) || ...); // the last one first
    return found ? made : w.copy(nd);
  }
  template <std::size_t K>
  constexpr bool replaced(rewriter& w, graph& functions, node const& nd, int& made) {
    using Tag = typename std::tuple_element_t<K, std::tuple<D...>>::tag;
    if (nd.op != &handle<Tag>) return false;
    graph const traced = trace_of<Tag>(w.from, nd, std::get<K>(all_).f,
                                       std::make_index_sequence<static_cast<std::size_t>(rules<Tag>::arity)>{});
    open_.push_back(nd.op);
    for (op_handle const* op : open_)
      for (node const& called : traced.nodes)
        if (called.op == op) refuse::decomposition_calls_the_operator_that_it_replaces(op->name);
    graph const whole = run(traced); // may call other operators of the table
    open_.pop_back();
    made = put(w, functions, whole, nd);
    return true;
  }
  /// Traces a decomposition for the operands of a node. Constants among them are numbers, as they were when the
  /// operator was called.
  template <class Tag, class F, std::size_t... K>
  constexpr graph trace_of(graph const& g, node const& nd, F const& f, std::index_sequence<K...>) const {
    graph_builder b;
    b.sizes_are_samples(least_sample_);
    // braces: evaluated in order
    proxy const x[] = {operand(b, g.nodes[g.edges[nd.first + static_cast<int>(K)]])..., proxy{}};
    auto const y = call_decomposition(f, nd.at, x[K]...);
    static_assert(value<decltype(y)>, "varve: decompose: the function must return one value");
    proxy const r = as_proxy(y, &b);
    if (!(r.info == nd.out)) refuse::decomposition_gives_another_dtype_or_shape(Tag::op_name, r.info, nd.out);
    b.result(node_in(b, r));
    graph traced = static_cast<graph_builder&&>(b).finish();
    if (has_mutation(traced)) traced = functionalized(traced);
    if (has_mutation(traced)) refuse::decomposition_writes_into_its_operand(Tag::op_name);
    return traced;
  }
  static constexpr proxy operand(graph_builder& b, node const& from) {
    int const id = b.input(from.out);
    if (from.op->kind == op_kind::constant && from.out.sizes.n == 0)
      return {nullptr, -1, {from.out.type, {}, true}, from.value, &b};
    return {&b, id, {from.out.type, from.out.sizes, false}, 0};
  }
  /// Replaces a node by the nodes of a function. Returns the number of its result.
  static constexpr int put(rewriter& w, graph& functions, graph const& f, node const& nd) {
    region const& body = f.regions[0];
    int const inner = static_cast<int>(w.from.regions.size() + functions.regions.size()); // of its first function
    list<int> now(static_cast<std::size_t>(body.node_count), -1), in;
    for (int n = 0; n < body.node_count; ++n) {
      node c = f.nodes[n];
      if (c.op->kind == op_kind::placeholder) {
        now[n] = w.operand(nd, static_cast<int>(c.value));
        continue;
      }
      in.clear();
      for (int k = 0; k < c.count; ++k) in.push_back(now[f.edges[c.first + k]]);
      if (is_array_constant(c)) take_constants(w.to, f, c);
      if (c.regions_count) c.regions_first += inner - 1;
      if (nd.mode != recording::as_around) c.mode = nd.mode; // as the operator was called
      c.text = c.text || nd.text;
      now[n] = w.append(c, in.data());
    }
    append(functions, f, 1, static_cast<int>(f.regions.size()), inner);
    return now[f.results[body.result_first]];
  }
};

template <class... D>
constexpr graph decomposed(graph const& g, decomposition_list<D...> const& table) {
  auto const run = [&](graph const& of, index_t least_sample) {
    decomposer<D...> d(table.all, least_sample); // a named variable: g++ 12 loses temporaries that own storage
    if (!has_mutation(of)) return d.run(of);
    graph const pure = functionalized(of);
    return d.run(pure);
  };
  if (!is_symbolic(g)) return run(g, 0);
  return on_samples("decompose", g, [&](graph const& of, int point) { return run(of, fusion::least_sample(point)); });
}
} // namespace detail

/// Returns the same program with each operator of a table replaced by what its decomposition calls for the operands'
/// dtypes and shapes. Functions of higher-order operators are included, and the replacement repeats until no operator
/// of the table remains (PyTorch: `run_decompositions`). For example `decompose(g, decomposition<sigmoid_t>(f),
/// core_decompositions)`. If two decompositions are for one operator, the later one counts. In-place operators are made
/// functional first. Throws `dtype_error` or `shape_error` if a replacement differs from its operator in dtype or
/// shape, and `value_error` if a decomposition calls its own operator. Linear in the number of nodes created.
template <class G, class... D>
  requires std::is_same_v<G, graph>
constexpr graph decompose(G const& g, D const&... d) {
  auto const table = decomposition_table(d...);
  if (!std::is_constant_evaluated())
    []<class... E>(decomposition_list<E...> const&) { detail::decomposition_operators<E...>(); }(table);
  return detail::decomposed(g, table);
}
/// Returns a traced constant, decomposed, for `freeze([] { return decompose(g, ...); })`. Nothing is compiled for
/// tensors.
template <graph_sizes S, class... D>
constexpr graph decompose(static_graph<S> const& g, D const&... d) {
  auto const table = decomposition_table(d...);
  graph const whole = g.thaw();
  return detail::decomposed(whole, table);
}

/// Returns a function like `make_fx(f)` whose graph is decomposed: `make_fx(f, decompositions...)(x...)` (PyTorch:
/// `make_fx(f, decomposition_table=...)`).
template <class F, class... D>
  requires(sizeof...(D) > 0)
constexpr auto make_fx(F f, D const&... d) {
  return [f = make_fx_function<F>(static_cast<F&&>(f)), table = decomposition_table(d...)](auto const&... x) {
    dependent<graph, F> const g = f(x...);
    return decompose(g, table);
  };
}

} // namespace varve
