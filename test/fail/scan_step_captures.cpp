// SPDX-License-Identifier: BSL-1.0
// expect: varve: the function of a loop captures a value that a transform sees; pass it through closure
#include <varve/varve.hpp>
namespace vv = varve;

constexpr vv::array<double, 3> xs{1, 2, 3};
constexpr auto declared = [](auto q) {
  auto const step = [](auto c, auto x, auto r) { return std::pair(c * r + x, c); };
  return vv::scan(vv::closure(step, q), 0 * q, xs).first;
};
static_assert(vv::grad(declared)(2.0) == 6); // of q^2 + 2 q + 3
#ifdef FAIL
constexpr auto captured = [](auto q) {
  return vv::scan([&](auto c, auto x) { return std::pair(c * q + x, c); }, 0 * q, xs).first;
};
constexpr double slope = vv::grad(captured)(2.0);
#endif
