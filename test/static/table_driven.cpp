// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

namespace vv = varve;

// What the compiler plans for a function that stays a table is a constant to assert on.
using points = vv::array<float, 1000>;
constexpr auto loss = [](auto x, auto w) { return vv::sum(vv::tanh(x * w) * x + x); };
constexpr auto gradient = vv::fuse(vv::grad<0, 1>(loss), vv::table_driven);
using program = decltype(gradient)::program<points, points>;
static_assert(program::value.used.bodies == 1 && program::value.used.results == 2);
static_assert(program::value.bodies[0].block == 512 && program::value.bodies[0].chunk == 512); // elements at a time
static_assert(program::value.bodies[0].scratch <= 16384);               // a loop's blocks stay in the first cache
static_assert(program::value.used.kernels < program::value.used.steps); // named once each
static_assert(program::value.used.sinks == 0); // both results are written by the step that computes them
static_assert(decltype(gradient)::workspace_bytes<points, points> == program::value.functions[0].memory);

// The functions of higher-order operators are tables of the same program; all of its memory is known.
constexpr auto either = [](auto x) {
  return vv::cond(vv::sum(x) > 0.0f, [](auto a) { return vv::exp(a); }, [](auto a) { return a * vv::sum(a); }, x);
};
using branches = decltype(vv::fuse(either, vv::table_driven))::program<points>;
static_assert(branches::value.used.functions == 3 && branches::value.used.calls == 1);
static_assert(branches::value.functions[0].memory >= branches::value.functions[1].memory &&
              branches::value.functions[0].memory >= branches::value.functions[2].memory);
