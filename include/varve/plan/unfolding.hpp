// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/plan/index_maps.hpp>
#include <varve/plan/program.hpp>

/// @file
/// Unfolding: finds which values, at which indices, one point of an iteration space needs. Views become index maps.
/// `slice_backward` and `cat` are resolved by splitting the space into boxes, in each of which they are a plain shift
/// or zero.
namespace varve::fusion {

/// One node at one index map.
struct instance {
  enum class form : unsigned char { value, alias, zero, load } as;
  int node;
  int map;  // first axis_index
  int next; // another instance of the node
  int args, count;
};

/// The facts that unfolding requires from the planner: which values are in memory.
struct facts {
  graph const& g;
  operator_class const* what;
  char const* stored; // the node has a buffer
  char const* opaque; // the node is never computed in a loop
  int const* group;   // of a stored node
};

struct unfolding {
  facts const& f;
  int group;     // stored nodes of this group are computed, not loaded
  bool explore;  // follow all branches, without boxes
  int self = -1; // while exploring: the root itself
  box range{};
  list<int> head{};
  list<std::uint64_t> demanded_bits{},
      demanded_words{}; // a bit for each node that was demanded, and for each 64 of them
  list<axis_index> maps{};
  list<instance> all{};
  list<int> args{};
  int highest = -1;
  list<index_t>* asked = nullptr; // if sizes are samples: numbers that decisions about boxes assume to be at least 0
  int cut_dim = -1;               // set when the box must be split at cut_at
  index_t cut_at = 0;

  node const* nodes = nullptr; // pointers to the data of these lists, which never grow
  int const* edges = nullptr;
  int* heads = nullptr;
  std::uint64_t *bits = nullptr, *words = nullptr;

  constexpr explicit unfolding(facts const& facts_, int group_, bool explore_)
      : f(facts_), group(group_), explore(explore_), head(facts_.g.nodes.size(), -1),
        demanded_bits(facts_.g.nodes.size() / 64 + 1, 0), demanded_words(facts_.g.nodes.size() / 4096 + 1, 0) {
    nodes = f.g.nodes.data(), edges = f.g.edges.data(), heads = head.data(), bits = demanded_bits.data(),
    words = demanded_words.data();
  }
  unfolding(unfolding const&) = delete;
  unfolding& operator=(unfolding const&) = delete;

  constexpr void clear() {
    for (instance const& i : all) heads[i.node] = -1, bits[i.node / 64] = 0, words[i.node / 4096] = 0;
    maps.clear(), all.clear(), args.clear();
    highest = cut_dim = -1;
  }
  /// Returns the next demanded node below `n` (-1: none); `above` returns the next one above it (more than `highest`:
  /// none). A sweep thus costs time proportional to the demanded nodes, not to the size of the graph.
  constexpr int below(int n) const {
    int k = n / 64;
    if (std::uint64_t const here = bits[k] & ((std::uint64_t{1} << n % 64) - 1))
      return k * 64 + 63 - __builtin_clzll(here);
    int w = k / 64;
    std::uint64_t some = words[w] & ((std::uint64_t{1} << k % 64) - 1);
    while (!some && w > 0) some = words[--w];
    if (!some) return -1;
    k = w * 64 + 63 - __builtin_clzll(some);
    return k * 64 + 63 - __builtin_clzll(bits[k]);
  }
  constexpr int above(int n) const {
    if (++n > highest) return n;
    int k = n / 64;
    if (std::uint64_t const here = bits[k] >> n % 64) return n + __builtin_ctzll(here);
    int const last = highest / 4096;
    int w = k / 64;
    std::uint64_t some = k % 64 == 63 ? 0 : words[w] >> (k % 64 + 1) << (k % 64 + 1);
    while (!some && w < last) some = words[++w];
    if (!some) return highest + 1;
    k = w * 64 + __builtin_ctzll(some);
    return k * 64 + __builtin_ctzll(bits[k]);
  }
  constexpr dims const& sizes(int n) const { return nodes[n].out.sizes; }

