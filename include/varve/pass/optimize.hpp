// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/cse.hpp>
#include <varve/pass/fold.hpp>
#include <varve/pass/functionalize.hpp>
#include <varve/pass/results_apart.hpp>

namespace varve {

/// Runs the fixed sequence of passes before planning: makes in-place writes functional, since equal values may differ
/// later; folds; merges equal operations. Each pass drops operations on which no result depends.
///
/// Derivatives of the result, by `interpret` under a transform, are those of the graph, unless `what_for` is
/// `purpose::values`. In that case equal results may become one value, or an argument. Otherwise each result has memory
/// of its own if it had in the graph.
constexpr graph optimize(graph const& g, purpose what_for = purpose::derivatives) {
  if (has_mutation(g)) {
    graph const pure =
        detail::functionalized(g, what_for); // writes into arguments remain, after everything that reads them
    graph const folded = fold(pure, what_for);
    graph const r = cse(folded, what_for);
    if (what_for == purpose::values) return r;
    return detail::results_apart(g, r);
  }
  graph const folded = fold(g, what_for);
  graph const r = cse(folded, what_for);
  if (what_for == purpose::values) return r;
  return detail::results_apart(g, r);
}

} // namespace varve
