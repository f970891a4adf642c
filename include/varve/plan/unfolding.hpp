// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/plan/program.hpp>

/// @file
/// Unfolding: which values, at which indices, one point of an iteration space needs. Views vanish into index maps here,
/// and `slice_backward` and `cat` are resolved by splitting the space into boxes in each of which they are a plain
/// shift or zero.
namespace varve::loop {

/// Index of one axis of a value: `offset + coef * i[dim]`, or just `offset` when `dim` is -1.
struct axis_index {
  int dim;
  index_t offset, coef;
  friend constexpr bool operator==(axis_index const& a, axis_index const& b) {
    return a.dim == b.dim && a.offset == b.offset && a.coef == b.coef;
  }
};

/// One node at one index map.
struct instance {
  enum class form : unsigned char { value, alias, zero, load } as;
  int node;
  int map;  // first axis_index
  int next; // further instance of the node
  int args, count;
};

/// Part of an iteration space.
struct box {
  index_t lo[max_rank]{}, hi[max_rank]{};
};

/// Sizes without the ones: what an iteration space is.
constexpr dims squeeze(dims const& s) {
  dims r;
  for (int k = 0; k < s.n; ++k)
    if (s.v[k] != 1) r.push_back(s.v[k]);
  return r;
}

/// What unfolding asks of the planner: nodes whose values are found in memory.
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
  list<std::uint64_t> near{}, far{}; // a bit for each node that was demanded, and for each 64 of them
  list<axis_index> maps{};
  list<instance> all{};
  list<int> args{};
  int highest = -1;
  list<index_t>* asked = nullptr; // where sizes are samples: what decisions about boxes take to be 0 or more
  int cut_dim = -1;               // set when the box must be split at cut_at
  index_t cut_at = 0;

  node const* nodes = nullptr; // and where these lists lie, which never grow
  int* heads = nullptr;
  std::uint64_t *bits = nullptr, *words = nullptr;

  constexpr explicit unfolding(facts const& facts_, int group_, bool explore_)
      : f(facts_), group(group_), explore(explore_), head(facts_.g.nodes.size(), -1),
        near(facts_.g.nodes.size() / 64 + 1, 0), far(facts_.g.nodes.size() / 4096 + 1, 0) {
    nodes = f.g.nodes.data(), heads = head.data(), bits = near.data(), words = far.data();
  }
  unfolding(unfolding const&) = delete;
  unfolding& operator=(unfolding const&) = delete;

  constexpr void clear() {
    for (instance const& i : all) heads[i.node] = -1, bits[i.node / 64] = 0, words[i.node / 4096] = 0;
    maps.clear(), all.clear(), args.clear();
    highest = cut_dim = -1;
  }
  /// The next demanded node below or above `n` (-1; more than `highest`), so that a sweep costs what was demanded and
  /// not what the graph has.
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

