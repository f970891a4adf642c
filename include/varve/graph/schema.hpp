// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/schema_of.hpp>
#include <varve/graph/graph.hpp>

namespace varve {

/// Returns the schema of a recorded call of a higher-order operator, as of the call itself: `schema_of(g, node)`. Its
/// results are those of its function, which getitem nodes select. Throws `value_error` for other nodes; their operators
/// have one schema for all calls (`op_table::schema`).
template <class N>
  requires std::is_same_v<N, node>
operator_schema schema_of(graph_view const& g, N const& n) {
  if (!n.regions_count)
    refuse::with<value_error>((std::string("varve: schema_of: ") + n.op->name +
                               " is no higher-order operator; ops::find(name)->schema is the schema of all its calls")
                                  .c_str());
  return detail::schema_of_call<>(n.op->name, n.op->hop.signature, n.at, n.regions_count, n.count,
                                  g.regions[n.regions_first].result_count);
}

} // namespace varve
