// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/root.hpp>

namespace varve::loop {

/// A node that a loop computes, or a copy of its value.
struct member {
  int node;
  int copy_to; // result buffer of a copy, -1 for the node's own
};

/// Demands from an unfolding what a member of a loop needs at one point of the space, and tells where it leaves its value.
constexpr void seed(unfolding& u, role_table const& roles, list<int> const& buffer_of, member const& m, list<root>& roots) {
  graph const& g = roles.g;
  node const& nd = g.nodes[m.node];
  axis_index map[max_rank]{};
  role const kind = m.copy_to < 0 ? roles.of[m.node] : role::inlined;
  root r;
  r.at.buffer = m.copy_to < 0 ? buffer_of[m.node] : m.copy_to;
  dims const out = contiguous_strides(nd.out.sizes);
  if (kind == role::inlined || kind == role::source) {
    unfolding::identity(nd.out.sizes, map);
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
    bool const inner_first = rows > 1 ? ta : !tb; // the layout of the larger operand
    index_t const free = rows > 1 ? rows : cols;
    for (index_t e = 0; e < (unrolled ? free : 1); ++e) {
      axis_index const k{inner == 1 ? -1 : unrolled || inner_first || free == 1 ? 0 : 1, 0, inner == 1 ? 0 : 1};
      axis_index const f = unrolled ? axis_index{-1, e, 0} : free == 1 ? axis_index{-1, 0, 0} : axis_index{inner_first && inner > 1 ? 1 : 0, 0, 1};
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
  r.kind = roles.what[m.node] == known::sum ? sink_kind::sum : roles.what[m.node] == known::amax ? sink_kind::greatest : sink_kind::least;
  bool const keep = nd.at[1][0] != 0;
  dims stride; // of the result, per axis of the operand
  for (int k = 0, o = 0; k < s.n; ++k) {
    bool const reduced = nd.at[0].contains(k);
    stride.push_back(reduced ? 0 : out[o]);
    o += !reduced || keep;
  }
  index_t const copies_ = unrolled ? numel(nd.out.sizes) : 1;
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

} // namespace varve::loop
