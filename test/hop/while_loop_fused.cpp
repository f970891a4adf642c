// SPDX-License-Identifier: BSL-1.0
// Loops with an end of their own in fused programs.
#include "while_loop_test.hpp"

#include <varve_test.hpp>

using namespace while_loop_test;

TEST_CASE("while_loop: fused, a loop and its gradient", "[hop][while_loop][fuse]") {
  constexpr auto root = vv::fuse(cube_root<0>);
  constexpr auto slope = vv::fuse(vv::grad(cube_root<50>));
  CHECK(root(27.0) == Approx(3));
  CHECK(root(1.0) == 1); // no step
  CHECK(slope(27.0) == Approx(1.0 / 27));
  CHECK(slope(8.0) == Approx(1.0 / 12));
  CHECK(slope(1.0) == 1); // of no step the derivative of what it began with
  CHECK(vv::fuse(powers<0>)(start, weight) == Approx(powers_by_hand(start, weight)));
  for (auto const& x : {start, far}) {
    auto const [gx, gw] = vv::fuse(vv::grad<0, 1>(powers<20>))(x, weight);
    check_gradient(x, gx, gw);
    auto const [ex, ew] = vv::grad<0, 1>(powers<20>)(x, weight);
    check_gradient(x, ex, ew);
  }
  // lanes that end after 1, 0 and more steps
  constexpr array<double, 3> a{1000, 1, 8};
  auto const y = vv::fuse(vv::vmap(cube_root<0>))(a), g = vv::fuse(vv::vmap(vv::grad(cube_root<50>)))(a);
  for (int k = 0; k < 3; ++k) {
    CHECK(y[k] == Approx(root(a[k])));
    CHECK(g[k] == Approx(slope(a[k])));
  }
  CHECK_THROWS_AS(vv::fuse(cube_root<3>)(1e6), vv::step_limit_error);
  CHECK_THROWS_WITH(vv::fuse(vv::grad(cube_root<3>))(1e6), ContainsText("not done after the 3 steps"));
  CHECK_THROWS_AS(vv::fuse(vv::vmap(cube_root<3>))(array<double, 2>{1, 1e6}), vv::step_limit_error);
  CHECK_THROWS_AS(cube_root<3>(1e6), vv::step_limit_error);
}

TEST_CASE("while_loop: loops within loops, fused and traced", "[hop][while_loop][fuse]") {
  constexpr auto nested = [](auto a, auto b) {
    auto [i, j, u, v] = vv::while_loop(
        [](auto i, auto, auto, auto) { return i > 0; },
        [](auto i, auto j, auto a, auto b) {
          auto [k, u, v] = vv::while_loop([](auto j, auto, auto) { return j > 0; },
                                          [](auto j, auto u, auto v) { return std::tuple(j - 1, u + 3.14, v - 2.71); },
                                          std::tuple(j, a, b));
          return std::tuple(i - 1, k, u * 2, v / 2);
        },
        std::tuple(2, 2, a, b));
    return std::tuple(u, v);
  };
  auto const [u, v] = vv::fuse(nested)(array<double, 2>{1, 2}, 1.0);
  CHECK(u[0] == Approx(29.12));
  CHECK(v == Approx(-1.105));
  tensor const one = vv::ones({2});
  auto const g = vv::make_fx(nested)(one, one);
  CHECK(vv::verify(g));
  CHECK(g.regions.size() == 5);
  auto const y = vv::interpret(g, vv::boxed_args(one, one));
  CHECK(at(y[0], 1).item<float>() == Approx(29.12f));
  CHECK(at(y[1], 1).item<float>() == Approx(-1.105f));
}
