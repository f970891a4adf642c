// SPDX-License-Identifier: BSL-1.0
// How does the end of a trajectory depend on its beginning? A loop, the same as `scan`, fused, and by differences.
// output: loop and scan agree: yes, fused: yes, differences: yes
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>
#include <utility>
namespace vv = varve;

constexpr double h = 0.01;
constexpr auto step = [](auto state) { // a leapfrog step of angle and speed
  auto [angle, speed] = state;
  speed = speed - h * vv::sin(angle);
  angle = angle + h * speed;
  return std::pair(angle, speed);
};
constexpr auto by_loop = [](auto angle) {
  auto s = std::pair(angle, 0 * angle);
  for (int k = 0; k < 1000; ++k) s = step(s);
  return s.first;
};
constexpr auto by_scan = [](auto angle) { // beyond a few dozen steps `fuse` wants scan: it writes loops out
  auto const body = [](auto s) { return std::pair(step(s), vv::none); };
  return vv::scan(body, std::pair(angle, 0 * angle), vv::steps<1000>).first.first;
};

int main() {
  double const x = 1.2, e = 1e-5;
  double const loop = vv::grad(by_loop)(x), scan = vv::grad(by_scan)(x), fused = vv::fuse(vv::grad(by_scan))(x);
  double const by_difference = (by_loop(x + e) - by_loop(x - e)) / (2 * e);
  auto const agree = [&](double v, double tolerance) { return std::fabs(v - loop) < tolerance ? "yes" : "no"; };
  std::printf("loop and scan agree: %s, fused: %s, differences: %s\n", agree(scan, 1e-11), agree(fused, 1e-10),
              agree(by_difference, 1e-6));
}
