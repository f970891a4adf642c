// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/pass/dce.hpp>

#include <bit>
#include <type_traits>

/// @file
/// Constants of graphs. A number, or an array of equal elements, is a proxy without a node until something needs it.
/// Operators on such constants are computed while tracing. 0, 1, ..., n - 1 becomes an `arange`. Other arrays are
/// `constant` nodes of rank > 0. Their elements are in the graph's own list, which every pass copies, so that nothing
/// refers to destroyed objects. `cse` merges equal ones, and `fold` computes with up to 64 elements. Planning treats
/// them as memory that exists before the program runs (`is_given`); emission makes each a read-only table of the
/// executable.
namespace varve {
namespace detail {

/// True for factors of which three may be multiplied, in float too. An overflow would not be a constant expression.
constexpr bool is_moderate(double x) { return (x > 1e-12 && x < 1e12) || (x < -1e-12 && x > -1e12); }

/// True if a node matters for derivatives alone: `detach`, or a node of the traced body of a custom function, which has
/// a derivative of its own.
constexpr bool is_for_derivatives(node const& n, operator_class k) {
  return n.text || (k == operator_class::expand && n.at.count == 0 && n.op->own && n.op->name[0] == 'd');
}

/// The state of `fold`: what is known about the nodes made so far.
struct constant_elements {
  graph const& g;
  rewriter w;
  list<operator_class> what;   // of the old nodes
  list<char> live;             // of the old nodes
  list<int> uses{};            // of the old nodes
  list<operator_class> made{}; // of the new nodes
  list<char> splat{};          // every element of the new node is `value`
  list<double> value{};
  list<char> seen{}; // of the old nodes: views through which results are seen, where sharing matters
  purpose what_for = purpose::values;
  op_handle const* expand = nullptr;
  op_handle const *add_ = nullptr, *sub_ = nullptr, *neg_ = nullptr; // operators to write with, if the graph has them

  constexpr explicit constant_elements(graph const& graph_)
      : g(graph_), w(graph_), what(identify(graph_)), live(live_nodes(graph_)) {
    uses.assign(g.nodes.size(), 0);
    made.reserve(g.nodes.size()), splat.reserve(g.nodes.size()), value.reserve(g.nodes.size());
    for (int r : g.results) ++uses[r];
    int* const used = uses.data();
    operator_class const* kind = what.data();
    char const* alive = live.data();
    for (node const& nd : g.nodes) {
      operator_class const k = *kind++;
      if (!*alive++) continue;
      for (int e = 0; e < nd.count; ++e) ++used[w.edges[nd.first + e]];
      if (k == operator_class::add) add_ = nd.op;
      if (k == operator_class::sub) sub_ = nd.op;
      if (k == operator_class::neg) neg_ = nd.op;
      if (k == operator_class::expand && nd.at.count == 1) expand = nd.op;
    }
    if (!std::is_constant_evaluated()) find_only_beside();
  }
  constexpr node const& at(int n) const { return w.to.nodes[static_cast<std::size_t>(n)]; }
  constexpr int input(int n, int k) const { return w.to.edges[static_cast<std::size_t>(at(n).first + k)]; }
  constexpr operator_class kind(int n) const { return made[static_cast<std::size_t>(n)]; }
  constexpr bool is_splat(int n) const { return splat[static_cast<std::size_t>(n)] != 0; }
  /// True if all elements equal `x` bit for bit; 0 and -0 differ.
  constexpr bool is_splat(int n, double x) const {
    return is_splat(n) &&
           std::bit_cast<std::uint64_t>(value[static_cast<std::size_t>(n)]) == std::bit_cast<std::uint64_t>(x);
  }

  /// True if the elements are 0, 1, ..., n - 1.
  constexpr bool is_row(int n) const { return kind(n) == operator_class::arange && at(n).out.sizes.n == 1; }

