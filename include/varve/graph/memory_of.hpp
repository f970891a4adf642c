// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>
#include <varve/op/clone.hpp>

namespace varve::detail {

/// The node in whose memory a node lies, as far as views and writes say.
constexpr int memory_of(graph const& g, int n) {
  while (g.nodes[n].op->kind == op_kind::mutation ||
         (g.nodes[n].op->kind == op_kind::view && g.nodes[n].op != &handle<clone_t>))
    n = g.edges[g.nodes[n].first];
  return n;
}

} // namespace varve::detail