  /// Returns the instance of `n` at the map `m`, which is made if missing. Axes of size 1 are normalized to index 0.
  constexpr int demand(int n, axis_index const* m) {
    dims const& s = nodes[n].out.sizes;
    axis_index mine[max_rank];
    for (int k = 0; k < s.n; ++k)
      if (s.v[k] != 1) mine[k] = m[k];
      else mine[k] = {-1, 0, 0};
    int const first = heads[n];
    instance const* const known_ones = first >= 0 ? all.data() : nullptr;
    for (int i = first; i >= 0; i = known_ones[i].next) {
      axis_index const* const at = maps.data() + known_ones[i].map;
      bool same = true;
      for (int k = 0; k < s.n && same; ++k)
        same = at[k].dim == mine[k].dim && at[k].offset == mine[k].offset && at[k].coef == mine[k].coef;
      if (same) return i;
    }
    int const id = static_cast<int>(all.size());
    all.push_back({instance::form::value, n, static_cast<int>(maps.size()), first, 0, 0});
    for (int k = 0; k < s.n; ++k) maps.push_back(mine[k]);
    if (first < 0) bits[n / 64] |= std::uint64_t{1} << n % 64, words[n / 4096] |= std::uint64_t{1} << n / 64 % 64;
    heads[n] = id;
    if (n > highest) highest = n;
    return id;
  }
  constexpr bool is_identity(instance const& i, dims const& space) const {
    dims const& s = sizes(i.node);
    if (!(squeeze(s) == space)) return false;
    axis_index m[max_rank]{};
    identity_map(s, m);
    for (int k = 0; k < s.n; ++k)
      if (!(m[k] == maps[static_cast<std::size_t>(i.map + k)])) return false;
    return true;
  }
  constexpr bool is_leaf(int n) const {
    if (is_given(f.what[n]) || f.opaque[n]) return true;
    return f.stored[n] && (explore ? n != self : f.group[n] != group);
  }

