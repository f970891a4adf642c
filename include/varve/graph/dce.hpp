// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/rewrite.hpp>

namespace varve {

/// Dead code elimination: drops every operation no result depends on. Placeholders, mutations and the regions stay.
constexpr graph dce(graph const& g) {
  list<char> live(g.nodes.size(), 0);
  for (int r : g.results) live[static_cast<std::size_t>(r)] = 1;
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    node const& nd = g.nodes[n];
    if (nd.op->kind == op_kind::placeholder || nd.op->kind == op_kind::mutation) live[n] = 1;
    if (live[n])
      for (int k = 0; k < nd.count; ++k) live[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])] = 1;
  }
  rewriter w(g);
  return w.run([&](int n) { return live[static_cast<std::size_t>(n)] ? w.copy(g.nodes[static_cast<std::size_t>(n)]) : -1; }, [] {});
}

} // namespace varve
