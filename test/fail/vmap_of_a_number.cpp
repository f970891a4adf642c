// SPDX-License-Identifier: BSL-1.0
// expect: varve: vmap: a number has no dimension that could be mapped; say none for it
// scenario: TR-S05
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto f = [](auto x, auto y) { return x + y; };
constexpr vv::array<double, 2> x{1, 2};
static_assert(vv::equal(vv::vmap(f, vv::in_dims<0, vv::none>)(x, 5), vv::array<double, 2>{6, 7}));
#ifdef FAIL
constexpr auto y = vv::vmap(f)(x, 5);
#endif
