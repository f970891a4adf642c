// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/join_slices.hpp>
#include <varve/pass/unroll_axes.hpp>

namespace varve {

/// All passes between tracing and planning, for graphs that become code of their own: optimized, slices joined, short
/// axes of unit vectors unrolled. The result is for values alone (`purpose::values`). A template for the sake of units
/// that do not fuse.
template <class Cat = cat_t>
constexpr graph prepare(graph const& traced) {
  graph g = optimize(traced, purpose::values);
  join_slices<Cat>(g);
  unroll_axes<Cat>(g);
  return g;
}

} // namespace varve
