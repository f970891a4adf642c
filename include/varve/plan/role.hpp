// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/unfolding.hpp>

namespace varve::fusion {

/// How a node is executed: computed where it is used, reduced over a loop, or by a call of its own.
enum class role : unsigned char { source, inlined, reduction, product, call };

/// The roles and costs of all nodes of a graph.
struct role_table {
  graph const& g;
  list<operator_class> const& what;
  list<role> of{};
  list<index_t> weight{}; // cost of computing one element, including inlined operands; a cheap operator is 1
  list<index_t> dense{};  // the part of this cost that varies with every element
  list<char> heavy{};     // true if that part contains an operator of many instructions

  static constexpr index_t few = 16; // loops up to this length are unrolled
  /// Returns the cost of one operator without its operands.
  static constexpr index_t own(operator_class k) {
    if (k == operator_class::pointwise || k == operator_class::div) return 8;
    return (k >= operator_class::add && k <= operator_class::cheap) ? 1 : 0;
  }

  constexpr role_table(graph const& graph_, list<operator_class> const& what_) : g(graph_), what(what_) {
    std::size_t const n = g.nodes.size();
    of.assign(n, role{}), weight.assign(n, 0), dense.assign(n, 0), heavy.assign(n, 0);
    columns const to{g.nodes.data(), g.edges.data(), of.data(), weight.data(), dense.data(), heavy.data()};
    operator_class const* const kinds = what.data();
    for (std::size_t k = 0; k < n; ++k) classify(to, static_cast<int>(k), kinds[k]);
  }
  constexpr dims const& sizes(int n) const { return g.nodes[static_cast<std::size_t>(n)].out.sizes; }
  constexpr int input(node const& n, int k) const { return g.edges[static_cast<std::size_t>(n.first + k)]; }

  /// True if the results of a reduction are accumulated side by side in one loop over the reduced axes.
  constexpr bool unrolls(int n) const {
    if (n < 0) return false;
    auto const k = static_cast<std::size_t>(n);
    node const& nd = g.nodes[k];
    if (of[k] == role::product) {
      index_t const kept = numel(nd.out.sizes);
      return kept > 1 && kept <= few && inner(nd) >= 2 * kept;
    }
    if (of[k] != role::reduction) return false;
    dims const& s = sizes(input(nd, 0));
    index_t const kept = numel(nd.out.sizes), last = s.n - 1;
    return kept > 1 && kept <= few && numel(s) >= 4 * kept * kept && !nd.at[0].contains(last) &&
           s[static_cast<int>(last)] > 1 && dense[static_cast<std::size_t>(input(nd, 0))] * kept <= 64;
  }
  /// Returns the iteration space of a stored node.
  constexpr dims space(int n) const {
    auto const k = static_cast<std::size_t>(n);
    node const& nd = g.nodes[k];
    if (of[k] == role::product) {
      dims const& b = sizes(input(nd, 1));
      dims const& a = sizes(input(nd, 0));
      if (unrolls(n)) return squeeze(dims(inner(nd)));
      return squeeze(numel(a) > numel(b) ? a : b);
    }
    if (of[k] != role::reduction) return squeeze(nd.out.sizes);
    dims const& s = sizes(input(nd, 0));
    if (!unrolls(n)) return squeeze(s);
    dims r;
    for (int d = 0; d < s.n; ++d)
      if (nd.at[0].contains(d) && s[d] != 1) r.push_back(s[d]);
    return r;
  }

  /// True if a value that two loops need is computed in both. A few cheap operators take less time than storing to
  /// memory beyond the first caches and reading back.
  constexpr bool recomputes(int n) const {
    bool const is_far = numel(g.nodes[n].out.sizes) * itemsize(g.nodes[n].out.type) > index_t{1} << 17;
    return weight[n] < 8 || (is_far && !heavy[n] && dense[n] < 32);
  }

private:
  constexpr index_t inner(node const& nd) const {
    dims const& a = sizes(input(nd, 0));
    return a[a.n - (nd.at[0][0] != 0 ? 2 : 1)];
  }
  struct columns {
    node const* nodes;
    int const* edges;
    role* of;
    index_t *weight, *dense;
    char* heavy;
  };
  constexpr void classify(columns const& to, int n, operator_class k) const {
    node const& nd = to.nodes[n];
    role r = role::inlined;
    index_t w = own(k), d = w, times = 1;
    bool much = w > 1;
    index_t const size = numel(nd.out.sizes);
    switch (k) {
    case operator_class::placeholder:
    case operator_class::data:
    case operator_class::constant:
      r = role::source;
      break;
    case operator_class::sum:
    case operator_class::amax:
    case operator_class::amin: {
      index_t const reduced = numel(sizes(input(nd, 0))) / (size > 0 ? size : 1);
      if (reduced <= few && to.dense[to.edges[nd.first]] * reduced <= 64 && reduced > 0)
        times = reduced, w = d = reduced;
      else r = role::reduction;
      break;
    }
    case operator_class::mm: {
      index_t const in = inner(nd);
      dims const& s = nd.out.sizes;
      bool const vector = s[s.n - 1] == 1 || s[s.n - 2] == 1;
      if (in == 0 || !is_floating(nd.out.type)) r = role::call;
      else if (in == 1 || (vector && in <= few && (size >= 8 || in <= 4)) || (in <= 4 && size <= 16))
        times = in, w = d = in;
      else r = vector && s.n == 2 ? role::product : role::call;
      break;
    }
    case operator_class::slice_backward:
      r = nd.at[1][3] == 1 ? role::inlined : role::call;
      break;
    case operator_class::gather:
    case operator_class::scatter_add:
    case operator_class::convolution:
    case operator_class::argmax:
    case operator_class::cond:
    case operator_class::scan:
    case operator_class::getitem:
    case operator_class::other:
      r = role::call;
      break;
    default:
      break;
    }
    if (r == role::inlined)
      for (int e = 0; e < nd.count; ++e) {
        int const o = to.edges[nd.first + e];
        if (to.of[o] != role::inlined) continue;
        w += to.weight[o] * times;
        if ((size > 1 || times > 1) && numel(to.nodes[o].out.sizes) >= size)
          d += to.dense[o] * times, much = much || to.heavy[o];
      }
    else w = d = 0;
    to.of[n] = r, to.heavy[n] = much;
    to.weight[n] = w < 100000 ? w : 100000, to.dense[n] = d < 100000 ? d : 100000;
  }
};

} // namespace varve::fusion
