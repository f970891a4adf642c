// SPDX-License-Identifier: BSL-1.0
// expect: varve: stack and cat take their values as one tuple or vector: stack.std::tuple.a, b
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 2> a{1, 2}, b{3, 4};
static_assert(vv::equal(vv::stack(std::tuple{a, b}), vv::array<double, 2, 2>{1, 2, 3, 4}));
#ifdef FAIL
constexpr auto two = vv::stack(a, b);
constexpr auto three = vv::stack(a, b, a);
constexpr auto joined = vv::cat(a, b);
#endif
