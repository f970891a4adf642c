// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/loop_form.hpp>

namespace varve::fusion {

/// A node that a loop computes, or a copy of its value.
struct member {
  int node;
  int copy_to;        // result buffer of a copy, -1 for the node's own
  index_t offset = 0; // where the copy begins in its buffer
  dims strides{};     // the strides of the copy, per axis of the node
};

/// Splits a copy of a `cat` without other users into copies of its operands. The operands are then computed in place,
/// in one loop if they have the same iteration space. `uses` counts the users of nodes.
constexpr void spread(graph const& g, list<operator_class> const& what, list<int> const& uses, member const& m,
                      list<member>& copies) {
  node const& nd = g.nodes[m.node];
  auto operand = [&](int k) { return g.edges[nd.first + k]; };
  auto sizes = [&](int n) -> dims const& { return g.nodes[n].out.sizes; };
  operator_class const k = what[m.node];
  if (uses[m.node] == 1 && k == operator_class::cat) {
    member part = m;
    for (int e = 0; e < nd.count; ++e) {
      part.node = operand(e);
      spread(g, what, uses, part, copies);
      part.offset += m.strides[static_cast<int>(nd.at[0][0])] * sizes(operand(e))[static_cast<int>(nd.at[0][0])];
    }
  } else if (uses[m.node] == 1 && k == operator_class::reshape && squeeze(sizes(operand(0))) == squeeze(nd.out.sizes)) {
    member whole{operand(0), m.copy_to, m.offset, {}};
    int at = 0;
    for (index_t s : sizes(operand(0))) { // axes of size 1 have no counterpart
      while (s != 1 && nd.out.sizes[at] == 1) ++at;
      whole.strides.push_back(s == 1 ? extent(0) : m.strides[at++]);
    }
    spread(g, what, uses, whole, copies);
  } else if (uses[m.node] == 1 && k == operator_class::permute) {
    member whole{operand(0), m.copy_to, m.offset, m.strides};
    for (int d = 0; d < m.strides.n; ++d) whole.strides[static_cast<int>(nd.at[0][d])] = m.strides[d];
    spread(g, what, uses, whole, copies);
  } else {
    copies.push_back(m);
  }
}

/// Demands from an unfolding what a member of a loop needs at one point of the space. Appends the roots that define
/// where its values are stored.
constexpr void seed(unfolding& u, role_table const& roles, list<int> const& buffer_of, member const& m,
                    list<root>& roots) {
  graph const& g = roles.g;
  node const& nd = g.nodes[m.node];
  axis_index map[max_rank]{};
  role const kind = m.copy_to < 0 ? roles.of[m.node] : role::inlined;
  root r;
  r.at.buffer = m.copy_to < 0 ? buffer_of[m.node] : m.copy_to;
  dims const out = m.copy_to < 0 ? contiguous_strides(nd.out.sizes) : m.strides;
  r.at.offset = m.offset;
  if (kind == role::inlined || kind == role::source) {
    identity_map(nd.out.sizes, map);
    r.a = u.demand(m.node, map);
    for (int k = 0; k < nd.out.sizes.n; ++k)
      if (map[k].dim >= 0) r.at.stride[map[k].dim] = out[k];
    roots.push_back(r);
    return;
  }
  bool const unrolled = roles.unrolls(m.node);
  int const a = roles.input(nd, 0);
  dims const& s = g.nodes[a].out.sizes;
  if (kind == role::product) { // mm with one row or column
    bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
    int const b = roles.input(nd, 1);
    index_t const rows = s[ta ? 1 : 0], inner = s[ta ? 0 : 1], cols = g.nodes[b].out.sizes[tb ? 0 : 1];
    r.kind = sink_kind::sum, r.product = true;
    bool const inner_first = rows > 1 ? ta : !tb; // follow the layout of the larger operand
    index_t const free = rows > 1 ? rows : cols;
    for (index_t e = 0; e < (unrolled ? free : 1); ++e) {
      axis_index const k{inner == 1 ? -1 : unrolled || inner_first || free == 1 ? 0 : 1, 0, inner == 1 ? 0 : 1};
      axis_index const f = unrolled    ? axis_index{-1, e, 0}
                           : free == 1 ? axis_index{-1, 0, 0}
                                       : axis_index{inner_first && inner > 1 ? 1 : 0, 0, 1};
      axis_index const row = rows > 1 ? f : axis_index{-1, 0, 0}, col = rows > 1 ? axis_index{-1, 0, 0} : f;
      map[0] = ta ? k : row, map[1] = ta ? row : k;
      r.a = u.demand(a, map);
      map[0] = tb ? col : k, map[1] = tb ? k : col;
      r.b = u.demand(b, map);
      r.at.offset = unrolled ? e : 0;
      if (f.dim >= 0) r.at.stride[f.dim] = 1;
      roots.push_back(r);
    }
    return;
  }
  r.kind = roles.what[m.node] == operator_class::sum    ? sink_kind::sum
           : roles.what[m.node] == operator_class::amax ? sink_kind::greatest
                                                        : sink_kind::least;
  bool const keep = nd.at[1][0] != 0;
  dims stride; // of the result, per axis of the operand
  for (int k = 0, o = 0; k < s.n; ++k) {
    bool const reduced = nd.at[0].contains(k);
    stride.push_back(reduced ? extent(0) : out[o]);
    o += !reduced || keep;
  }
  index_t const copies_ = unrolled ? numel(nd.out.sizes).number() : 1;
  for (index_t e = 0; e < copies_; ++e) {
    int d = 0;
    r.at.offset = e;
    for (int k = 0; k < s.n; ++k) {
      map[k] = {-1, 0, 0};
      if (s[k] == 1) continue;
      bool const reduced = nd.at[0].contains(k);
      if (unrolled && !reduced) map[k] = {-1, e / stride[k] % s[k], 0};
      else map[k] = {d, 0, 1}, r.at.stride[d++] = stride[k];
    }
    r.a = u.demand(a, map);
    roots.push_back(r);
  }
}

} // namespace varve::fusion
