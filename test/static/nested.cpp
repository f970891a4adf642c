// SPDX-License-Identifier: BSL-1.0
// Transforms inside one another.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr array<double, 3> xs{1, 2, 3};
constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
constexpr auto derivative = [](auto f) {
  return [f](auto x) { return vv::jvp(f, std::tuple{x}, std::tuple{1.0}).second; };
};

static_assert(vv::equal(vv::grad([](auto x) { return vv::sum(vv::vmap(vv::grad(cube))(x)); })(xs),
                        array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::vmap(vv::grad(vv::grad(cube)))(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::vmap(vv::vmap(vv::grad(cube)))(a), array<double, 2, 3>{3, 12, 27, 48, 75, 108}));
static_assert(vv::equal(vv::vmap(derivative(vv::grad(cube)))(xs), array<double, 3>{6, 12, 18}));
static_assert(vv::equal(vv::jvp(vv::vmap(vv::grad(cube)), std::tuple{xs}, std::tuple{array<double, 3>{1, 1, 2}}).second,
                        array<double, 3>{6, 12, 36}));
