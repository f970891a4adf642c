// SPDX-License-Identifier: BSL-1.0
// expect: a tangent must have the shape of its primal
#include <varve/op/operators.hpp>
#include <varve/transform/jvp.hpp>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
constexpr auto a = vv::jvp(square, std::tuple{vv::array<double, 3>{}}, std::tuple{vv::array<double, 3>{}});
#ifdef FAIL
constexpr auto b = vv::jvp(square, std::tuple{vv::array<double, 3>{}}, std::tuple{vv::array<double, 1>{}});
#endif