  constexpr int add(node const& n, int const* in, operator_class k) {
    int const id = w.append(n, in);
    made.push_back(k);
    bool const constant_ = k == operator_class::constant,
               same = (k >= operator_class::reshape && k <= operator_class::slice) && is_splat(in[0]);
    splat.push_back(constant_ || same);
    value.push_back(constant_ ? n.value : same ? value[static_cast<std::size_t>(in[0])] : 0.0);
    return id;
  }
  /// Writes a constant of the given meta. Returns -1 if the graph has no operator to write it with.
  constexpr int splatted(meta const& m, double x) {
    if (is_compact(m.type) || (m.sizes.n > 0 ? !expand : !numbers)) return -1;
    node c;
    c.op = &constant_handle, c.out = {m.type, {}}, c.value = x;
    int const id = add(c, nullptr, operator_class::constant);
    if (m.sizes.n == 0) return id;
    node e;
    e.op = expand, e.out = m, e.at = attributes(m.sizes), e.count = 1;
    return add(e, &id, operator_class::expand);
  }
  /// Writes a binary operator in place of `nd`.
  constexpr int pair(op_handle const* op, operator_class k, node nd, int a, int b) {
    int const in[] = {a, b};
    nd.op = op, nd.count = 2;
    return add(nd, in, k);
  }
  /// True if two nodes are the same or will be merged: they have the same operator and operands.
  constexpr bool equal(int a, int b) const {
    if (a == b) return true;
    bool same = is_pointwise(kind(a)) && at(a).op == at(b).op && at(a).count == at(b).count && at(a).out == at(b).out &&
                at(a).at == at(b).at;
    for (int e = 0; same && e < at(a).count; ++e) same = input(a, e) == input(b, e);
    return same;
  }
  constexpr int negated(node nd, int a) {
    if (kind(a) == operator_class::neg) return input(a, 0);
    nd.op = neg_, nd.count = 1;
    return add(nd, &a, operator_class::neg);
  }
  /// True for a number other than 0 that may be multiplied with others, because it is neither huge nor tiny.
  constexpr bool is_number(int n) const { return is_splat(n) && is_moderate(value[static_cast<std::size_t>(n)]); }
  /// The node of which a new node is a multiple, and the factor.
  struct multiple {
    int of;
    double by;
  };
  constexpr multiple factored(int n) const {
    node const& nd = at(n);
    if (!is_floating(nd.out.type)) return {n, 1};
    if (kind(n) == operator_class::neg) return {input(n, 0), -1};
    if (kind(n) != operator_class::mul) return {n, 1};
    for (int k = 0; k < 2; ++k)
      if (is_number(input(n, k)) && at(input(n, 1 - k)).out == nd.out)
        return {input(n, 1 - k), value[static_cast<std::size_t>(input(n, k))]};
    return {n, 1};
  }
  /// True if the rank of an operand affects the dtype of the result. Tensors convert inside of operators, and one of
  /// rank 0 has less weight in type promotion.
  constexpr bool raises_dtype(node const& nd, int const* in, int e) const {
    int const first = nd.count == 3; // a condition has no such effect
    for (int q = first; q < nd.count && e >= first; ++q)
      if (at(in[q]).out.type != at(in[e]).out.type) return true;
    return false;
  }
  /// True for a comparison of values of different dtypes, whose common dtype depends on ranks.
  constexpr bool compares_dtypes(node const& nd, int const* in) const {
    bool differ = false;
    for (int e = 1; e < nd.count; ++e) differ = differ || at(in[e]).out.type != at(in[0]).out.type;
    return differ && nd.out.type == dtype::bool_;
  }
  /// Returns a value of operand `n` as an elementwise operator reads it: in the dtype of the result, except
  /// comparisons.
  constexpr double operand(node const& nd, int n, double x) const {
    dtype const from = at(n).out.type, to = nd.out.type == dtype::bool_ ? from : nd.out.type;
    return kernel::converted(to, kernel::converted(from, x), from);
  }
  /// True if a permutation exchanges the last two axes and no others.
  static constexpr bool swaps(dims const& p) {
    bool r = p.n >= 2 && p[p.n - 1] == p.n - 2 && p[p.n - 2] == p.n - 1;
    for (int d = 0; d + 2 < p.n; ++d) r = r && p[d] == d;
    return r;
  }
  /// Whether the node that is visited may become a constant of rank 0. When a graph is interpreted, that is a plain
  /// number, which has less weight in type promotion than a tensor. A node may become one if it is computed from such
  /// numbers, or is only used beside tensors of its dtype.
  bool numbers = true;
  list<char> only_beside{}; // of the old nodes; not used at compile time, where nothing is interpreted
  constexpr bool may_be_number(int n, operator_class k, int const* in) const {
    if (std::is_constant_evaluated() || only_beside[static_cast<std::size_t>(n)]) return true;
    bool r = k != operator_class::convert; // a conversion returns a tensor
    for (int e = 0; e < g.nodes[static_cast<std::size_t>(n)].count; ++e)
      r = r && kind(in[e]) == operator_class::constant;
    return r;
  }
  void find_only_beside();
  constexpr int visit(int n);
  constexpr int arithmetic(node const& nd, operator_class k, int const* in);
  constexpr int view(node nd, operator_class k, int const* in, bool shows);
  constexpr int slice(node nd, int a);

