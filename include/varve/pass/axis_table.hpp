// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/pass/dce.hpp>

/// @file
/// Finds which axes of the values of a graph correspond. An axis continues through operators that treat its indices one
/// by one.
///
/// `jacrev` and `jacfwd` under `vmap` have a short mapped dimension that begins in a constant, the unit vectors. It is
/// unrolled if it reaches no memory of arguments and the values without it still fill registers.
namespace varve::detail {

/// The axes of a graph, in classes of corresponding ones, and the choice of classes to unroll. These are short axes
/// that begin in constants, such as the unit vectors of a Jacobian, and reach no memory of the caller. Most of their
/// values must be large enough without them. No operator on such an axis combines different indices.
struct axis_table {
  static constexpr index_t longest = 8;   // length of an axis that is unrolled
  static constexpr index_t enough = 8;    // elements of a value at one of its indices: they fill a register
  static constexpr index_t growth = 4096; // the most nodes that may result
  graph const& g;
  list<operator_class> what;
  list<char> live;
  list<int> first{}, parent{}; // of a node: its first axis here; of an axis: another one of its class, or itself

  constexpr explicit axis_table(graph const& graph_) : g(graph_), what(identify(graph_)), live(live_nodes(graph_)) {
    for (node const& n : g.nodes) {
      first.push_back(static_cast<int>(parent.size()));
      for (int d = 0; d < n.out.sizes.n; ++d) parent.push_back(static_cast<int>(parent.size()));
    }
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      if (live[n]) relate(static_cast<int>(n));
    choose();
  }
  constexpr dims const& sizes(int n) const { return g.nodes[n].out.sizes; }
  constexpr int operand(int n, int k) const { return g.edges[g.nodes[n].first + k]; }
  constexpr bool is_unrolled(int n, int axis) const { return chosen[root(first[n] + axis)]; }
  constexpr bool any_unrolled(int n) const {
    for (int d = 0; d < sizes(n).n; ++d)
      if (is_unrolled(n, d)) return true;
    return false;
  }
  /// Returns for each axis of node `n` the corresponding axis of its `e`-th operand; -1: none.
  constexpr dims sources(int n, int e) const {
    node const& nd = g.nodes[n];
    dims const &t = nd.out.sizes, &s = sizes(operand(n, e));
    operator_class const k = what[n];
    dims r = t;
    for (int d = 0; d < t.n; ++d) r[d] = -1;
    if (is_pointwise(k) || k == operator_class::convert || k == operator_class::expand) {
      for (int q = 0; q < s.n; ++q) r[q + t.n - s.n] = q;
    } else if (k == operator_class::permute) {
      r = nd.at[0];
    } else if (k == operator_class::reshape) {
      for (int q = 0, d = 0;
           true;) { // parts with equally many elements; among them those that have one axis on either side
        while (q < s.n && s[q] == 1) ++q;
        while (d < t.n && t[d] == 1) ++d;
        if (q == s.n || d == t.n) break;
        if (s[q] == t[d]) r[d] = q;
        index_t a = s[q++], b = t[d++];
        while (a != b && (a < b ? q < s.n : d < t.n))
          if (a < b) a *= s[q++];
          else b *= t[d++];
      }
    } else if (k == operator_class::slice || k == operator_class::slice_backward || k == operator_class::cat) {
      int const own = static_cast<int>(k == operator_class::slice_backward ? nd.at[1][0] : nd.at[0][0]);
      for (int d = 0; d < t.n; ++d) r[d] = d == own ? -1 : d;
    } else if (is_reduction(k)) {
      for (int q = 0, d = 0; q < s.n; ++q)
        if (!nd.at[0].contains(q)) r[d++] = q;
        else d += nd.at[1][0] != 0;
    }
    for (int d = 0; d < t.n; ++d)
      if (r[d] >= 0 && s[static_cast<int>(r[d])] != t[d]) r[d] = -1;
    return r;
  }

private:
  list<char> chosen{}, blocked{}, begins{};

  constexpr int root(int a) const {
    while (parent[a] != a) a = parent[a];
    return a;
  }
  constexpr void join(int a, int b) {
    a = root(a), b = root(b);
    parent[a > b ? a : b] = a > b ? b : a;
  }
  /// Joins the axes that node `n` shares with its operands, and blocks those that it treats otherwise.
  constexpr void relate(int n) {
    if (blocked.empty()) blocked.assign(parent.size(), 0), begins.assign(parent.size(), 0);
    node const& nd = g.nodes[n];
    operator_class const k = what[n];
    int const rank = nd.out.sizes.n;
    if (k == operator_class::constant) return;
    if (k == operator_class::data || (k == operator_class::arange && rank == 1)) {
      for (int d = 0; d < rank; ++d) begins[first[n] + d] = 1;
      return;
    }
    bool const walks =
        // it treats an axis index by index
        is_pointwise(k) || k == operator_class::convert || is_reduction(k) || is_view(k);
    list<char> found(max_rank, 0);
    for (int e = 0; e < nd.count; ++e) {
      int const o = operand(n, e);
      dims const s = sizes(o);
      list<char> used(max_rank, 0);
      if (walks) {
        dims const source = sources(n, e);
        for (int d = 0; d < rank; ++d)
          if (source[d] >= 0 && nd.out.sizes[d] != 1)
            join(first[n] + d, first[o] + static_cast<int>(source[d])), found[d] = used[source[d]] = 1;
        if (k == operator_class::slice && nd.out.sizes[static_cast<int>(nd.at[0][0])] == 1) used[nd.at[0][0]] = 1;
      }
      for (int q = 0; q < s.n; ++q)
        if (s[q] != 1 && !used[q]) blocked[first[o] + q] = 1;
    }
    bool const makes = is_pointwise(k) || k == operator_class::expand ||
                       (k == operator_class::slice_backward &&
                        // all indices of an axis are made from one
                        sizes(operand(n, 0))[static_cast<int>(nd.at[1][0])] == 1);
    for (int d = 0; d < rank; ++d)
      if (!found[d] && !makes) blocked[first[n] + d] = 1;
  }
  constexpr void choose() {
    chosen.assign(parent.size(), 0);
    if (blocked.empty()) return;
    for (int& p : parent) p = parent[p]; // earlier ones are roots or point to roots
    struct gain {
      index_t large_ones, small_ones, nodes;
    };
    list<gain> of(parent.size(), gain{0, 0, 0});
    for (std::size_t a = 0; a < parent.size(); ++a) {
      int const r = root(static_cast<int>(a));
      if (blocked[a]) blocked[r] = 1;
      if (begins[a]) begins[r] = 1;
    }
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      for (int d = 0; live[n] && d < sizes(static_cast<int>(n)).n; ++d) {
        dims const& s = sizes(static_cast<int>(n));
        gain& x = of[root(first[n] + d)];
        ++x.nodes;
        if (is_pointwise(what[n]) && s[d] != 0) ++(numel(s) / s[d] >= enough ? x.large_ones : x.small_ones);
      }
    index_t nodes = static_cast<index_t>(g.nodes.size());
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      for (int d = 0; d < sizes(static_cast<int>(n)).n; ++d) {
        std::ptrdiff_t const a = first[n] + d;
        index_t const size = sizes(static_cast<int>(n))[d];
        if (root(static_cast<int>(a)) != a || chosen[a] || blocked[a] || !begins[a] || size < 2 || size > longest)
          continue;
        if (of[a].large_ones <= of[a].small_ones || nodes + of[a].nodes * (size - 1) > growth) continue;
        chosen[a] = 1, nodes += of[a].nodes * (size - 1);
      }
  }
};

} // namespace varve::detail
