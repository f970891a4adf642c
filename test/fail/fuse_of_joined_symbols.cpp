// SPDX-License-Identifier: BSL-1.0
// expect: a size is neither a number nor made of symbols by products and constants; give one of the symbols a number
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto join = [](auto x, auto y) { return vv::cat(std::tuple{x, y}, vv::axis<0>); };
constexpr auto right = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, 3>>(join);
constexpr auto wrong = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>>(join);
vv::tensor joined(vv::tensor const& x, vv::tensor const& y) { return right(x, y); }
#ifdef FAIL
vv::tensor refused(vv::tensor const& x, vv::tensor const& y) { return wrong(x, y); }
#endif
