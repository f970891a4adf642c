// SPDX-License-Identifier: BSL-1.0
// expect: axis_out_of_range
#include <varve/core/dims.hpp>
#include <varve/op/sum.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 3> a{};
constexpr auto s = vv::sum(a, vv::axis<-2>);
#ifdef FAIL
constexpr auto t = vv::sum(a, vv::axis<2>);
#endif
