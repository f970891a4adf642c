// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/pass/dce.hpp>

#include <bit>

namespace varve {

/// Eliminates common subexpressions: equal operators with equal attributes and operands become one node, as do equal
/// constants. Unchanged are random, mutating and higher-order operators, effects, and operators of a `library`, whose
/// kernels may have a state. Nodes on which no result depends are dropped. The graph must have no in-place operators
/// (`functionalize`). Equal nodes are found by hash, with expected constant work per node. Views through which a result
/// is seen stay apart too, unless the graph is for values alone (`purpose::values`): two reshapes of a value that is
/// not by rows are two copies. Equal results become one; `optimize` gives each memory of its own again.
constexpr graph cse(graph const& g, purpose what_for = purpose::derivatives) {
  rewriter w(g);
  std::size_t slot_count = 16;
  while (slot_count < 2 * g.nodes.size()) slot_count *= 2;
  list<int> table(slot_count, -1);
  list<std::size_t> used;
  list<operator_class> const kinds = identify(g);
  list<char> const marks = live_nodes(g);
  char const* const live = marks.data();
  list<char> seen;
  if (what_for == purpose::derivatives) detail::mark_views_seen(g, seen);
  operator_class const* const what = kinds.data();
  auto mix = [](std::uint64_t h, std::uint64_t x) { return (h ^ x) * 0x9E3779B97F4A7C15u ^ (h >> 29); };
  auto same_bits = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  auto start = [&] { // operations of one region are not visible in another
    for (std::size_t s : used) table[s] = -1;
    used.clear();
  };
  auto each = [&](int n) {
    if (!live[n]) return -1;
    node const& nd = g.nodes[n];
    op_kind const kind = nd.op->kind;
    if (kind == op_kind::placeholder || kind == op_kind::random || kind == op_kind::mutation || kind == op_kind::hop ||
        kind == op_kind::effect || (seen.size() && seen[n]) || (kind != op_kind::constant && !nd.op->shape))
      return w.copy(nd);
    bool const data = what[n] == operator_class::data;
    double const* const elements = g.constants.data() + (data ? static_cast<std::ptrdiff_t>(nd.value) : 0);
    index_t const count = data ? numel(nd.out.sizes).number() : 0;
    std::uint64_t h = (data ? 0 : std::bit_cast<std::uint64_t>(nd.value)) + static_cast<std::uint64_t>(nd.out.type);
    for (index_t e = 0; e < count; ++e) h = mix(h, std::bit_cast<std::uint64_t>(elements[e]));
    operator_class const k_ = what[n];
    h = mix(h, static_cast<std::uint64_t>(k_));
    bool const many = k_ == operator_class::pointwise || k_ == operator_class::cheap ||
                      k_ == operator_class::other; // operators of this kind: distinguished by name
    for (char const* c = many ? nd.op->name : ""; *c; ++c) h = mix(h, static_cast<unsigned char>(*c));
    bool const commutes = k_ == operator_class::add || k_ == operator_class::mul;
    bool const swap = commutes && w.operand(nd, 0) > w.operand(nd, 1);
    auto operand = [&](int k) { return w.operand(nd, swap ? 1 - k : k); };
    for (int k = 0; k < nd.count; ++k) h = mix(h, static_cast<std::uint64_t>(operand(k)));
    for (int k = 0; k < nd.at.count; ++k)
      for (extent a : nd.at[k]) h = mix(h, static_cast<std::uint64_t>(a.bits));
    std::size_t s = static_cast<std::size_t>(h ^ (h >> 32)) & (slot_count - 1);
    for (; table[s] >= 0; s = (s + 1) & (slot_count - 1)) {
      node const& o = w.to.nodes[static_cast<std::size_t>(table[s])];
      bool same = o.op == nd.op && o.count == nd.count && o.mode == nd.mode && (data || same_bits(o.value, nd.value)) &&
                  o.out == nd.out && o.at == nd.at;
      if (o.text != nd.text) same = false; // by itself: g++ 12 joins comparisons of neighbours and fails on the result
      for (index_t e = 0; e < count && same; ++e)
        same = same_bits(w.to.constants[static_cast<std::ptrdiff_t>(o.value) + e], elements[e]);
      int const* in = w.to.edges.data() + o.first;
      if (commutes && same)
        same = (in[0] == operand(0) && in[1] == operand(1)) || (in[1] == operand(0) && in[0] == operand(1));
      else
        for (int k = 0; same && k < nd.count; ++k) same = in[k] == operand(k);
      if (same) return table[s];
    }
    used.push_back(s);
    return table[s] = w.copy(nd);
  };
  return w.run(each, start);
}

} // namespace varve
