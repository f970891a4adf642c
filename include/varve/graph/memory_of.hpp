// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/builder.hpp>
#include <varve/op/clone.hpp>

namespace varve::detail {

/// True if the result of an operator is in the memory of its first operand.
constexpr bool lies_in_operand(op_handle const& op) {
  return op.kind == op_kind::mutation || (op.kind == op_kind::view && &op != &handle<clone_t>);
}
/// Returns the node in whose memory a node is, according to views and writes.
constexpr int memory_of(graph const& g, int n) {
  while (lies_in_operand(*g.nodes[n].op)) n = g.edges[g.nodes[n].first];
  return n;
}
/// Marks the views through which a result, or an operand of a call with functions, is seen: from each back to the
/// memory that it is in. Linear in the nodes.
constexpr void mark_views_seen(graph const& g, list<char>& marks) {
  marks.assign(g.nodes.size(), 0);
  auto const mark = [&](int n) {
    for (; !marks[n] && lies_in_operand(*g.nodes[n].op); n = g.edges[g.nodes[n].first]) marks[n] = 1;
  };
  for (int r : g.results) mark(r);
  for (node const& nd : g.nodes)
    for (int k = 0; nd.regions_count > 0 && k < nd.count; ++k) mark(g.edges[nd.first + k]);
}
/// Returns the operator of a node, among those written from `since` on, that writes into memory from before; null if
/// none does.
constexpr op_handle const* writes_outside(graph_builder const& b, int since) {
  for (int n = since; n < b.count(); ++n) {
    if (b.written(n).op->kind != op_kind::mutation) continue;
    int into = n;
    while (lies_in_operand(*b.written(into).op)) into = b.operand_of(into);
    if (into < since || b.written(into).op == &placeholder_handle) return b.written(n).op;
  }
  return nullptr;
}

} // namespace varve::detail
