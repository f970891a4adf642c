// SPDX-License-Identifier: BSL-1.0
// expect: the second argument says how the function is executed: table_driven
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto twice = [](auto x) { return x + x; };
double right(double x) { return vv::fuse(twice, vv::table_driven)(x); }
#ifdef FAIL
auto wrong(double x) { return vv::fuse(twice, 2)(x); }
#endif
