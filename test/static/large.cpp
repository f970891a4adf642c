// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

namespace vv = varve;

// 5,000 operations are traced, optimized and planned within the limits that the CMake target sets.
constexpr auto chain = [](auto const& x) {
  auto y = x * 1.0f;
  for (int k = 0; k < 1667; ++k) y = vv::sin(y) * 0.5f + x;
  return y;
};
struct traced {
  constexpr vv::graph operator()() const { return vv::trace_graph(chain, vv::spec<float, 64>.info()); }
};
using program = vv::fusion::compiled<traced>;
static_assert(program::value.used.bodies == 1);
static_assert(program::value.bodies[0].step_count >= 3 * 1667);
static_assert(program::value.bodies[0].block_count > 70);
static_assert(program::value.workspace == 0);
