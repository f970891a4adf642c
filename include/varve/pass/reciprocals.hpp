// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fwd.hpp>
#include <varve/pass/constant_elements.hpp>

namespace varve {
namespace detail {
/// The state of `share_reciprocals`.
struct reciprocals : constant_elements {
  op_handle const* mul_;
  list<int> of; // by old node: number of divisions by it; then ~ of the new node that is its reciprocal

  constexpr reciprocals(graph const& graph_, op_handle const* mul)
      : constant_elements(graph_), mul_(mul), of(graph_.nodes.size(), 0) {
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      if (divides(g.nodes[n], what[n])) ++of[denominator(g.nodes[n])];
  }
  constexpr bool divides(node const& nd, operator_class k) const {
    return k == operator_class::div && is_floating(nd.out.type) && g.nodes[denominator(nd)].out.type == nd.out.type;
  }
  constexpr std::size_t denominator(node const& nd) const {
    return static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + 1)]);
  }
  constexpr int visit(int n) {
    node nd = g.nodes[static_cast<std::size_t>(n)];
    operator_class const k = what[static_cast<std::size_t>(n)];
    if (!live[static_cast<std::size_t>(n)]) return -1;
    if (k == operator_class::div && divides(nd, k)) {
      std::size_t const d = denominator(nd);
      bool const fewer = numel(g.nodes[d].out.sizes) < numel(nd.out.sizes);
      if (of[d] < 0 || of[d] > 1 || fewer) {
        if (of[d] >= 0) of[d] = ~reciprocal(nd, d);
        int const in[] = {w.operand(nd, 0), ~of[d]};
        if (w.to.nodes[static_cast<std::size_t>(in[0])].value == 1 &&
            w.to.nodes[static_cast<std::size_t>(in[0])].op == &constant_handle &&
            w.to.nodes[static_cast<std::size_t>(in[1])].out == nd.out)
          return in[1];
        nd.op = mul_;
        return w.append(nd, in);
      }
    }
    return w.copy(nd);
  }
  constexpr int reciprocal(node nd, std::size_t d) {
    node one;
    one.op = &constant_handle, one.out = {nd.out.type, {}}, one.value = 1;
    int const in[] = {w.append(one, nullptr), w.now[d]};
    nd.out.sizes = g.nodes[d].out.sizes;
    return w.append(nd, in);
  }
};
} // namespace detail

/// Replaces divisions by multiplications with a reciprocal that is computed once. It applies if one value divides
/// several others, or if the divisor has fewer elements than the quotient. It adds one rounding. One visit per node.
template <class Mul = mul_t>
constexpr graph share_reciprocals(graph const& g) {
  detail::reciprocals r(g, &handle<Mul>);
  return r.w.run([&](int n) { return r.visit(n); }, [] {});
}

} // namespace varve
