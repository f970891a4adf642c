// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Loops with an end of their own, and what they compute by hand.
#include "../sample/loop.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace while_loop_test {
using namespace sample;
namespace vv = varve;
using vv::array;
using vv::index_t;
/// Newton's iteration for a = x^3, until it is exact enough.
template <index_t Most>
constexpr auto cube_root = [](auto a) {
  return vv::while_loop<Most>([](auto x, auto a) { return vv::abs(x * x * x - a) > 1e-12 * a; },
                              [](auto x, auto a) { return x - (x * x * x - a) / (3.0 * x * x); }, a, a);
};
/// Powers of a matrix times a vector until it is long: two carried values, one of them a count, one additional.
template <index_t Most>
constexpr auto powers = [](auto x, auto w) {
  auto [n, y] = vv::while_loop<Most>([](auto, auto y, auto) { return vv::sum(y * y) < 100.0; },
                                     [](auto n, auto y, auto w) { return std::tuple(n + 1, vv::tanh(w) * y + y * y); },
                                     std::tuple(0, x), w);
  return vv::sum(vv::sin(y));
};
inline constexpr auto powers_by_hand = [](auto const& x, auto const& w) {
  double y[2] = {x[0], x[1]};
  while (y[0] * y[0] + y[1] * y[1] < 100)
    for (int k = 0; k < 2; ++k) y[k] = std::tanh(w[k]) * y[k] + y[k] * y[k];
  return std::sin(y[0]) + std::sin(y[1]);
};
inline constexpr array<double, 2> start{0.9, 1.3}, weight{0.7, 0.4}, far{8, 9};
/// Sees loops as one call each, and what their functions do.
struct counting : vv::dispatch_mode<counting> {
  static constexpr bool supports_higher_order_operators = true;
  int loops = 0, maps = 0, products = 0;
  auto process(auto op, auto const&... x) {
    std::string const name = op.name();
    loops += name == "while_loop", maps += name == "map", products += name == "mul";
    return op(x...);
  }
};
/// The derivatives of `powers_by_hand` at some place.
template <class G>
inline void check_gradient(array<double, 2> const& x, G const& gx, G const& gw) {
  double const h = 1e-6;
  for (int k = 0; k < 2; ++k) {
    auto up = x, down = x;
    up[k] += h, down[k] -= h;
    CHECK(gx[k] == Approx((powers_by_hand(up, weight) - powers_by_hand(down, weight)) / (2 * h)).epsilon(1e-5));
    auto wu = weight, wd = weight;
    wu[k] += h, wd[k] -= h;
    CHECK(gw[k] == Approx((powers_by_hand(x, wu) - powers_by_hand(x, wd)) / (2 * h)).epsilon(1e-5).margin(1e-9));
  }
}
} // namespace while_loop_test
