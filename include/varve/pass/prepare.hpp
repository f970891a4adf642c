// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/pass/join_slices.hpp>
#include <varve/pass/unroll_axes.hpp>

namespace varve {

/// Runs all passes between tracing and planning, for graphs from which code is emitted: optimizes, joins slices,
/// unrolls short axes of unit vectors. The result is for values alone (`purpose::values`). A template, so that it costs
/// nothing in units that do not fuse.
template <class Cat = cat_t>
constexpr graph prepare(graph const& traced) {
  graph g = optimize(traced, purpose::values);
  join_slices<Cat>(g);
  unroll_axes<Cat>(g);
  return g;
}

} // namespace varve