  static constexpr index_t few = 64; // elements of a constant that `fold` computes
  constexpr bool evaluates(node const& nd, operator_class k, int const* in) const;
  constexpr int evaluated(node const& nd, operator_class k, int const* in);
};

inline void constant_elements::find_only_beside() {
  only_beside.assign(g.nodes.size(), 1);
  for (int r : g.results) only_beside[static_cast<std::size_t>(r)] = 0;
  for (std::size_t u = 0; u < g.nodes.size(); ++u) {
    node const& user = g.nodes[u];
    auto const operand = [&](int e) {
      return static_cast<std::size_t>(g.edges[static_cast<std::size_t>(user.first + e)]);
    };
    for (int e = 0; live[u] && e < user.count; ++e) {
      meta const& m = g.nodes[operand(e)].out;
      bool beside = what[u] == operator_class::expand && user.at.count == 1;
      for (int q = 0; is_pointwise(what[u]) && q < user.count; ++q) {
        meta const& other = g.nodes[operand(q)].out;
        beside = beside || (other.type == m.type && other.sizes.n > 0);
      }
      if (!beside) only_beside[operand(e)] = 0;
    }
  }
}

/// True if a node is an operator on constants, at least one of them an array, and has few elements.
constexpr bool constant_elements::evaluates(node const& nd, operator_class k, int const* in) const {
  bool const elementwise = (k >= operator_class::add && k <= operator_class::convert) &&
                           (is_floating(nd.out.type) || k >= operator_class::abs);
  if (!elementwise && k != operator_class::reshape && k != operator_class::permute && k != operator_class::slice)
    return false;
  bool any = false;
  for (int e = 0; e < nd.count; ++e) {
    if (kind(in[e]) == operator_class::data || is_row(in[e])) any = true;
    else if (!is_splat(in[e])) return false;
  }
  if (!any || nd.count > 3 || is_compact(nd.out.type)) return false; // graphs have no such constants
  if (k != operator_class::convert && compares_dtypes(nd, in)) return false;
  for (extent d : nd.out.sizes)
    if (is_symbol(d)) return false;
  for (int e = 0; e < nd.at.count; ++e)
    for (extent d : nd.at[e])
      if (is_symbol(d)) return false;
  return numel(nd.out.sizes) <= few;
}
/// Writes the result of such an operator as a constant. Returns -1 if an element may overflow, which constant
/// expressions do not allow, or is an integer that `double` cannot represent.
constexpr int constant_elements::evaluated(node const& nd, operator_class k, int const* in) {
  dims const& s = nd.out.sizes;
  dims const strides = contiguous_strides(s);
  list<double> result;
  bool same = true;
  for (index_t e = 0, all = numel(s); e < all; ++e) {
    double x[4]{};
    for (int q = 0; q < nd.count; ++q) {
      dims const& a = at(in[q]).out.sizes;
      dims const as = contiguous_strides(a);
      index_t from = k == operator_class::reshape ? e : 0;
      for (int d = 0; d < s.n && k != operator_class::reshape; ++d) {
        index_t const i = e / strides[d] % s[d];
        if (k == operator_class::permute) from += i * as[static_cast<int>(nd.at[0][d])];
        else if (k == operator_class::slice)
          from += (d == nd.at[0][0] ? index_t(nd.at[0][1] + nd.at[0][3] * i) : i) * as[d];
        else if (int const own = d - (s.n - a.n); own >= 0 && a[own] != 1) from += i * as[own];
      }
      x[q] = is_splat(in[q]) ? value[static_cast<std::size_t>(in[q])]
             : is_row(in[q]) ? static_cast<double>(from)
                             : w.to.constants[static_cast<std::ptrdiff_t>(at(in[q]).value) + from];
      if (k <= operator_class::convert && !(x[q] > -1e15 && x[q] < 1e15)) return -1;
      if (k >= operator_class::add && k < operator_class::convert) x[q] = operand(nd, in[q], x[q]);
    }
    double y = x[0];
    if (k == operator_class::add) y = x[0] + x[1];
    else if (k == operator_class::sub) y = x[0] - x[1];
    else if (k == operator_class::mul) y = x[0] * x[1];
    else if (k == operator_class::neg) y = -x[0];
    else if (k >= operator_class::abs && k <= operator_class::cheap) y = nd.op->lane_f64(x);
    else if (k == operator_class::div) {
      if (x[1] > -1e-15 && x[1] < 1e-15) return -1;
      y = x[0] / x[1];
    }
    if (k <= operator_class::convert) {
      if (!is_floating(nd.out.type) && !(y > -1e15 && y < 1e15)) return -1; // the exact integer is needed
      y = kernel::converted(nd.out.type, y, k == operator_class::convert ? at(in[0]).out.type : nd.out.type);
    }
    result.push_back(y);
    same = same && std::bit_cast<std::uint64_t>(y) == std::bit_cast<std::uint64_t>(result[0]);
  }
  if (same && !result.empty())
    if (int const id = splatted(nd.out, result[0]); id >= 0 || s.n == 0) return id;
  node c;
  c.op = &constant_handle, c.out = {nd.out.type, s}, c.value = static_cast<double>(w.to.constants.size());
  for (double y : result) w.to.constants.push_back(y);
  return add(c, nullptr, operator_class::data);
}
} // namespace detail
} // namespace varve
