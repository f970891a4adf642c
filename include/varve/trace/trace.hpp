// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
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
  auto const y = detail::call_with(f, in);
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
/// Traces a function of traced values into a graph, in a constant expression or at run time. Results may be a tree; its
/// leaves become the graph's results in order.
template <class F, class... M>
constexpr graph trace_graph(F const& f, M const&... m) {
  graph_builder b;
  return trace_graph_into(b, f, m...);
}

/// `constexpr auto g = trace(f, spec<float, 8, 3>, ...);` runs the tracer in the compiler: `f` must capture nothing.
/// The result is a value to assert on, print and execute.
template <class F, class... S>
constexpr auto trace(F, S...) {
  static_assert(std::is_empty_v<F>,
                "varve: trace: the function captures values, which the compiler cannot see; pass them as arguments");
  if constexpr (std::is_empty_v<F>) {
    return freeze([] {
      graph_builder b; // trace_graph, with one step less in messages
      return trace_graph_into(b, F{}, S::info()...);
    });
  } else {
    return static_graph<graph_sizes{}>{};
  }
}

} // namespace varve
