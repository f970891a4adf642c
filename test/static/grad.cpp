// SPDX-License-Identifier: BSL-1.0
// Reverse mode.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto total = [](auto x) { return vv::sum(x * x * x); };
constexpr array<double, 3> xs{1, 2, 3};

static_assert(vv::grad(vv::grad(vv::grad(cube)))(2.0) == 6);
static_assert(vv::equal(vv::grad(total)(xs), array<double, 3>{3, 12, 27}));
static_assert(vv::value_and_grad(total)(xs).first == 36);
constexpr auto mixed = [](auto x, auto y, auto z) { return x * y + y * z; };
static_assert(vv::grad<1>(mixed)(2.0, 3.0, 5.0) == 7);
static_assert(vv::grad<0, 2>(mixed)(2.0, 3.0, 5.0) == std::tuple(3.0, 3.0));
static_assert(vv::grad(mixed, vv::argnums<-1>)(2.0, 3.0, 5.0) == 3);
static_assert(vv::grad([](auto) { return 1.0; })(2.0) == 0); // unrelated arguments get zeros
static_assert(std::is_same_v<decltype(vv::grad(cube)(2.0f)), float>);
constexpr auto branch = [](auto x) { // ordinary control flow on scalars
  auto r = x;
  while (r < 100) r = r * x;
  return r;
};
static_assert(vv::grad(branch)(5.0) == 75);
constexpr auto of_tree = [](auto t) { return std::get<0>(t) * std::get<1>(t)[0] * std::get<1>(t)[1]; };
static_assert(vv::grad(of_tree)(std::tuple(2.0, std::array{3.0, 5.0})) == std::tuple(15.0, std::array{10.0, 6.0}));
constexpr double by_pullback() {
  auto [y, pull] = vv::vjp([](auto a, auto b) { return std::pair(a * b, a + b); }, 2.0, 3.0);
  auto [ga, gb] = pull(std::pair(1.0, 10.0));
  auto [ha, hb] = pull(std::pair(0.0, 1.0)); // may be called many times
  return y.first + 100 * ga + 10000 * gb + ha * 1e6 + hb * 1e7;
}
static_assert(by_pullback() == 6 + 1300 + 120000 + 11e6);