  /// The instance of `n` at the map in `m`; made when missing. Axes of size 1 are normalized to index 0.
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
  /// The identity map of a value of sizes `s` over the space `squeeze(s)`.
  static constexpr void identity(dims const& s, axis_index* m) {
    int d = 0;
    for (int k = 0; k < s.n; ++k) {
      if (s.v[k] != 1) m[k] = {d++, 0, 1};
      else m[k] = {-1, 0, 0};
    }
  }
  constexpr bool is_identity(instance const& i, dims const& space) const {
    dims const& s = sizes(i.node);
    if (!(squeeze(s) == space)) return false;
    axis_index m[max_rank]{};
    identity(s, m);
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
  constexpr void expand(int i, int n); // an instance of node `n`
  /// Whether index `x` lies in [from, to) everywhere in the box: 1 yes, 0 nowhere, -1 the box must be split.
  constexpr int inside(axis_index const& x, index_t from, index_t to) {
    if (x.dim < 0 || x.coef == 0) return x.offset >= from && x.offset < to;
    index_t const lo = range.lo[x.dim], hi = range.hi[x.dim];
    index_t const first = x.offset + x.coef * lo, last = x.offset + x.coef * (hi - 1);
    auto decided = [this](bool is, index_t more, index_t less) {
      return is && (!asked || (asked->push_back(more - less), true));
    };
    if (first >= from && last < to) return decided(true, first, from), decided(true, to - 1, last);
    if (decided(last < from, from - 1, last) || decided(first >= to, first, to)) return 0;
    index_t const edge = first < from ? from : to; // first index beyond it starts the next box
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
  int const* const in = f.g.edges.data() + nd.first;
  axis_index m[max_rank], o[max_rank];
  axis_index const* const mine = maps.data() + me.map;
  int const rank = nd.out.sizes.n;
  for (int k = 0; k < rank; ++k) m[k] = mine[k];
  auto form = [&](instance::form x) { all.data()[i].as = x; }; // which may have moved
  switch (what) {
  case operator_class::permute:
    for (int k = 0; k < rank; ++k) o[nd.at[0][k]] = m[k];
    operand(i, in[0], o);
    return form(instance::form::alias);
  case operator_class::reshape: {
    dims const& s = sizes(in[0]);
    if (!(squeeze(s) == squeeze(nd.out.sizes)))
      return form(instance::form::load); // a linear load of the operand's buffer
    int at = 0;
    for (int k = 0; k < s.n; ++k) {
      if (s.v[k] == 1) continue;
      while (nd.out.sizes.v[at] == 1) ++at;
      o[k] = m[at++];
    }
    operand(i, in[0], o);
    return form(instance::form::alias);
  }
  case operator_class::slice: {
    dims const& a = nd.at[0];
    for (int k = 0; k < rank; ++k) o[k] = m[k];
    o[a[0]].offset = a[1] + a[3] * m[a[0]].offset;
    o[a[0]].coef *= a[3];
    operand(i, in[0], o);
    return form(instance::form::alias);
  }
  case operator_class::slice_backward: {
    dims const& a = nd.at[1];
    int const within = explore ? 1 : inside(m[a[0]], a[1], a[2]);
    if (within == 0) return form(instance::form::zero);
    if (within < 0) return;
    m[a[0]].offset -= a[1];
    operand(i, in[0], m);
    return form(instance::form::alias);
  }
  case operator_class::cat: {
    int const axis = static_cast<int>(nd.at[0][0]);
    index_t at = 0;
    for (int k = 0; k < nd.count; ++k) {
      index_t const size = sizes(in[k])[axis];
      int const within = explore ? 1 : inside(m[axis], at, at + size);
      if (within < 0) return;
      if (within) {
        for (int q = 0; q < rank; ++q) o[q] = m[q];
        o[axis].offset -= at;
        operand(i, in[k], o);
        if (!explore) return form(instance::form::alias);
      }
      at += size;
    }
    return form(instance::form::alias);
  }
  case operator_class::sum:
  case operator_class::amax:
  case operator_class::amin: { // few elements: unrolled
    dims const& s = sizes(in[0]);
    bool const keep = nd.at[1][0] != 0;
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
    for (index_t e = 0; e < numel(count); ++e) {
      index_t r = e;
      for (int k = count.n - 1; k >= 0; --k) {
        o[axes[k]] = {-1, r % count[k], 0};
        r /= count[k];
      }
      operand(i, in[0], o);
    }
    return;
  }
  case operator_class::mm: { // short inner dimension: unrolled
    bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
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
    return;
  }
  case operator_class::one_hot: // compares the operand with the last index
    operand(i, in[0], m);
    return;
  default:
    break;
  }
  for (int k = 0; k < nd.count; ++k) { // pointwise, convert and expand: broadcasting
    dims const& s = sizes(in[k]);
    int const shift = rank - s.n;
    for (int q = 0; q < s.n; ++q) o[q] = m[q + shift];
    operand(i, in[k], o);
  }
  if (what == operator_class::expand) form(instance::form::alias);
}

} // namespace varve::loop
