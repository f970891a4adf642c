// SPDX-License-Identifier: BSL-1.0
// expect: trace: a size is neither a number nor made of symbols by products, constants and sums of two; give one of the symbols a number
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto join = [](auto... x) { return vv::cat(std::tuple{x...}, vv::axis<0>); };
constexpr auto right =
    vv::trace(join, vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>, vv::spec<float, 3>);
#ifdef FAIL
constexpr auto wrong =
    vv::trace(join, vv::spec<float, vv::dim<"n">>, vv::spec<float, vv::dim<"m">>, vv::spec<float, vv::dim<"k">>);
#endif
