// SPDX-License-Identifier: BSL-1.0
// expect: primals and series must be floating
#include <varve/jet/jet.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
constexpr auto a = vv::jet(square, std::tuple{2.0}, std::tuple{1.0, 0.0});
#ifdef FAIL
constexpr auto b = vv::jet(square, std::tuple{2}, std::tuple{1, 0});
#endif
