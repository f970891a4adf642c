// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/cse.hpp>
#include <varve/graph/fold.hpp>

namespace varve {

/// The fixed sequence of passes before planning: fold, merge equal operations. Both leave out what no result depends on.
constexpr graph optimize(graph const& g) {
  graph const folded = fold(g);
  return cse(folded);
}

} // namespace varve
