// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/rewriter.hpp>

#include <bit>
#include <cstdint>

namespace varve {

namespace detail {
class region_sharer {
public:
  constexpr explicit region_sharer(graph const& g) : g_(g), home_(g.regions.size(), 0), used_(g.regions.size(), 0) {
    for (std::size_t r = 0; r < g.regions.size(); ++r) home_[r] = static_cast<int>(r);
  }
  constexpr graph run() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      if (g_.nodes[n].op->hop.shares_region) find_home(static_cast<int>(n));
    mark(0);
    return without_unused();
  }

private:
  graph const& g_;
  list<int> home_;  // of the regions: the region that replaces it
  list<char> used_; // of the regions: true if it is called

  constexpr node const& at(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }
  constexpr region const& region_at(int r) const { return g_.regions[static_cast<std::size_t>(r)]; }
  constexpr int operand(node const& n, int k) const { return g_.edges[static_cast<std::size_t>(n.first + k)]; }
  static constexpr bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  }
  constexpr bool same_elements(node const& a, node const& b) const {
    bool same = true;
    for (index_t e = 0, all = numel(a.out.sizes).number(); same && e < all; ++e)
      same = same_bits(g_.constants[static_cast<std::size_t>(static_cast<index_t>(a.value) + e)],
                       g_.constants[static_cast<std::size_t>(static_cast<index_t>(b.value) + e)]);
    return same;
  }
  constexpr bool same_attributes(attributes const& a, attributes const& b) const {
    bool same = a.count == b.count;
    for (int k = 0; same && k < a.count; ++k) same = a[k] == b[k];
    return same;
  }
  /// True if two nodes at the same place of two functions are equal.
  constexpr bool same_node(node const& a, node const& b, int from_a, int from_b) const {
    if (a.op != b.op || a.count != b.count || a.regions_count != b.regions_count || a.function != b.function ||
        a.mode != b.mode || a.text != b.text || a.out.type != b.out.type || !(a.out.sizes == b.out.sizes) ||
        !same_attributes(a.at, b.at))
      return false;
    if (is_array_constant(a) ? !same_elements(a, b) : !same_bits(a.value, b.value)) return false;
    for (int k = 0; k < a.count; ++k)
      if (operand(a, k) - from_a != operand(b, k) - from_b) return false;
    for (int k = 0; k < a.regions_count; ++k)
      if (!same_function(a.regions_first + k, b.regions_first + k)) return false;
    return true;
  }
  constexpr bool same_function(int r, int s) const {
    if (r == s) return true;
    region const &a = region_at(r), &b = region_at(s);
    if (a.node_count != b.node_count || a.inputs != b.inputs || a.result_count != b.result_count) return false;
    for (int k = 0; k < a.node_count; ++k)
      if (!same_node(at(a.node_first + k), at(b.node_first + k), a.node_first, b.node_first)) return false;
    for (int k = 0; k < a.result_count; ++k)
      if (g_.results[static_cast<std::size_t>(a.result_first + k)] - a.node_first !=
          g_.results[static_cast<std::size_t>(b.result_first + k)] - b.node_first)
        return false;
    return true;
  }
  constexpr bool same_name(node const& a, node const& b) const {
    node const &x = at(operand(a, 0)), &y = at(operand(b, 0));
    return x.op->kind == op_kind::constant && y.op->kind == op_kind::constant && x.out.sizes.n == 0 &&
           y.out.sizes.n == 0 && x.value == y.value && same_attributes(a.at, b.at);
  }
  /// Chooses the last of several equal functions to replace the others, since a function must come after its callers.
  constexpr void find_home(int n) {
    node const& nd = at(n);
    for (int later = static_cast<int>(g_.nodes.size()) - 1; later > n; --later) {
      node const& other = at(later);
      if (other.op != nd.op || !same_name(nd, other) || !same_function(nd.regions_first, other.regions_first)) continue;
      if (other.regions_first > home_[static_cast<std::size_t>(nd.regions_first)])
        home_[static_cast<std::size_t>(nd.regions_first)] = other.regions_first;
    }
  }
  constexpr int function_of(node const& nd, int k) const {
    int const r = nd.regions_first + k;
    return nd.op->hop.shares_region ? home_[static_cast<std::size_t>(r)] : r;
  }
  constexpr void mark(int r) {
    if (used_[static_cast<std::size_t>(r)]) return;
    used_[static_cast<std::size_t>(r)] = 1;
    region const& f = region_at(r);
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      for (int k = 0; k < at(n).regions_count; ++k) mark(function_of(at(n), k));
  }
  constexpr graph without_unused() {
    rewriter w(g_);
    list<int> now(g_.regions.size(), 0);
    int count = 0;
    for (std::size_t r = 0; r < g_.regions.size(); ++r)
      if (used_[r]) now[r] = count++;
    for (std::size_t r = 0; r < g_.regions.size(); ++r)
      if (used_[r])
        w.copy_region(
            g_.regions[r],
            [&](int n) {
              int const mine = w.copy(at(n));
              if (at(n).regions_count)
                w.to.nodes.back().regions_first = now[static_cast<std::size_t>(function_of(at(n), 0))];
              return mine;
            },
            [] {});
    return static_cast<graph&&>(w.to);
  }
};
} // namespace detail

/// Returns the same graph in which calls of the same name with equal functions share one function
/// (`hop_traits::shares_region`: `invoke_subgraph`). Functions that are not called are dropped. Quadratic in the number
/// of such calls.
constexpr graph share_regions(graph const& g) {
  for (node const& n : g.nodes)
    if (n.op->hop.shares_region) {
      detail::region_sharer s(g); // named, as graphs are: g++ 12 loses temporaries that hold storage
      return s.run();
    }
  return g;
}

} // namespace varve
