// SPDX-License-Identifier: BSL-1.0
// expect: varve: these operands do not fit this operator
// expect: array<double, 3>.*array<double, 4>
// expect: fuse_cannot_run.cpp:10:
// expect: shapes_do_not_broadcast
// expect: varve: sizes of two operands differ, and neither is 1
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto total = [](auto const& x, auto const& y) { return vv::sum(x + y); };
double right(vv::array<double, 3> const& x) { return vv::fuse(total)(x, x); }
#ifdef FAIL
auto wrong(vv::array<double, 3> const& x, vv::array<double, 4> const& y) { return vv::fuse(total)(x, y); }
#endif
