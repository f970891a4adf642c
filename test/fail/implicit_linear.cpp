// SPDX-License-Identifier: BSL-1.0
// expect: root: the third argument must be dense, cg, bicgstab, gmres
#include <varve/implicit.hpp>
#include <varve/varve.hpp>
namespace vv = varve;
namespace implicit = varve::implicit;

constexpr auto square = [](auto x, auto a) { return x * x - a; };
constexpr double right = implicit::root(square, implicit::newton{}, implicit::gmres<2>{})(1.0, 2.0);
#ifdef FAIL
constexpr double wrong = implicit::root(square, implicit::newton{}, implicit::newton{})(1.0, 2.0);
#endif
