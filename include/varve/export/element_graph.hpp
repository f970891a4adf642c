// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/graph/operator_class.hpp>
#include <varve/op/add.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/slice.hpp>
#include <varve/op/to.hpp>
#include <varve/pass/optimize.hpp>

#include <vector>

namespace varve {
namespace detail {

/// The state of `as_numbers`. Each old node that is unrolled has one new node per element, in row-major order.
class element_unroller {
public:
  VARVE_COLD element_unroller(graph const& g_, index_t most_)
      : g(g_), what(identify(g_)), most(most_), w(g_), pieces(g_.nodes.size()), flat(g_.nodes.size(), -1),
        whole(g_.nodes.size(), 0), unrolled(g_.nodes.size(), 0) {
    for (std::size_t n = 0; n < g.nodes.size(); ++n) unrolled[n] = can_unroll(static_cast<int>(n));
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      if (!is_unrolled(static_cast<int>(n)))
        for (int k = 0; k < g.nodes[n].count; ++k) whole[at(operand(static_cast<int>(n), k))] = 1;
    for (int r : g.results) whole[at(r)] = 1;
  }
  VARVE_COLD graph run() {
    return w.run([&](int n) { return visit(n); }, [] {});
  }

private:
  graph const& g;
  list<operator_class> what;
  index_t most;
  rewriter w;
  std::vector<std::vector<int>> pieces;
  std::vector<int> flat;   // of a value in memory: a view of it with one axis
  std::vector<char> whole; // results, and operands of operators that take arrays
  std::vector<char> unrolled;

  static std::size_t at(int n) { return static_cast<std::size_t>(n); }
  int operand(int n, int k) const { return g.edges[g.nodes[n].first + k]; }
  dims const& sizes(int n) const { return g.nodes[n].out.sizes; }
  index_t elements(int n) const { return numel(sizes(n)).number(); }
  bool is_unrolled(int n) const { return unrolled[at(n)] != 0; }
  bool can_unroll(int n) const {
    operator_class const k = what[n];
    bool const known = is_pointwise(k) || k == operator_class::convert || is_view(k) || is_reduction(k) ||
                       k == operator_class::mm || k == operator_class::data || k == operator_class::constant ||
                       k == operator_class::arange;
    if (!known || elements(n) > most || elements(n) == 0) return false;
    for (int k2 = 0; k2 < g.nodes[n].count; ++k2)
      if (index_t const m = elements(operand(n, k2)); m > most || m == 0) return false;
    return true;
  }

  // ---- new nodes
  int write(op_handle const& op, attributes const& a, meta const& out, std::vector<int> const& in) {
    node nd;
    nd.op = &op, nd.at = a, nd.out = out, nd.count = static_cast<int>(in.size());
    return w.append(nd, in.data());
  }
  int number(dtype t, double x) {
    node c;
    c.op = &constant_handle, c.out = {t, {}}, c.value = x;
    return w.append(c, nullptr);
  }
  int reshaped(int n, dims const& s) {
    meta const m = w.to.nodes[n].out;
    return m.sizes == s ? n : write(handle<reshape_t>, attributes(s), {m.type, s}, {n});
  }
  /// Returns element `e` of an old node.
  int piece(int n, index_t e) {
    if (is_unrolled(n)) return pieces[at(n)][static_cast<std::size_t>(e)];
    std::vector<int>& mine = pieces[at(n)];
    if (mine.empty()) mine.assign(static_cast<std::size_t>(elements(n)), -1);
    int& r = mine[static_cast<std::size_t>(e)];
    if (r >= 0) return r;
    if (flat[at(n)] < 0) flat[at(n)] = reshaped(w.now[n], dims{elements(n)});
    int const one = elements(n) == 1 ? flat[at(n)]
                                     : write(handle<slice_t>, attributes(dims{0, e, e + 1, 1}),
                                             {g.nodes[n].out.type, dims{1}}, {flat[at(n)]});
    return r = reshaped(one, dims{});
  }
  /// Returns an old node as an array.
  int together(int n) {
    std::vector<int> in;
    for (int p : pieces[at(n)]) in.push_back(reshaped(p, dims{1}));
    return reshaped(joined(in, 0, in.size()), sizes(n));
  }
  /// Returns values [first, last) as an array, by a balanced tree of `cat`s.
  int joined(std::vector<int> const& values, std::size_t first, std::size_t last) {
    if (last - first == 1) return values[first];
    std::size_t const middle = first + (last - first) / 2;
    int const a = joined(values, first, middle), b = joined(values, middle, last);
    return write(handle<cat_t>, attributes(dims{0}), {w.to.nodes[a].out.type, dims{static_cast<index_t>(last - first)}},
                 {a, b});
  }
  int converted(int n, dtype t) {
    return w.to.nodes[n].out.type == t ? n
                                       : write(handle<to_t>, attributes(dims{static_cast<index_t>(t)}), {t, {}}, {n});
  }

