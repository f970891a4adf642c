// SPDX-License-Identifier: BSL-1.0
// expect: cannot be traced with symbolic sizes, none of which equals a number or another symbol; trace.* tells where
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto sum = [](auto x, auto y) { return x + y; };
constexpr auto right = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, 1>>(sum);
constexpr auto wrong = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>>(sum);
vv::tensor added(vv::tensor const& x, vv::tensor const& y) { return right(x, y); }
#ifdef FAIL
void refused(vv::tensor const& x, vv::tensor const& y) { wrong(x, y); }
#endif
