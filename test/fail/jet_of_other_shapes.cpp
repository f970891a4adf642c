// SPDX-License-Identifier: BSL-1.0
// expect: each of a series must have the shape of its primal
#include <varve/jet/jet.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
constexpr vv::array<double, 2> x{1, 2}, dx{1, 0};
constexpr auto a = vv::jet(square, std::tuple{x}, std::tuple{dx});
#ifdef FAIL
constexpr auto b = vv::jet(square, std::tuple{x}, std::tuple{1.0});
#endif
