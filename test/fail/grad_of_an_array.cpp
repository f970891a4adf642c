// SPDX-License-Identifier: BSL-1.0
// expect: the function must return a scalar \(rank 0\); reduce its result
// scenario: TR-S43
#include <varve/op/operators.hpp>
#include <varve/op/sum.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr vv::array<double, 2> x{};
constexpr auto a = vv::grad([](auto v) { return vv::sum(v * v); })(x);
#ifdef FAIL
constexpr auto b = vv::grad([](auto v) { return v * v; })(x);
#endif
