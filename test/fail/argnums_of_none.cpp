// SPDX-License-Identifier: BSL-1.0
// expect: argnums must be distinct and name existing arguments, one at least
// scenario: TR-S30
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto f = [](auto x, auto y) { return x * y; };
static_assert(vv::grad(f, vv::argnums<1>)(2.0, 3.0) == 2);
#ifdef FAIL
constexpr auto b = vv::grad(f, vv::argnums<>)(2.0, 3.0);
#endif
