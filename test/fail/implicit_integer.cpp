// SPDX-License-Identifier: BSL-1.0
// expect: implicit: the unknowns must be floating
#include <varve/implicit.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = vv::implicit::root([](auto x, auto a) { return x * x - a; });
constexpr double right = f(1.0, 2.0);
#ifdef FAIL
constexpr double wrong = f(1, 2.0);
#endif