  // ---- the elements of a node
  static dims index_of(dims const& s, index_t e) {
    dims r = s;
    for (int k = s.n - 1; k >= 0; --k) r[k] = e % s[k].number(), e /= s[k].number();
    return r;
  }
  static index_t number_of(dims const& s, dims const& index) {
    index_t r = 0;
    for (int k = 0; k < s.n; ++k) r = r * s[k].number() + index[k].number();
    return r;
  }
  /// Returns the element of an operand that broadcasts to the index of a result.
  int broadcast_piece(int n, dims const& index) {
    dims const& s = sizes(n);
    dims own = s;
    for (int k = 0; k < s.n; ++k) own[k] = s[k] == 1 ? extent(0) : index[index.n - s.n + k];
    return piece(n, number_of(s, own));
  }
  int reduced(int n, dims const& index) {
    node const& nd = g.nodes[n];
    int const in = operand(n, 0);
    bool const keeps = nd.at[1][0] != 0;
    op_handle const& op = what[n] == operator_class::sum    ? handle<add_t>
                          : what[n] == operator_class::amax ? handle<maximum_t>
                                                            : handle<minimum_t>;
    int r = -1;
    for (index_t e = 0; e < elements(in); ++e) {
      dims const there = index_of(sizes(in), e);
      bool mine = true;
      for (int k = 0, kept = 0; k < there.n; ++k) {
        bool const folds = nd.at[0].contains(k);
        if (!folds) mine = mine && there[k] == index[kept];
        kept += keeps || !folds;
      }
      if (!mine) continue;
      int const x = converted(piece(in, e), nd.out.type);
      r = r < 0 ? x : write(op, no_attributes, {nd.out.type, {}}, {r, x});
    }
    return r;
  }
  int product(int n, dims index) {
    node const& nd = g.nodes[n];
    int const a = operand(n, 0), b = operand(n, 1), last = index.n - 1;
    bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
    index_t const inner = sizes(a)[last - (ta ? 1 : 0)].number();
    int r = -1;
    meta const m{nd.out.type, {}};
    for (index_t q = 0; q < inner; ++q) {
      dims i = index, j = index;
      i[last - 1] = ta ? extent(q) : index[last - 1], i[last] = ta ? index[last - 1] : extent(q);
      j[last - 1] = tb ? index[last] : extent(q), j[last] = tb ? extent(q) : index[last];
      int const x =
          write(handle<mul_t>, no_attributes, m, {piece(a, number_of(sizes(a), i)), piece(b, number_of(sizes(b), j))});
      r = r < 0 ? x : write(handle<add_t>, no_attributes, m, {r, x});
    }
    return r < 0 ? number(nd.out.type, 0) : r;
  }
  int element(int n, index_t e) {
    node const& nd = g.nodes[n];
    dims index = index_of(nd.out.sizes, e);
    switch (what[n]) {
    case operator_class::constant:
      return number(nd.out.type, nd.value);
    case operator_class::data:
      return number(nd.out.type, g.constants[static_cast<std::ptrdiff_t>(nd.value) + e]);
    case operator_class::arange:
      return number(nd.out.type, static_cast<double>(e));
    case operator_class::reshape:
      return piece(operand(n, 0), e);
    case operator_class::expand:
      return broadcast_piece(operand(n, 0), index);
    case operator_class::permute: {
      dims from = index;
      for (int k = 0; k < index.n; ++k) from[static_cast<int>(nd.at[0][k])] = index[k];
      return piece(operand(n, 0), number_of(sizes(operand(n, 0)), from));
    }
    case operator_class::slice: {
      int const axis = static_cast<int>(nd.at[0][0]);
      index[axis] = nd.at[0][1] + nd.at[0][3] * index[axis];
      return piece(operand(n, 0), number_of(sizes(operand(n, 0)), index));
    }
    case operator_class::slice_backward: {
      int const axis = static_cast<int>(nd.at[1][0]);
      index_t const from = nd.at[1][1], step = nd.at[1][3], i = index[axis];
      if (i < from || i >= nd.at[1][2] || (i - from) % step != 0) return number(nd.out.type, 0);
      index[axis] = (i - from) / step;
      return piece(operand(n, 0), number_of(sizes(operand(n, 0)), index));
    }
    case operator_class::cat: {
      int const axis = static_cast<int>(nd.at[0][0]);
      int k = 0;
      for (; index[axis] >= sizes(operand(n, k))[axis]; ++k) index[axis] = index[axis] - sizes(operand(n, k))[axis];
      return piece(operand(n, k), number_of(sizes(operand(n, k)), index));
    }
    case operator_class::sum:
    case operator_class::amax:
    case operator_class::amin:
      return reduced(n, index);
    case operator_class::mm:
      return product(n, index);
    default: {
      std::vector<int> in;
      for (int k = 0; k < nd.count; ++k) in.push_back(broadcast_piece(operand(n, k), index));
      return write(*nd.op, nd.at, {nd.out.type, {}}, in);
    }
    }
  }
  int visit(int n) {
    if (!is_unrolled(n)) return w.copy(g.nodes[n]);
    if (what[n] == operator_class::constant) {
      pieces[at(n)] = {w.copy(g.nodes[n])};
      return pieces[at(n)][0];
    }
    std::vector<int> mine;
    for (index_t e = 0; e < elements(n); ++e) mine.push_back(element(n, e));
    pieces[at(n)] = mine;
    return whole[at(n)] ? together(n) : -1;
  }
};
} // namespace detail

/// Returns a graph in which arrays of at most `most` elements are numbers, one node for each element: products with
/// constant zeros and ones then fold, and programs of small matrices become straight-line code. Arguments, results and
/// what operators with functions take stay arrays. The graph must be optimized and without symbolic sizes. Linear in
/// the elements, times the inner sizes of products and reductions.
template <class G>
  requires std::is_same_v<G, graph>
G as_numbers(G const& g, index_t most) {
  G const numbers = detail::element_unroller(g, most).run();
  return optimize(numbers, purpose::values);
}

} // namespace varve

#pragma GCC diagnostic pop
