// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/table.hpp>
#include <varve/graph/operator_class.hpp>
#include <varve/op/create.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/to.hpp>
#include <varve/pass/rewriter.hpp>

#include <cstring>

namespace varve {

/// Returns the same graph in the form in which the tracer of static values writes it, as planning expects. Each
/// conversion of an operand of an elementwise operator becomes a `to`. (Tensors convert inside of their operators, so
/// that `make_fx` records none.) `full` becomes a number that is expanded. Linear in the nodes. (A template, so that it
/// costs nothing unless used.)
template <class = void>
graph as_traced(graph const& g) {
  rewriter w(g);
  list<char> number(g.nodes.size(), 0); // plain numbers, and values computed from them alone
  auto write = [&](op_handle const* op, attributes const& at, meta const& out, int in) {
    node nd;
    nd.op = op, nd.at = at, nd.out = out, nd.count = 1;
    return w.append(nd, &in);
  };
  auto converted = [&](int n, dtype wanted) {
    meta const m = w.to.nodes[n].out;
    return m.type == wanted
               ? n
               : write(&handle<to_t>, attributes(dims{static_cast<index_t>(wanted)}), {wanted, m.sizes}, n);
  };
  auto each = [&](int n) {
    node const& nd = g.nodes[n];
    number[n] = nd.op->kind == op_kind::constant && nd.out.sizes.n == 0;
    if (nd.op == &handle<full_t>) {
      int const v = converted(w.operand(nd, 0), nd.out.type);
      return nd.out.sizes.n ? write(&handle<expand_t>, attributes(nd.out.sizes), nd.out, v) : v;
    }
    if (identify(*nd.op) == operator_class::cond) { // the predicate becomes bool, whatever its dtype on tensors was
      list<int> in;
      for (int k = 0; k < nd.count; ++k) in.push_back(k ? w.operand(nd, k) : converted(w.operand(nd, 0), dtype::bool_));
      return w.append(nd, in.data());
    }
    if (nd.op->kind != op_kind::pointwise) return w.copy(nd);
    op_table const* const table = detail::table_of(*nd.op);
    int const conditions = table && table->pointwise                              ? table->pointwise->conditions
                           : nd.op->own && std::strcmp(nd.op->name, "where") == 0 ? 1
                                                                                  : 0;
    meta x[2];
    number[n] = 1;
    for (int k = 0; k < nd.count; ++k) {
      int const from = g.edges[nd.first + k];
      number[n] = number[n] && number[from];
      if (k < conditions || k - conditions > 1) continue;
      x[k - conditions] = g.nodes[from].out;
      x[k - conditions].number = number[from] != 0;
    }
    dtype type = nd.out.type; // that of comparisons is always bool
    if (type == dtype::bool_) type = nd.count - conditions == 2 ? result_type(x[0], x[1]) : x[0].type;
    int in[4];
    for (int k = 0; k < nd.count; ++k) in[k] = converted(w.operand(nd, k), k < conditions ? dtype::bool_ : type);
    return w.append(nd, in);
  };
  return w.run(each, [] {});
}

} // namespace varve
