// SPDX-License-Identifier: BSL-1.0
// The refusal is all that is said: what uses the result adds nothing.
// expect: varve: an argument that is to be differentiated is an integer or a truth value; write 2.0 for 2
#include <varve/varve.hpp>

#include <iostream>
namespace vv = varve;

constexpr auto squares = [](auto const& x) { return vv::sum(x * x); };
void right() { std::cout << vv::grad(squares)(vv::array<double, 2>{1, 2}); }
#ifdef FAIL
void wrong() {
  std::cout << vv::grad(squares)(vv::array<int, 2>{1, 2}) << vv::jacrev(squares)(vv::array<int, 2>{1, 2});
  auto const [y, g] = vv::value_and_grad(squares)(vv::array<int, 2>{1, 2});
  std::cout << y << g;
}
#endif
