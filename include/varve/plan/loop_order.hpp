// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/loop_form.hpp>

/// @file
/// The loops of a nest. The addresses of instances and roots over the iteration space determine the loops, their order,
/// and the loop that runs in SIMD registers.
namespace varve::fusion {

/// The loops that compute `roots` over `u.range`.
class nest_loops {
public:
  nest_loops(nest_loops const&) = delete;
  nest_loops& operator=(nest_loops const&) = delete;

protected:
  unfolding const& u;
  int rank; // of the iteration space
  list<root> const& roots;
  instance const* all;
  int const *args, *edges, *head;
  node const* nodes;
  operator_class const* what_of;
  int count; // of the instances
  body b = blank_body;
  list<access> accesses{};   // loads first, then sinks
  access* address = nullptr; // the data of `accesses`, once it is complete
  list<int> access_numbers;
  int* access_of; // of an instance; -1: none
  int first_sink = 0, computed = 0;

  constexpr explicit nest_loops(unfolding const& u_, int rank_, list<root> const& roots_, int const* buffer_of)
      : u(u_), rank(rank_), roots(roots_), all(u_.all.data()), args(u_.args.data()), edges(u_.f.g.edges.data()),
        head(u_.head.data()), nodes(u_.f.g.nodes.data()), what_of(u_.f.what), count(static_cast<int>(u_.all.size())),
        access_numbers(u_.all.size(), -1), access_of(access_numbers.data()) {
    b.type = detail::lanes_for(u, roots);
    addresses(buffer_of);
    from_origin();
    merge_loops();
    order_of_loops();
    vector_loop();
  }

private:
  /// Computes affine addresses over the iteration space.
  constexpr void addresses(int const* buffer_of) {
    axis_index const* const maps = u.maps.data();
    for (int i = 0; i < count; ++i) {
      instance const& in = all[i];
      if (in.as == instance::form::alias || in.as == instance::form::zero) continue;
      node const& nd = nodes[in.node];
      operator_class const what = what_of[in.node];
      bool const index =
          in.as == instance::form::value && (what == operator_class::arange || what == operator_class::one_hot ||
                                             // otherwise another nest stored it in memory
                                             what == operator_class::count);
      if (in.as == instance::form::value && !index) {
        computed += 1;
        continue;
      }
      access a = blank_access;
      dims const stride = contiguous_strides(nd.out.sizes);
      for (int k = 0; k < nd.out.sizes.n; ++k) {
        if (index && k + 1 < nd.out.sizes.n) continue; // the last index is the value
        axis_index const& x = maps[in.map + k];
        index_t const s = index ? 1 : stride[k].number();
        a.offset += x.offset * s;
        if (x.dim >= 0) a.stride[x.dim] += x.coef * s;
      }
      if (what == operator_class::count) a.offset = nd.at[0][0];
      if (!index) {
        int from = in.node;
        if (what_of[from] == operator_class::reshape && buffer_of[from] < 0) from = edges[nd.first];
        a.buffer = buffer_of[from];
      }
      access_of[i] = static_cast<int>(accesses.size());
      accesses.push_back(a);
    }
    first_sink = static_cast<int>(accesses.size());
    for (root const& r : roots) accesses.push_back(r.at);
    address = accesses.data();
  }
  /// Makes all loops count from 0, wherever the box begins.
  constexpr void from_origin() {
    for (int d = 0; d < rank; ++d)
      if (u.range.lo[d] != 0)
        for (access& a : accesses) a.offset += a.stride[d] * u.range.lo[d];
  }
  /// Drops loops of extent 1, and merges adjacent loops that every access traverses as one.
  constexpr void merge_loops() {
    for (int d = 0; d < rank; ++d) {
      index_t const n = u.range.hi[d] - u.range.lo[d];
      if (n == 1) continue;
      int const l = b.rank;
      bool merge = l > 0;
      for (access const& a : accesses) merge = merge && a.stride[l - 1] == n * a.stride[d];
      if (merge) {
        for (access& a : accesses) a.stride[l - 1] = a.stride[d];
        b.extent[l - 1] *= n;
      } else {
        if (l != d)
          for (access& a : accesses) a.stride[l] = a.stride[d];
        b.extent[l] = n;
        ++b.rank;
      }
    }
    for (int d = b.rank; d < rank; ++d)
      for (access& a : accesses) a.stride[d] = 0;
  }
  /// Moves loops that all reductions keep outwards, so that reductions accumulate in registers. It does not do so where
  /// a large input would then be read in columns.
  constexpr void order_of_loops() {
    index_t volume = 1;
    for (int d = 0; d < b.rank; ++d) volume *= b.extent[d];
    int order[max_rank]{}, placed = 0;
    bool reduces = false, moves = false;
    for (root const& r : roots) reduces |= r.kind != sink_kind::store;
    auto kept = [&](int d) {
      for (std::size_t r = 0; r < roots.size(); ++r)
        if (roots[r].kind != sink_kind::store && address[static_cast<std::size_t>(first_sink) + r].stride[d] == 0)
          return false;
      return true;
    };
    bool const reorder = reduces && volume <= 16384;
    for (int pass = reorder ? 0 : 1; pass < 2; ++pass)
      for (int d = 0; d < b.rank; ++d)
        if (reorder ? kept(d) == (pass == 0) : true) moves = moves || d != placed, order[placed++] = d;
    if (!moves) return;
    list<access> const old = accesses;
    access const* const before = old.data();
    body const as_given = b;
    for (int l = 0; l < b.rank; ++l) {
      b.extent[l] = as_given.extent[order[l]];
      for (std::size_t k = 0; k < accesses.size(); ++k) address[k].stride[l] = before[k].stride[order[l]];
    }
  }
  /// Chooses the loop that runs in SIMD registers, and how many of its vectors are computed at once.
  constexpr void vector_loop() {
    if (b.type != lane::wide && b.rank > 0) {
      double best = 1e300;
      for (int d = b.rank - 1; d >= 0; --d) {
        double const c = detail::vector_cost(b, accesses, d, computed, width_of(b.type));
        if (c < best) best = c, b.vector = d;
      }
      if (width_of(b.type) == 1) b.vector = -1;
      int sums = 0;
      for (root const& r : roots) sums += r.kind != sink_kind::store;
      b.paired = sums > 4 || computed > 64; // long bodies: one alone exceeds a processor's look-ahead; for shorter
                                            // ones, two cost more registers than they gain
      b.unroll = sums > 4 || computed > 24 ? 1 : sums > 2 || computed > 6 ? 2 : 4; // accumulators stay in registers
    }
    if (b.type == lane::i32 && b.vector < 0) b.type = lane::i64;
  }
};

} // namespace varve::fusion
