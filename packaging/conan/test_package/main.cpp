// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <iostream>

int main() {
  auto const loss = [](auto const& x) { return varve::sum(x * x); };
  std::cout << varve::grad(loss)(varve::tensor{1.0, 2.0}) << "\n";
}
