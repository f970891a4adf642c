// SPDX-License-Identifier: BSL-1.0
// expect: while_loop: the condition must give one bool
#include <varve/loop/while_loop.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto halved = [](auto go) { return vv::while_loop(go, [](auto y) { return y / 2; }, 8); };
static_assert(halved([](auto y) { return y > 0; }) == 0);
#ifdef FAIL
constexpr auto wrong = halved([](auto y) { return y; });
#endif
