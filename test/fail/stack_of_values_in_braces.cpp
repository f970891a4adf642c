// SPDX-License-Identifier: BSL-1.0
// expect: varve: stack and cat take static values as one tuple: stack.std::tuple.a, b
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 2> a{1, 2}, b{3, 4};
static_assert(vv::equal(vv::cat(std::tuple{a, b}), vv::array<double, 4>{1, 2, 3, 4}));
#ifdef FAIL
constexpr auto joined = vv::cat({a, b}, vv::axis<0>);
constexpr auto two = vv::stack({1.0, 2.0});
#endif
