// SPDX-License-Identifier: BSL-1.0
// expect: while_loop: the body must give carried values of the shapes and dtypes that it took
#include <varve/loop/while_loop.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto until = [](auto x, auto step) { return vv::while_loop([](auto y) { return y < 10; }, step, x); };
static_assert(until(2, [](auto y) { return y * 3; }) == 18);
#ifdef FAIL
constexpr auto wrong = until(2, [](auto y) { return y * 1.5; });
#endif
