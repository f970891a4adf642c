// SPDX-License-Identifier: BSL-1.0
// expect: varve: fuse: more than 10000 operators were traced, since loops of C\+\+ are unrolled; write a long one as scan
// expect: is_short_enough<12500>
#include <varve/varve.hpp>

template <int Steps>
constexpr auto pendulum = [](auto x, auto v) {
  for (int k = 0; k < Steps; ++k) {
    v = v - 0.01 * varve::sin(x);
    x = x + 0.01 * v;
  }
  return x;
};

int main() {
  double x = varve::fuse(pendulum<20>)(1.0, 0.0);
#ifdef FAIL
  x = varve::fuse(pendulum<2500>)(1.0, 0.0);
#endif
  return x > 1;
}
