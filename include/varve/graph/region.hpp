// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/trace.hpp>

namespace varve {

/// The handle of a higher-order operator in graphs.
template <class Tag>
inline constexpr op_handle hop_handle{Tag::op_name, op_kind::hop, -1, &detail::no_shape};

/// Traces the two functions of a call into regions of the graph and writes one node with them. What the functions capture of the functions around them become
/// further operands, the union over both, in the same order for both (CD-4, SL-9).
template <class Tag, class Op, class P, class... X>
constexpr auto trace_branches(Tag, Op const& op, P const& p, X const&... x) {
  graph_builder& outer = detail::as_proxy(p).builder->current();
  int const pred = detail::node_in(outer, detail::as_proxy(p));
  meta const metas[] = {meta_of(x)..., meta{}};
  auto trace_into = [&](graph_builder& b, auto const& f) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::tuple const in{proxy{&b, b.input(metas[K]), meta{metas[K].type, metas[K].sizes, false}, 0}...}; // braces: in order
      auto const y = detail::call_with(f, in);
      tree_for_each([&](auto const& v) { b.result(detail::node_in(b, detail::as_proxy(v, &b))); }, y);
      return tree_map([](auto const& v) { return meta_of(v); }, y);
    }(std::index_sequence_for<X...>{});
  };
  graph_builder on_true(&outer);
  auto const shapes = trace_into(on_true, op.on_true);
  on_true.close();
  graph_builder on_false(&outer);
  auto const other = trace_into(on_false, op.on_false);
  on_false.close();
  static_assert(std::is_same_v<decltype(shapes), decltype(other)>, "varve: cond: both functions must return the same number of values");
  tree_map([](meta const& a, meta const& b) { return a == b ? 0 : (refuse::shapes_do_not_match("cond (results of the branches)", a.sizes, b.sizes), 0); }, shapes, other);
  int operands[1 + sizeof...(X)] = {pred, detail::node_in(outer, detail::as_proxy(x, &outer))...};
  int const id = outer.emit_branches(&hop_handle<Tag>, operands, 1 + static_cast<int>(sizeof...(X)), on_true, on_false);
  int k = 0;
  return tree_map([&](meta const& m) { return proxy{&outer, outer.result_of(id, k++, m), m, 0}; }, shapes);
}

} // namespace varve