  /// Resolves everything demanded so far down to loads and constants, in one sweep from high to low node numbers.
  constexpr void run() {
    for (int n = highest; n >= 0 && cut_dim < 0; n = below(n))
      for (int i = heads[n]; i >= 0 && cut_dim < 0; i = all.data()[i].next) expand(i, n);
  }

private:
  constexpr void operand(int i, int n, axis_index const* m) {
    int const a = demand(n, m);
    args.push_back(a);
    ++all.data()[i].count;
  }
  constexpr void form(int i, instance::form x) { all.data()[i].as = x; }
  constexpr void expand(int i, int n); // an instance of node `n`
  // One function for each class of operators: demands what instance `i` of node `nd` needs. `m` is a copy of its map.
  constexpr void through_permute(int i, node const& nd, axis_index const* m);
  constexpr void through_reshape(int i, node const& nd, axis_index const* m);
  constexpr void through_slice(int i, node const& nd, axis_index* m);
  constexpr void through_slice_backward(int i, node const& nd, axis_index* m);
  constexpr void through_cat(int i, node const& nd, axis_index* m);
  constexpr void unroll_reduction(int i, node const& nd, axis_index const* m);
  constexpr void unroll_product(int i, node const& nd, axis_index* m);
  constexpr void broadcast_operands(int i, node const& nd, axis_index const* m);
  /// Tests if index `x` is in [from, to) in the box: 1 everywhere, 0 nowhere, -1 if the box must be split.
  constexpr int inside(axis_index const& x, index_t from, index_t to) {
    if (x.dim < 0 || x.coef == 0) return x.offset >= from && x.offset < to;
    index_t const lo = range.lo[x.dim], hi = range.hi[x.dim];
    index_t const first = x.offset + x.coef * lo, last = x.offset + x.coef * (hi - 1);
    auto decided = [this](bool is, index_t more, index_t less) {
      return is && (!asked || (asked->push_back(more - less), true));
    };
    if (first >= from && last < to) return decided(true, first, from), decided(true, to - 1, last);
    if (decided(last < from, from - 1, last) || decided(first >= to, first, to)) return 0;
    index_t const edge = first < from ? from : to; // the first index beyond it starts the next box
    cut_dim = x.dim;
    cut_at = (edge - x.offset + x.coef - 1) / x.coef;
    return -1;
  }
};

constexpr void unfolding::expand(int i, int n) {
  instance& me = all.data()[i];
  me.args = static_cast<int>(args.size());
  if (is_leaf(n)) {
    me.as = instance::form::load;
    return;
  }
  operator_class const what = f.what[n];
  if (what == operator_class::constant || what == operator_class::count || what == operator_class::arange) return;
  node const& nd = nodes[n];
  axis_index m[max_rank]; // the map of the instance, which may move
  axis_index const* const mine = maps.data() + me.map;
  int const rank = nd.out.sizes.n;
  for (int k = 0; k < rank; ++k) m[k] = mine[k];
  switch (what) {
  case operator_class::permute:
    return through_permute(i, nd, m);
  case operator_class::reshape:
    return through_reshape(i, nd, m);
  case operator_class::slice:
    return through_slice(i, nd, m);
  case operator_class::slice_backward:
    return through_slice_backward(i, nd, m);
  case operator_class::cat:
    return through_cat(i, nd, m);
  case operator_class::sum:
  case operator_class::amax:
  case operator_class::amin:
    return unroll_reduction(i, nd, m);
  case operator_class::mm:
    return unroll_product(i, nd, m);
  case operator_class::one_hot: // compares the operand with the last index
    return operand(i, edges[nd.first], m);
  case operator_class::expand:
    broadcast_operands(i, nd, m);
    return form(i, instance::form::alias);
  default: // pointwise and convert
    return broadcast_operands(i, nd, m);
  }
}
constexpr void unfolding::through_permute(int i, node const& nd, axis_index const* m) {
  axis_index o[max_rank];
  for (int k = 0; k < nd.out.sizes.n; ++k) o[nd.at[0][k]] = m[k];
  operand(i, edges[nd.first], o);
  form(i, instance::form::alias);
}
constexpr void unfolding::through_reshape(int i, node const& nd, axis_index const* m) {
  dims const& s = sizes(edges[nd.first]);
  if (!(squeeze(s) == squeeze(nd.out.sizes)))
    return form(i, instance::form::load); // a linear load of the operand's buffer
  axis_index o[max_rank];
  int at = 0;
  for (int k = 0; k < s.n; ++k) {
    if (s.v[k] == 1) continue;
    while (nd.out.sizes.v[at] == 1) ++at;
    o[k] = m[at++];
  }
  operand(i, edges[nd.first], o);
  form(i, instance::form::alias);
}
constexpr void unfolding::through_slice(int i, node const& nd, axis_index* m) {
  dims const& a = nd.at[0];
  axis_index& x = m[a[0]];
  x.offset = a[1] + a[3] * x.offset;
  x.coef *= a[3];
  operand(i, edges[nd.first], m);
  form(i, instance::form::alias);
}
constexpr void unfolding::through_slice_backward(int i, node const& nd, axis_index* m) {
  dims const& a = nd.at[1];
  int const within = explore ? 1 : inside(m[a[0]], a[1], a[2]);
  if (within == 0) return form(i, instance::form::zero);
  if (within < 0) return;
  m[a[0]].offset -= a[1];
  operand(i, edges[nd.first], m);
  form(i, instance::form::alias);
}
constexpr void unfolding::through_cat(int i, node const& nd, axis_index* m) {
  int const axis = static_cast<int>(nd.at[0][0]);
  int const* const in = edges + nd.first;
  index_t const index = m[axis].offset;
  index_t at = 0;
  for (int k = 0; k < nd.count; ++k) {
    index_t const size = sizes(in[k])[axis];
    m[axis].offset = index;
    int const within = explore ? 1 : inside(m[axis], at, at + size);
    if (within < 0) return;
    if (within) {
      m[axis].offset -= at;
      operand(i, in[k], m);
      if (!explore) return form(i, instance::form::alias);
    }
    at += size;
  }
  form(i, instance::form::alias);
}
/// Unrolls a reduction of few elements.
constexpr void unfolding::unroll_reduction(int i, node const& nd, axis_index const* m) {
  int const in = edges[nd.first];
  dims const& s = sizes(in);
  bool const keep = nd.at[1][0] != 0;
  axis_index o[max_rank];
  dims count;
  int at = 0;
  int axes[max_rank]{};
  for (int k = 0; k < s.n; ++k) {
    if (nd.at[0].contains(k)) {
      axes[count.n] = k;
      count.push_back(s.v[k]);
      at += keep;
    } else {
      o[k] = m[at++];
    }
  }
  for (index_t e = 0, all = numel(count); e < all; ++e) {
    index_t r = e;
    for (int k = count.n - 1; k >= 0; --k) {
      o[axes[k]] = {-1, r % count[k], 0};
      r /= count[k];
    }
    operand(i, in, o);
  }
}
/// Unrolls a product with a short inner dimension.
constexpr void unfolding::unroll_product(int i, node const& nd, axis_index* m) {
  bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
  int const* const in = edges + nd.first;
  int const rank = nd.out.sizes.n;
  dims const& s = sizes(in[0]);
  index_t const inner = s[s.n - (ta ? 2 : 1)];
  axis_index const row = m[rank - 2], col = m[rank - 1];
  for (index_t e = 0; e < inner; ++e) {
    axis_index const c{-1, e, 0};
    m[rank - 2] = ta ? c : row, m[rank - 1] = ta ? row : c;
    operand(i, in[0], m);
    m[rank - 2] = tb ? col : c, m[rank - 1] = tb ? c : col;
    operand(i, in[1], m);
  }
}
constexpr void unfolding::broadcast_operands(int i, node const& nd, axis_index const* m) {
  int const* const in = edges + nd.first;
  for (int k = 0; k < nd.count; ++k) { // operands are aligned with the last axes of the result
    dims const& s = sizes(in[k]);
    operand(i, in[k], m + (nd.out.sizes.n - s.n));
  }
}

} // namespace varve::fusion
