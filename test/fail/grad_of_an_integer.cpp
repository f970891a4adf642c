// SPDX-License-Identifier: BSL-1.0
// expect: is an integer or a truth value; write 2.0 for 2
// scenario: TR-S43
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto cube = [](auto x) { return x * x * x; };
static_assert(vv::grad(cube)(2.0) == 12);
#ifdef FAIL
constexpr auto g = vv::grad(cube)(2);
#endif
