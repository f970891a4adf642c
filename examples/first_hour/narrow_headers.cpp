// SPDX-License-Identifier: BSL-1.0
// Only what is used, for units that should compile quickly: a transform, the operators of C++, one function.
// output: slope 3.4731, minimum at -0.2752
#include <varve/op/exp.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>

#include <cstdio>

constexpr auto f = [](auto x) { return x * varve::exp(x) + x * x; };
constexpr auto slope = varve::grad(f);

int main() {
  double x = 0;
  for (int k = 0; k < 20; ++k) x -= slope(x) / varve::grad(slope)(x); // Newton's steps
  std::printf("slope %.4f, minimum at %.4f\n", slope(0.5), x);
}
