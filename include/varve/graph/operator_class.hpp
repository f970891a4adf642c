// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

/// @file
/// Passes ask what class an operator says that it is (`rules<>::planned_as`); those of programs are known by their
/// rules alone.
namespace varve {

/// Which operator a handle is; those of other programs are known by their kind only, whatever they are called.
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

/// `identify` for every node of a graph, each distinct operator looked up once.
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

/// Does a node's value lie in memory before the program runs?
constexpr bool is_given(operator_class k) { return k == operator_class::placeholder || k == operator_class::data; }
/// Is every element of the result one of the operands' elements at the same place?
constexpr bool is_pointwise(operator_class k) { return k >= operator_class::pointwise && k <= operator_class::cheap; }
/// Does it fold elements along axes?
constexpr bool is_reduction(operator_class k) { return k >= operator_class::sum && k <= operator_class::amin; }
/// Does it only change where elements are looked up?
constexpr bool is_view(operator_class k) { return k >= operator_class::reshape && k <= operator_class::cat; }

} // namespace varve
