// SPDX-License-Identifier: BSL-1.0
// expect: taken for a plain double; write auto for double where it is declared
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = [](auto x) {
  auto y = x * x;
  return y * x;
};
static_assert(vv::grad(right)(1.0) == 3);
#ifdef FAIL
constexpr auto wrong = [](auto x) {
  double y = x * x;
  return y * x;
};
constexpr auto d = vv::grad(wrong)(1.0);
#endif
