// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

/// @file
/// The class of an operator, on which passes decide how to treat it. The library's operators declare it
/// (`rules<>::planned_as`); for operators of other programs only their kind counts.
namespace varve {

/// Returns the class of an operator. For operators of other programs only their kind counts, whatever their name is.
constexpr operator_class identify(op_handle const& op) {
  switch (op.kind) {
  case op_kind::placeholder:
    return operator_class::placeholder;
  case op_kind::constant:
    return operator_class::constant;
  case op_kind::convert:
    return operator_class::convert;
  default:
    break;
  }
  if (op.own && op.planned_as != operator_class::other) return op.planned_as;
  return op.kind == op_kind::pointwise ? operator_class::pointwise : operator_class::other;
}

/// Returns `identify` for every node of a graph. Each distinct operator is looked up once.
constexpr list<operator_class> identify(graph const& g) {
  struct entry {
    op_handle const* op;
    operator_class what;
  };
  list<entry> seen;
  list<operator_class> all(g.nodes.size(), operator_class{});
  operator_class* to = all.data();
  entry const *begin = nullptr, *end = nullptr;
  for (node const& n : g.nodes) {
    entry const* k = begin;
    while (k != end && k->op != n.op) ++k;
    if (k == end) {
      seen.push_back({n.op, identify(*n.op)});
      begin = seen.data(), end = begin + seen.size(), k = end - 1;
    }
    *to++ = k->what == operator_class::constant && n.out.sizes.n > 0 ? operator_class::data : k->what;
  }
  return all;
}

/// True if a node's value is in memory before the program runs.
constexpr bool is_given(operator_class k) { return k == operator_class::placeholder || k == operator_class::data; }
/// True if every element of the result is computed from the operands' elements at the same place.
constexpr bool is_pointwise(operator_class k) { return k >= operator_class::pointwise && k <= operator_class::cheap; }
/// True if the operator folds elements along axes.
constexpr bool is_reduction(operator_class k) { return k >= operator_class::sum && k <= operator_class::amin; }
/// True if the operator only changes where elements are read.
constexpr bool is_view(operator_class k) { return k >= operator_class::reshape && k <= operator_class::cat; }

} // namespace varve
