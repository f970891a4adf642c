// SPDX-License-Identifier: BSL-1.0
// expect: two different transforms meet at one level
// expect: closure\(f, captured
#include <varve/dispatch/dispatch.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

// d/dx (x * d/dy (x * y)) = 2x
constexpr auto right = [](auto x) { return x * vv::grad(vv::closure([](auto y, auto x) { return x * y; }, x))(1.0); };
static_assert(vv::grad(right)(3.0) == 6);
#ifdef FAIL
constexpr auto wrong = [](auto x) { return x * vv::grad([x](auto y) { return x * y; })(1.0); };
constexpr auto y = vv::grad(wrong)(3.0);
#endif
