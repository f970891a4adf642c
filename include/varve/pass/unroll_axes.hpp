// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/read_sizes.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/expand.hpp>
#include <varve/pass/axis_table.hpp>
#include <varve/pass/optimize.hpp>

#include <bit>

/// @file
/// Unrolling the axis of unit vectors lets ones fold away and equal values merge. Products with 0 stay, since they are
/// NaN for infinite partial derivatives; `fast_math` drops them.
namespace varve {
namespace detail {

/// The state of `unroll_axes`. Each old node with unrolled axes has one piece per index of these axes, in row-major
/// order.
struct axis_unroller {
  graph const& g;
  axis_table const& axes;
  op_handle const *cat, *expand;
  rewriter w;
  list<int> begin{}, pieces{};
  list<char> whole{}; // nodes that are results

  constexpr axis_unroller(axis_table const& axes_, op_handle const* cat_, op_handle const* expand_)
      : g(axes_.g), axes(axes_), cat(cat_), expand(expand_), w(axes_.g) {
    begin.assign(g.nodes.size(), 0), whole.assign(g.nodes.size(), 0);
    for (int r : g.results) whole[r] = 1;
  }
  /// Returns the piece of a node at `index`; only the entries of unrolled axes are read.
  constexpr int piece(int n, dims const& index) const {
    dims const& s = axes.sizes(n);
    index_t at = 0;
    bool any = false;
    for (int d = 0; d < s.n; ++d)
      if (axes.is_unrolled(n, d)) at = at * s[d] + index[d], any = true;
    return any ? pieces[begin[n] + at] : w.now[n];
  }
  constexpr int splat(meta const& m, double x) {
    node c;
    c.op = &constant_handle, c.out = {m.type, {}}, c.value = x;
    int const number = w.append(c, nullptr);
    if (m.sizes.n == 0) return number;
    node e;
    e.op = expand, e.out = m, e.at = attributes(m.sizes), e.count = 1;
    return w.append(e, &number);
  }
  /// Writes the part of an array constant at `index` as a constant.
  constexpr int table(node const& nd, meta const& m, dims const& index) {
    dims const stride = contiguous_strides(nd.out.sizes), own = contiguous_strides(m.sizes);
    list<double> all;
    bool same = true;
    for (index_t e = 0, count = numel(m.sizes); e < count; ++e) {
      auto from = static_cast<std::ptrdiff_t>(nd.value);
      for (int d = 0; d < m.sizes.n; ++d)
        from += static_cast<std::ptrdiff_t>(stride[d] * (m.sizes[d] == 1 ? index[d] : e / own[d] % m.sizes[d]));
      all.push_back(g.constants[from]);
      same = same && std::bit_cast<std::uint64_t>(all.back()) == std::bit_cast<std::uint64_t>(all[0]);
    }
    if (same && !all.empty()) return splat(m, all[0]);
    node c = nd;
    c.out = m, c.value = static_cast<double>(w.to.constants.size());
    for (double x : all) w.to.constants.push_back(x);
    return w.append(c, nullptr);
  }
  constexpr int make(int n, dims const& index) {
    node nd = g.nodes[n];
    operator_class const k = axes.what[n];
    for (int d = 0; d < nd.out.sizes.n; ++d)
      if (axes.is_unrolled(n, d)) nd.out.sizes[d] = 1;
    if (k == operator_class::data) return table(g.nodes[n], nd.out, index);
    if (k == operator_class::arange) return splat(nd.out, static_cast<double>(index[0]));
    int const own = k == operator_class::slice            ? static_cast<int>(nd.at[0][0])
                    : k == operator_class::slice_backward ? static_cast<int>(nd.at[1][0])
                                                          : -1;
    bool const picks = k == operator_class::slice && axes.is_unrolled(axes.operand(n, 0), own),
               puts = k == operator_class::slice_backward && axes.is_unrolled(n, own);
    if (puts && index[own] != nd.at[1][1]) return splat(nd.out, 0);
    list<int> in;
    for (int e = 0; e < nd.count; ++e) {
      int const o = axes.operand(n, e);
      dims const source = axes.sources(n, e);
      dims at = axes.sizes(o);
      for (int d = 0; d < source.n; ++d)
        if (source[d] >= 0) at[static_cast<int>(source[d])] = index[d];
      if (picks) at[own] = nd.at[0][1];
      in.push_back(piece(o, at));
    }
    if (picks || puts) return in[0];
    if ((k == operator_class::expand || k == operator_class::reshape) && nd.at.count == 1)
      nd.at = attributes(nd.out.sizes);
    if (k == operator_class::slice_backward) nd.at = attributes(nd.out.sizes, nd.at[1]);
    return w.append(nd, in.data());
  }
  /// Returns values [first, last) concatenated along an axis, by a balanced tree of `cat`s.
  constexpr int together(int const* values, index_t first, index_t last, int axis) {
    if (last - first == 1) return values[first];
    index_t const middle = first + (last - first) / 2;
    int const in[] = {together(values, first, middle, axis), together(values, middle, last, axis)};
    node joined;
    joined.op = cat, joined.at = attributes(dims{axis}), joined.count = 2;
    joined.out = w.to.nodes[in[0]].out;
    joined.out.sizes[axis] += w.to.nodes[in[1]].out.sizes[axis];
    return w.append(joined, in);
  }
  constexpr int visit(int n) {
    if (!axes.live[n]) return -1;
    dims const& s = axes.sizes(n);
    if (!axes.any_unrolled(n)) {
      bool const picks = axes.what[n] == operator_class::slice && axes.any_unrolled(axes.operand(n, 0));
      return picks ? make(n, dims{}) : w.copy(g.nodes[n]);
    }
    list<int> mine;
    dims index = s;
    for (int d = 0; d < s.n; ++d) index[d] = 0;
    for (int d = 0; d >= 0;) { // counts, the last unrolled axis fastest
      mine.push_back(make(n, index));
      for (d = s.n - 1; d >= 0; --d) {
        if (!axes.is_unrolled(n, d)) continue;
        if (++index[d] < s[d]) break;
        index[d] = 0;
      }
    }
    begin[n] = static_cast<int>(pieces.size());
    for (int p : mine) pieces.push_back(p);
    if (!whole[n]) return -1;
    for (int d = s.n - 1; d >= 0; --d) {
      if (!axes.is_unrolled(n, d)) continue;
      list<int> fewer;
      for (index_t k = 0; k < static_cast<index_t>(mine.size()); k += s[d])
        fewer.push_back(together(mine.data(), k, k + s[d], d));
      mine = fewer;
    }
    return mine[0];
  }
  constexpr graph run() {
    return w.run([&](int n) { return visit(n); }, [] {});
  }
};
/// True if there is an array constant or an `arange` with a short axis.
constexpr bool may_unroll(graph const& g) {
  for (node const& n : g.nodes)
    if (n.out.sizes.n > 0 && (n.op->kind == op_kind::constant || n.op->kind == op_kind::factory))
      for (extent s : n.out.sizes)
        if (s.is_number() && s > 1 && s <= axis_table::longest) return true;
  return false;
}
} // namespace detail

/// Unrolls the short axes that begin in constants (`axis_table`). Each index becomes a separate value, and one loop
/// computes the values of all indices. They fold where the constants, such as unit vectors, are 0 and 1. Results are
/// concatenated by `cat`, which planning writes in place. The graph must be optimized. One visit per node and index. A
/// template, so that units which do not fuse do not depend on `cat`.
template <class Cat = cat_t, class Expand = expand_t>
constexpr void unroll_axes(graph& g) {
  if (!detail::may_unroll(g)) return;
  if (detail::is_symbolic(g)) {
    g = detail::on_samples("unroll_axes", g, [](graph of, int) {
      unroll_axes<Cat, Expand>(of);
      return of;
    });
    return;
  }
  detail::axis_table const axes(g);
  bool any = false;
  for (std::size_t n = 0; n < g.nodes.size() && !any; ++n) any = axes.live[n] && axes.any_unrolled(static_cast<int>(n));
  if (!any) return;
  graph const unrolled = detail::axis_unroller(axes, &handle<Cat>, &handle<Expand>).run();
  g = optimize(unrolled, purpose::values);
}

} // namespace varve
