// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/table.hpp>
#include <varve/graph/known.hpp>
#include <varve/graph/rewrite.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// The same graph with every conversion of an elementwise operator's operands written out as `to`, as `trace` writes it and planning expects it. Tensors convert inside of their
/// operators, so that `make_fx` records none. Linear in the nodes. (A template only to cost nothing unless used.)
template <class = void>
graph explicit_types(graph const& g) {
  rewriter w(g);
  list<char> number(g.nodes.size(), 0); // plain numbers, and what was computed of them alone
  auto source = [&](node const& nd, int k) { return g.edges[nd.first + k]; };
  auto each = [&](int n) {
    node const& nd = g.nodes[n];
    number[n] = nd.op->kind == op_kind::constant && nd.out.sizes.n == 0;
    if (nd.op->kind != op_kind::pointwise) return w.copy(nd);
    op_table const* const table = ops::find(nd.op->name);
    int const conditions = table && table->pointwise ? table->pointwise->conditions : 0;
    auto operand = [&](int k) {
      meta m = g.nodes[source(nd, k)].out;
      m.number = number[source(nd, k)] != 0;
      return m;
    };
    number[n] = 1;
    for (int k = 0; k < nd.count; ++k) number[n] = number[n] && number[source(nd, k)];
    dtype type = nd.out.type;
    if (table && table->pointwise && table->pointwise->comparison) type = nd.count - conditions == 2 ? result_type(operand(conditions), operand(conditions + 1)) : operand(conditions).type;
    list<int> in;
    for (int k = 0; k < nd.count; ++k) {
      dtype const wanted = k < conditions ? dtype::bool_ : type;
      int now = w.operand(nd, k);
      if (node const& made = w.to.nodes[now]; made.out.type != wanted) {
        node to;
        to.op = &handle<to_t>, to.at = attributes(dims{static_cast<index_t>(wanted)}), to.out = {wanted, made.out.sizes}, to.count = 1;
        now = w.append(to, &now);
      }
      in.push_back(now);
    }
    return w.append(nd, in.data());
  };
  return w.run(each, [] {});
}

} // namespace varve
