// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/graph/read_sizes.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/trace/proxy.hpp>

namespace varve {

/// A name as a template argument, as in `dim<"n">`.
struct dim_name {
  char text[8]{};
  template <std::size_t N>
  consteval dim_name(char const (&s)[N]) {
    static_assert(N <= 8, "varve: the name of a symbolic dimension has at most 7 characters");
    for (std::size_t k = 0; k + 1 < N; ++k) text[k] = s[k];
  }
};
/// A symbolic size in a `spec`. Equal names mean equal sizes.
template <dim_name Name>
inline constexpr index_t dim = symbol(Name.text);

/// The dtype and shape of an argument to trace with: `spec<float, 8, 3>`, `spec<float>` for a scalar, `spec<float,
/// dim<"n">>` with a symbolic size. `spec` is an object; its type is `spec_t<float, 8, 3>`.
template <class T, index_t... D>
struct spec_t {
  static constexpr bool fixed = (!is_symbol(D) && ...); // all sizes are numbers
  static constexpr meta info() { return {dtype_of_type<T>(), ints<D...>::to_dims(), false}; }
};
template <class T, index_t... D>
inline constexpr spec_t<T, D...> spec{};

/// Traces a function of traced values into a new builder.
template <class F, class... M>
constexpr graph trace_graph_into(graph_builder& b, F const& f, M const&... m) {
  std::tuple const in{proxy{&b, b.input(m), meta{m.type, m.sizes, false}, 0}...}; // braces: evaluated in order
  auto const y = detail::call_with(f, in, std::index_sequence_for<M...>{});
  tree_for_each(
      [&](auto const& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        static_assert(value<V>, "varve: trace: the function must return values");
        static_assert(level_of<V> == 0, "varve: trace: the result is seen through a transform (perturbation confusion "
                                        "through a capture); pass the outer value as an argument");
        b.result(detail::node_in(b, detail::as_proxy(v, &b)));
      },
      y);
  graph g = static_cast<graph_builder&&>(b).finish(); // moved out: copying thousands of nodes is slow in the compiler
  if (has_mutation(g)) return detail::functionalized(g);
  return g;
}
/// Traces a function for one set of samples of the symbolic sizes.
template <class F, class... M>
constexpr graph trace_sample(F const& f, fusion::symbol_names const& names, int point, M const&... m) {
  graph_builder b;
  b.sizes_are_samples(fusion::least_sample(point));
  return trace_graph_into(b, f, meta{m.type, names.sampled(m.sizes, point), m.number}...);
}

/// Traces a function to find out whether it can be traced (`fuse`), or could be if branches were no obstacle.
template <bool Branches, class F, class... M>
constexpr graph trace_trial(F const& f, M const&... m) {
  graph_builder b;
  if (Branches) b.follow_branches();
  return trace_graph_into(b, f, m...);
}

namespace detail {
/// A trace with symbolic sizes, or the reason why there is none.
struct symbolic_trace {
  graph result{};
  fusion::sized_problem problem = fusion::sized_problem::none;

  template <class F, class... M>
  constexpr symbolic_trace(F const& f, fusion::symbol_names const& names, M const&... m)
      : result(trace_sample(f, names, 0, m...)) {
    graph const second = trace_sample(f, names, 1, m...);
    fusion::size_reader sizes(names.count, names.names);
    fusion::detail::graph_reader reader{result, second, sizes};
    problem = reader.run();
  }
};
} // namespace detail

/// Traces a function of traced values into a graph, in a constant expression or at run time. The result may be a tree;
/// its leaves become the graph's results in order. If a `meta` has names for sizes, as those of specs do, the function
/// runs twice, for two sets of samples. Both traces are then combined into one; throws `value_error` if they do not
/// match.
template <class F, class... M>
constexpr graph trace_graph(F const& f, M const&... m) {
  fusion::symbol_names names;
  (names.add(m.sizes), ...);
  if (names.count == 0) {
    graph_builder b;
    return trace_graph_into(b, f, m...);
  }
  if (names.count > fusion::max_symbols)
    refuse::argument_is_invalid("trace", "there are more than six symbols; give some of them numbers");
  detail::symbolic_trace t(f, names, m...); // a named variable: g++ 12 loses temporaries that own storage
  detail::refuse_sizes("trace", t.problem);
  return static_cast<graph&&>(t.result);
}

namespace detail {
/// Traces `F` for specs with symbolic sizes.
template <class F, class... S>
struct trace_of_symbols {
  static constexpr fusion::symbol_names names = [] {
    fusion::symbol_names r;
    (r.add(S::info().sizes), ...);
    return r;
  }();
  struct extents {
    graph_sizes sizes;
    fusion::sized_problem problem;
  };
  static constexpr symbolic_trace run() { return {F{}, names, S::info()...}; }
  static constexpr extents compute() { // without run(), so that compiler messages stay short
    symbolic_trace const t{F{}, names, S::info()...};
    return {t.result.view().sizes, t.problem};
  }
};
/// Returns the trace as a constant. Reports once what cannot be traced.
template <class Make>
constexpr auto frozen_symbols() {
  using fusion::sized_problem;
  static_assert(Make::names.count <= fusion::max_symbols,
                "varve: trace: the specs have too many symbols; give some of them numbers");
  if constexpr (Make::names.count > fusion::max_symbols) return static_graph<graph_sizes{}>{};
  else if constexpr (!evaluates<Make>) {
    static_assert((Make::compute(), true),
                  "varve: this function cannot be traced; if a limit is named, pass -fconstexpr-steps=1000000000 "
                  "(clang) or -fconstexpr-ops-limit=1000000000 (g++)"); // the compiler explains why
    return static_graph<graph_sizes{}>{};
  } else {
    constexpr auto e = Make::compute();
    static_assert(
        e.problem != sized_problem::value,
        "varve: trace: a symbolic size became a number of the function; use mean, or pass the count as an argument");
    static_assert(e.problem != sized_problem::structure,
                  "varve: trace: what the function does depends on a symbolic size; use one that does not branch on "
                  "sizes, or a spec of numbers");
    static_assert(
        e.problem != sized_problem::size,
        "varve: trace: a size is neither a number nor made of symbols by products, constants and sums of two; "
        "give one of the symbols a number in the specs");
    return static_graph<e.sizes>(Make::run().result);
  }
}
} // namespace detail

/// Traces f in the compiler, as in `constexpr auto g = trace(f, spec<float, 8, 3>, ...);`. `f` must capture nothing.
/// Returns a graph that can be compared in assertions, printed and executed. With symbolic sizes, as in `spec<float,
/// dim<"n">>`, f is traced for two sets of samples, as by `fuse`, and the sizes of the graph are expressions of the
/// symbols. For example, `cat` of sizes n and m has size `n + m`, and a `mean` over n divides by `sym_numel([n])`. A
/// symbol is 0 or more. While tracing it differs from every number and every other symbol, and is never taken to be 1.
template <class F, class... S>
constexpr auto trace(F, S...) {
  static_assert(std::is_empty_v<F>,
                "varve: trace: the function captures values, which the compiler cannot see; pass them as arguments");
  if constexpr (!std::is_empty_v<F>) return static_graph<graph_sizes{}>{};
  else if constexpr (!(S::fixed && ...)) return detail::frozen_symbols<detail::trace_of_symbols<F, S...>>();
  else
    return freeze([] {
      graph_builder b; // as trace_graph, with one level less in compiler messages
      return trace_graph_into(b, F{}, S::info()...);
    });
}

} // namespace varve
