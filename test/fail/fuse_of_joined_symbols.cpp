// SPDX-License-Identifier: BSL-1.0
// expect: a size is neither a number nor made of symbols by products, constants and sums of two; give one of the symbols a number
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto join = [](auto... x) { return vv::cat(std::tuple{x...}, vv::axis<0>); };
constexpr auto right = vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>, vv::spec<float, 3>>(join);
constexpr auto wrong =
    vv::fuse<vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>, vv::spec<float, vv::dim<"k">>>(join);
vv::tensor joined(vv::tensor const& x, vv::tensor const& y, vv::tensor const& z) { return right(x, y, z); }
#ifdef FAIL
void refused(vv::tensor const& x, vv::tensor const& y, vv::tensor const& z) { (void)wrong(x, y, z); }
#endif
