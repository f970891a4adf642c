// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/interpret.hpp>
#include <varve/hop/wrap.hpp>

namespace varve {

/// Tag of `run_const_graph`.
struct run_const_graph_t : detail::plain_call {
  static constexpr auto op_name = "run_const_graph", backward_name = "RunConstGraphBackward";
};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& detail::region_operator<run_const_graph_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& detail::region_operator<run_const_graph_t>();
#endif

/// Runs a graph of `make_fx` on constants, operator by operator. Traces record one node with the graph as its function,
/// so that a consumer of the program can compute it once. Derivatives are those of the graph. Throws the errors of
/// `interpret`.
template <class T = tensor>
std::vector<T> run_const_graph(graph const& g, std::vector<T> const& x) {
  auto const run = [&g](std::vector<T> const& in) {
    boxed_args a;
    for (T const& t : in) a.push_back(t);
    std::vector<T> r;
    for (auto const& t : interpret(g, a)) r.push_back(t);
    return r;
  };
  return detail::call_region<run_const_graph_t>(0, run, x);
}

} // namespace varve
