// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/graph/read_sizes.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/trace/proxy.hpp>

namespace varve {

/// A name as a template argument: `dim<"n">`.
struct dim_name {
  char text[8]{};
  template <std::size_t N>
  consteval dim_name(char const (&s)[N]) {
    static_assert(N <= 8, "varve: the name of a symbolic dimension has at most 7 characters");
    for (std::size_t k = 0; k + 1 < N; ++k) text[k] = s[k];
  }
};
/// A symbolic size in a `spec`: equal names are equal sizes.
template <dim_name Name>
inline constexpr index_t dim = symbol(Name.text);

/// dtype and shape of an argument to trace with: `spec<float, 8, 3>`, `spec<float>` for a scalar, `spec<float,
/// dim<"n">>` with a symbolic size.
template <class T, index_t... D>
struct spec_t {
  static constexpr bool fixed = (!is_symbol(D) && ...); // all sizes are numbers
  static constexpr meta info() { return {dtype_of_type<T>(), ints<D...>::to_dims(), false}; }
};
template <class T, index_t... D>
inline constexpr spec_t<T, D...> spec{};

/// Traces a function of traced values with a new builder.
template <class F, class... M>
constexpr graph trace_graph_into(graph_builder& b, F const& f, M const&... m) {
  std::tuple const in{proxy{&b, b.input(m), meta{m.type, m.sizes, false}, 0}...}; // braces: in order
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
  graph g = static_cast<graph_builder&&>(b).finish(); // and moved out: copies of thousands of nodes cost the compiler
  if (has_mutation(g)) return detail::functionalized(g);
  return g;
}
/// ... for the samples of symbolic sizes.
template <class F, class... M>
constexpr graph trace_sample(F const& f, loop::symbol_names const& names, int point, M const&... m) {
  graph_builder b;
  b.sizes_are_samples(loop::least_sample(point));
  return trace_graph_into(b, f, meta{m.type, names.sampled(m.sizes, point), m.number}...);
}

namespace detail {
/// A trace with symbolic sizes, and why there is none.
struct symbolic_trace {
  graph result{};
  loop::sized_problem problem = loop::sized_problem::none;

  template <class F, class... M>
  constexpr symbolic_trace(F const& f, loop::symbol_names const& names, M const&... m)
      : result(trace_sample(f, names, 0, m...)) {
    graph const second = trace_sample(f, names, 1, m...);
    loop::size_reader sizes(names.count, names.names);
    loop::detail::graph_reader reader{result, second, sizes};
    problem = reader.run();
  }
};
} // namespace detail

/// Traces a function of traced values into a graph, in a constant expression or at run time. Results may be a tree; its
/// leaves become the graph's results in order. Where a `meta` has names for sizes, as those of specs do, the function
/// runs twice, for two sets of samples, and the two traces are read back as one: `value_error` where they are not.
template <class F, class... M>
constexpr graph trace_graph(F const& f, M const&... m) {
  loop::symbol_names names;
  (names.add(m.sizes), ...);
  if (names.count == 0) {
    graph_builder b;
    return trace_graph_into(b, f, m...);
  }
  if (names.count > loop::max_symbols)
    refuse::argument_is_invalid("trace", "there are more than six symbols; give some of them numbers");
  detail::symbolic_trace t(f, names, m...); // named, as graphs are: g++ 12 loses temporaries that hold storage
  detail::refuse_sizes("trace", t.problem);
  return static_cast<graph&&>(t.result);
}

namespace detail {
/// Traces `F` for specs with symbolic sizes.
template <class F, class... S>
struct trace_of_symbols {
  static constexpr loop::symbol_names names = [] {
    loop::symbol_names r;
    (r.add(S::info().sizes), ...);
    return r;
  }();
  struct extents {
    graph_sizes sizes;
    loop::sized_problem problem;
  };
  static constexpr symbolic_trace run() { return {F{}, names, S::info()...}; }
  static constexpr extents compute() { // not through run(): messages of compilers stay short
    symbolic_trace const t{F{}, names, S::info()...};
    return {t.result.view().sizes, t.problem};
  }
};
/// The trace as a constant. What cannot be traced is told once.
template <class Make>
constexpr auto frozen_symbols() {
  using loop::sized_problem;
  static_assert(Make::names.count <= loop::max_symbols,
                "varve: trace: the specs have too many symbols; give some of them numbers");
  if constexpr (Make::names.count > loop::max_symbols) return static_graph<graph_sizes{}>{};
  else if constexpr (!evaluates<Make>) {
    static_assert((Make::compute(), true),
                  "varve: this function cannot be traced; if a limit is named, pass -fconstexpr-steps=1000000000 "
                  "(clang) or -fconstexpr-ops-limit=1000000000 (g++)"); // the compiler tells why
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

/// `constexpr auto g = trace(f, spec<float, 8, 3>, ...);` runs the tracer in the compiler: `f` must capture nothing.
/// The result is a value to assert on, print and execute. With symbolic sizes, `spec<float, dim<"n">>`, it is traced
/// for two sets of samples, as by `fuse`, and its sizes are expressions of the symbols: `cat` of sizes n and m has size
/// `n + m`, and a `mean` over n divides by `sym_numel([n])`. A symbol is 0 or more, differs from every number and
/// other symbol while tracing, and is never taken for 1.
template <class F, class... S>
constexpr auto trace(F, S...) {
  static_assert(std::is_empty_v<F>,
                "varve: trace: the function captures values, which the compiler cannot see; pass them as arguments");
  if constexpr (!std::is_empty_v<F>) return static_graph<graph_sizes{}>{};
  else if constexpr (!(S::fixed && ...)) return detail::frozen_symbols<detail::trace_of_symbols<F, S...>>();
  else
    return freeze([] {
      graph_builder b; // trace_graph, with one step less in messages
      return trace_graph_into(b, F{}, S::info()...);
    });
}

} // namespace varve
