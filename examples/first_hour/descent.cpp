// SPDX-License-Identifier: BSL-1.0
// The first program: a function of numbers, its gradient, and a descent; then the same text on tensors.
// output: numbers: x = 1.000, y = 1.000
// output: tensors: tensor\(\[1, 1\], dtype=float64\), loss 0
#include <varve/varve.hpp>

#include <cstdio>
#include <iostream>
#include <vector>
namespace vv = varve;

constexpr auto rosenbrock = [](auto x, auto y) { // an ordinary function; its parameters are auto
  auto a = 1 - x;
  auto b = y - x * x;
  return a * a + 100 * b * b;
};
static_assert(vv::grad(rosenbrock)(1.0, 1.0) == 0); // the compiler can run it

int main() {
  double x = -1, y = 1;
  for (int k = 0; k < 60000; ++k) {
    auto [dx, dy] = vv::grad<0, 1>(rosenbrock)(x, y);
    x -= 1e-3 * dx, y -= 1e-3 * dy;
  }
  std::printf("numbers: x = %.3f, y = %.3f\n", x, y);

  auto loss = [](auto const& p) { return rosenbrock(p[0], p[1]); };
  vv::tensor p(std::vector<double>{-1, 1}); // of doubles: float64
  for (int k = 0; k < 60000; ++k) p = p - 1e-3 * vv::grad(loss)(p);
  std::cout << "tensors: " << p << ", loss " << static_cast<int>(loss(p).item() * 1e6) << "\n";
}
