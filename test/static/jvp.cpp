// SPDX-License-Identifier: BSL-1.0
// Forward mode.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto square = [](auto x) { return x * x; };
constexpr array<double, 3> xs{1, 2, 3};

static_assert(vv::jvp(cube, std::tuple{2.0}, std::tuple{1.0}) == std::pair(8.0, 12.0));
static_assert(vv::equal(vv::jvp(square, std::tuple{xs}, std::tuple{array<double, 3>{1, 0, 2}}).second,
                        array<double, 3>{2, 0, 12}));
static_assert(vv::jvp([](auto) { return 1.0; }, std::tuple{2.0}, std::tuple{1.0}).second == 0);
constexpr auto derivative = [](auto f) {
  return [f](auto x) { return vv::jvp(f, std::tuple{x}, std::tuple{1.0}).second; };
};
static_assert(derivative(derivative(cube))(2.0) == 12);
static_assert(vv::grad(derivative(cube))(2.0) == 12);
static_assert(derivative(vv::grad(cube))(2.0) == 12);
static_assert(derivative(vv::grad(derivative(cube)))(2.0) == 6);
