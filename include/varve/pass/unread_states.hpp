// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/dce.hpp>

namespace varve {

namespace detail {
/// True if a call receives the state of the generator although its function draws nothing.
constexpr bool needs_no_state(graph const& g, node const& n) {
  bool needless = n.op->hop.draws_from_state && g.nodes[g.edges[n.first]].out.sizes.n > 0;
  for (int k = 0; needless && k < n.regions_count; ++k) needless = !draws(g, n.regions_first + k, true);
  return needless;
}
/// Marks the nodes whose state of the generator is used by such calls only.
constexpr list<char> unread_states(graph const& g) {
  list<char> unread(g.nodes.size(), 0);
  for (std::size_t n = 0; n < g.nodes.size(); ++n)
    unread[n] = g.nodes[n].op->kind == op_kind::random && g.nodes[n].at.count == 0;
  for (node const& n : g.nodes)
    for (int k = needs_no_state(g, n) ? 1 : 0; k < n.count; ++k) unread[g.edges[n.first + k]] = 0;
  for (int r : g.results) unread[r] = 0;
  return unread;
}
} // namespace detail

/// Returns the same program in which calls whose functions draw no random numbers receive a number instead of the state
/// of the generator (`wrap_activation_checkpoint`). Linear in the nodes, for each nesting depth of functions.
constexpr graph without_unread_states(graph const& g) {
  bool any = false;
  for (node const& n : g.nodes) any = any || (n.op->hop.draws_from_state && detail::needs_no_state(g, n));
  if (!any) return g;
  list<char> const unread = detail::unread_states(g);
  rewriter w(g);
  return w.run(
      [&](int n) {
        node const& nd = g.nodes[n];
        if (unread[n]) return -1;
        if (!nd.op->hop.draws_from_state || !detail::needs_no_state(g, nd)) return w.copy(nd);
        node number{};
        number.op = &constant_handle, number.out = {dtype::int64, {}};
        int const none = w.append(number, nullptr);
        list<int> in(static_cast<std::size_t>(nd.count), none);
        for (int k = 1; k < nd.count; ++k) in[k] = w.operand(nd, k);
        return w.append(nd, in.data());
      },
      [] {});
}

} // namespace varve
