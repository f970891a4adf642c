// SPDX-License-Identifier: BSL-1.0
// expect: argnums must be distinct and name existing arguments
// scenario: TR-S22
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

constexpr auto f = [](auto x, auto y) { return x * y; };
static_assert(vv::grad<-1>(f)(2.0, 3.0) == 2);
#ifdef FAIL
constexpr auto b = vv::grad<2>(f)(2.0, 3.0);
#endif
