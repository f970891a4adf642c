// SPDX-License-Identifier: BSL-1.0
// expect: attributes of static values are types: write axis<1> or shape<2, 3>
#include <varve/op/sum.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 3> a{};
constexpr auto s = vv::sum(a, vv::axis<1>);
#ifdef FAIL
constexpr auto t = vv::sum(a, 1);
#endif
