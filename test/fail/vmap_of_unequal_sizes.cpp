// SPDX-License-Identifier: BSL-1.0
// expect: mapped dimensions of the arguments have different sizes
// scenario: TR-S01
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto add = vv::vmap([](auto x, auto y) { return x + y; });
constexpr auto a = add(vv::array<double, 2>{}, vv::array<double, 2>{});
#ifdef FAIL
constexpr auto b = add(vv::array<double, 2>{}, vv::array<double, 3>{});
#endif
