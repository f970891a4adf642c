// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/cse.hpp>
#include <varve/graph/dce.hpp>
#include <varve/graph/fold.hpp>

namespace varve {

/// The fixed sequence of passes before planning: fold, merge equal operations, fold what became equal, drop the dead.
constexpr graph optimize(graph const& g) {
  graph const live = dce(g);
  graph const folded = fold(live);
  graph const merged = cse(folded);
  return dce(merged);
}

} // namespace varve
