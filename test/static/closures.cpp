// SPDX-License-Identifier: BSL-1.0
// Functions that capture values of an outer transform: right when the capture is declared. (Undeclared ones:
// test/fail.)
#include <varve/varve.hpp>
namespace vv = varve;

// d/dx (x * d/dy (x + y)) = 1: the textbook case of perturbation confusion
constexpr auto confusing = [](auto x) {
  return x * vv::grad(vv::closure([](auto y, auto x) { return x + y; }, x))(1.0);
};
static_assert(vv::grad(confusing)(1.0) == 1);
constexpr auto forward = [](auto x) {
  return x * vv::jvp(vv::closure([](auto y, auto x) { return x + y; }, x), std::tuple{1.0}, std::tuple{1.0}).second;
};
static_assert(vv::jvp(forward, std::tuple{1.0}, std::tuple{1.0}).second == 1);
static_assert(vv::grad(forward)(1.0) == 1);
static_assert(vv::jvp(confusing, std::tuple{1.0}, std::tuple{1.0}).second == 1);

// the inner derivative depends on the capture: d/dx (x * d/dy (x^2 y)) = 3 x^2
constexpr auto deep = [](auto x) {
  return x * vv::grad(vv::closure([](auto y, auto x) { return x * x * y; }, x))(5.0);
};
static_assert(vv::grad(deep)(2.0) == 12);
static_assert(vv::grad(vv::grad(deep))(2.0) == 12);

// captures that are mapped
constexpr vv::array<double, 3> xs{1, 2, 3};
static_assert(vv::equal(vv::vmap([](auto x) {
                          return vv::grad(vv::closure([](auto y, auto x) { return x * y * y; }, x))(2.0);
                        })(xs),
                        vv::array<double, 3>{4, 8, 12}));
// captures of plain values need no declaration
static_assert(vv::grad([k = 3.0](auto x) { return k * x * x; })(2.0) == 12);
// several, and trees
static_assert(vv::grad(vv::closure([](auto y, auto a, auto t) { return y * a + y * y * std::get<0>(t); }, 2.0,
                                   std::tuple(3.0)))(1.0) == 8);
// a captured vmap value below, a captured grad value above
static_assert(vv::equal(vv::vmap([](auto x) {
                          return vv::grad([](auto u) {
                            return u * vv::grad(vv::closure([](auto v, auto u) { return u * v * v; }, u))(1.0);
                          })(x);
                        })(xs),
                        vv::array<double, 3>{4, 8, 12}));
