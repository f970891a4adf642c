// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/read_sizes.hpp>
#include <varve/op/cat.hpp>
#include <varve/pass/dce.hpp>

namespace varve {
namespace detail {

/// The state of `join_slices`.
struct slice_joiner {
  struct part {
    index_t start, stop;
    int value;               // in the new graph
    op_handle const* handle; // of the `slice_backward`
    attributes at;
  };
  graph const& g;
  op_handle const* cat;
  rewriter w;
  list<operator_class> what;
  list<char> inner{}; // an addition that is only used as a term of another one

  constexpr slice_joiner(graph const& graph_, op_handle const* cat_)
      : g(graph_), cat(cat_), w(graph_), what(identify(graph_)) {
    list<int> uses(g.nodes.size(), 0);
    for (int e : g.edges) ++uses[e];
    for (int r : g.results) ++uses[r];
    inner.assign(g.nodes.size(), 0);
    for (std::size_t n = 0; n < what.size(); ++n)
      for (int k = 0; what[n] == operator_class::add && k < 2; ++k)
        if (int const o = operand(static_cast<int>(n), k);
            what[o] == operator_class::add && uses[o] == 1 && g.nodes[o].out == g.nodes[n].out)
          inner[o] = 1;
  }
  constexpr int operand(int n, int k) const { return g.edges[g.nodes[n].first + k]; }
  /// Returns the adjacent parts in [first, last) as one value, by a balanced tree of `cat`s.
  constexpr int together(list<part> const& parts, std::size_t first, std::size_t last, int axis) {
    if (last - first == 1) return parts[first].value;
    std::size_t const middle = first + (last - first) / 2;
    int const in[] = {together(parts, first, middle, axis), together(parts, middle, last, axis)};
    node joined;
    joined.op = cat, joined.at = attributes(dims{axis}), joined.count = 2;
    joined.out = w.to.nodes[in[0]].out;
    joined.out.sizes[axis] += w.to.nodes[in[1]].out.sizes[axis];
    return w.append(joined, in);
  }
  /// Collects the terms of the sum `n`. Returns true if the additions form a chain; then the terms are in the order of
  /// addition.
  constexpr bool terms(int n, list<int>& to) const {
    bool chain = true;
    list<int> pending(1, n);
    while (!pending.empty()) { // outermost first
      int const m = pending.back();
      pending.pop_back();
      if (m != n && !inner[m]) {
        to.push_back(m);
        continue;
      }
      int const a = operand(m, 0), b = operand(m, 1);
      chain = chain && !(inner[a] && inner[b]);
      pending.push_back(inner[b] ? b : a), pending.push_back(inner[b] ? a : b);
    }
    for (std::size_t k = 0; k < to.size() / 2; ++k) std::swap(to[k], to[to.size() - 1 - k]);
    return chain;
  }
  /// Rewrites the sum `n`. Returns -1 if nothing in it can be joined.
  constexpr int sum(int n) {
    list<int> all;
    bool const chain = terms(n, all);
    list<part> parts;
    int other = -1, axis = -1; // the one term that is no slice; the axis of the slices
    for (int m : all) {
      node const& nd = g.nodes[m];
      bool const slice = what[m] == operator_class::slice_backward && nd.out == g.nodes[n].out && nd.at[1][3] == 1 &&
                         (axis < 0 || nd.at[1][0] == axis);
      if (!slice && other >= 0) return -1; // with two of them the order of additions would change
      if (!slice) other = w.now[m];
      else
        axis = static_cast<int>(nd.at[1][0]),
        parts.push_back({nd.at[1][1], nd.at[1][2], w.operand(nd, 0), nd.op, nd.at});
    }
    for (std::size_t k = 1; k < parts.size(); ++k) // they come nearly sorted; equal ones keep their order
      for (std::size_t q = k; q > 0 && parts[q].start < parts[q - 1].start; --q) std::swap(parts[q], parts[q - 1]);
    bool neighbours = false;
    int equal = 1;
    for (std::size_t k = 1; k < parts.size(); ++k) {
      bool const same = parts[k].start == parts[k - 1].start && parts[k].stop == parts[k - 1].stop;
      equal = same ? equal + 1 : 1;
      if (same ? other >= 0 || (equal > 2 && !chain) : parts[k].start < parts[k - 1].stop) return -1;
      neighbours = neighbours || parts[k].start == parts[k - 1].stop;
    }
    if (!neighbours) return -1;
    list<part> apart; // terms of the same slice are added first
    for (part const& x : parts) {
      if (apart.empty() || apart.back().start != x.start) {
        apart.push_back(x);
        continue;
      }
      int const in[] = {apart.back().value, x.value};
      node added = g.nodes[n];
      added.out = w.to.nodes[x.value].out;
      apart.back().value = w.append(added, in);
    }
    parts = apart;
    int total = other;
    for (std::size_t first = 0, last = 0; first < parts.size(); first = last) {
      for (last = first + 1; last < parts.size() && parts[last].start == parts[last - 1].stop;) ++last;
      int value = together(parts, first, last, axis);
      if (parts[first].start > 0 || parts[last - 1].stop < g.nodes[n].out.sizes[axis]) {
        node slice;
        slice.op = parts[first].handle, slice.out = g.nodes[n].out, slice.count = 1;
        slice.at = attributes(parts[first].at[0], dims{axis, parts[first].start, parts[last - 1].stop, 1});
        value = w.append(slice, &value);
      }
      int const in[] = {total, value};
      total = total < 0 ? value : w.append(g.nodes[n], in);
    }
    return total;
  }
  constexpr graph run() {
    return w.run(
        [&](int n) {
          int const joined = what[n] == operator_class::add && !inner[n] ? sum(n) : -1;
          return joined >= 0 ? joined : w.copy(g.nodes[n]);
        },
        [] {});
  }
};
} // namespace detail

/// Rewrites a sum of `slice_backward`s whose slices are disjoint or equal: the values of the slices are concatenated by
/// `cat`. The gradient of a function that slices its argument is then written once. Only the sign of a zero may change,
/// because each element belongs to one slice, whose terms are added in order; the others added zeros to it. One visit
/// per node; none if the graph has no such sum. A template, so that units which do not fuse do not depend on `cat`.
template <class Cat = cat_t, class Backward = slice_backward_t>
constexpr void join_slices(graph& g) {
  int slices = 0;
  for (node const& n : g.nodes) slices += n.op == &handle<Backward>;
  if (slices < 2) return;
  if (detail::is_symbolic(g)) {
    g = detail::on_samples("join_slices", g, [](graph of, int) {
      join_slices<Cat, Backward>(of);
      return of;
    });
    return;
  }
  graph const joined = detail::slice_joiner(g, &handle<Cat>).run();
  g = dce(joined);
}

} // namespace varve
