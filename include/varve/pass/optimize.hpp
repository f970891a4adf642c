// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/cse.hpp>
#include <varve/pass/fold.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/pass/results_apart.hpp>

namespace varve {

/// The fixed sequence of passes before planning: make functional what writes in place, since values that are equal now
/// may not be later; fold, merge equal operations. All leave out what no result depends on. Derivatives of the result,
/// by `interpret` under a transform, are those of the graph, unless it is for values alone. Then results that are equal
/// may be one, or an argument; else each lies in memory of its own where it did in the graph.
constexpr graph optimize(graph const& g, purpose what_for = purpose::derivatives) {
  if (has_mutation(g)) {
    graph const pure =
        detail::functionalized(g, what_for); // writes into arguments are left, behind all that reads them
    graph const folded = fold(pure, what_for);
    graph const r = cse(folded);
    if (what_for == purpose::values) return r;
    return detail::results_apart(g, r);
  }
  graph const folded = fold(g, what_for);
  graph const r = cse(folded);
  if (what_for == purpose::values) return r;
  return detail::results_apart(g, r);
}

} // namespace varve
