// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/higher_order.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/graph/graph.hpp>
#include <varve/op/create.hpp>

#include <string>
#include <vector>

namespace varve {

namespace detail {
/// Runs one region; every operator goes through the thread's stack, so transforms and modes see it.
template <class T = tensor>
boxed_args run_region(graph const& g, int r, boxed_args const& in) {
  region const& f = g.regions[static_cast<std::size_t>(r)];
  if (in.size() != f.inputs)
    refuse::shapes_do_not_match("graph (number of arguments)", dims{in.size()}, dims{f.inputs});
  std::vector<boxed_args> values(static_cast<std::size_t>(f.node_count));
  auto at = [&](int n) -> boxed_args& { return values[static_cast<std::size_t>(n - f.node_first)]; };
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    boxed_args x;
    for (int k = 0; k < nd.count; ++k) x.push_back(at(g.edges[static_cast<std::size_t>(nd.first + k)])[0]);
    if (nd.op->kind == op_kind::placeholder) {
      tensor const& v = in[static_cast<int>(nd.value)];
      for (int k = 0; k < nd.out.sizes.n || k == 0; ++k)
        if (v.dim() != nd.out.sizes.n ||
            (k < v.dim() && !is_symbol(nd.out.sizes[k]) && v.sizes()[k] != nd.out.sizes[k]))
          refuse::shapes_do_not_match("graph (argument)", v.sizes(), nd.out.sizes);
      at(n).push_back(v);
    } else if (is_array_constant(nd)) {
      T const c = T::empty(nd.out.sizes, nd.out.type);
      double const* const from = g.constants.data() + static_cast<std::ptrdiff_t>(nd.value);
      on_dtype(c.dtype(), "graph", [&]<class E>() {
        for (index_t e = 0; e < c.numel(); ++e) static_cast<E*>(c.raw())[e] = static_cast<E>(from[e]);
      });
      at(n).push_back(c);
    } else if (nd.op->kind == op_kind::constant) {
      at(n).push_back(on_dtype(nd.out.type, "graph", [&]<class E>() {
        return T::from_number(static_cast<E>(nd.value));
      })); // the plain number it was written as, in another trace as well
    } else if (nd.regions_count) {
      higher_order_operator* const hop = higher_order_operator::find(nd.op->name);
      if (!hop)
        throw missing_rule((std::string("varve: graph: there is no higher-order operator ") + nd.op->name).c_str());
      std::vector<boxed_function> functions;
      for (int k = 0; k < nd.regions_count; ++k)
        functions.push_back(
            [&g, region = nd.regions_first + k](boxed_args const& a) { return run_region<T>(g, region, a); });
      at(n) = (*hop)(std::move(functions), x, nd.at);
    } else if (nd.op->own && std::strcmp(nd.op->name, "getitem") == 0) {
      at(n).push_back(at(g.edges[static_cast<std::size_t>(nd.first)])[static_cast<int>(nd.at[0][0])]);
    } else {
      op_table const* table = table_of(*nd.op);
      if (!table)
        throw missing_rule((std::string("varve: graph: operator ") + nd.op->name +
                            " is not known for tensors; call it on a tensor anywhere in the program")
                               .c_str());
      at(n).push_back(boxed_op{table, &nd.at}(x));
    }
  }
  boxed_args y;
  for (int k = 0; k < f.result_count; ++k) y.push_back(at(g.results[static_cast<std::size_t>(f.result_first + k)])[0]);
  return y;
}
} // namespace detail

/// Runs a graph on tensors, operator by operator. Shapes are checked at entry (`shape_error`); symbolic sizes admit
/// any.
template <class T = tensor>
boxed_args interpret(graph const& g, boxed_args const& arguments) {
  return detail::run_region<T>(g, 0, arguments);
}

} // namespace varve
