// SPDX-License-Identifier: BSL-1.0
// expect: grad with has_aux: the function must return a pair
// scenario: TR-S25
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>

#include <utility>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
static_assert(vv::grad([](auto x) { return std::pair(x * x, 7); }, vv::has_aux)(3.0).second == 7);
#ifdef FAIL
constexpr auto y = vv::grad(square, vv::has_aux)(3.0);
#endif
