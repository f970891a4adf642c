// SPDX-License-Identifier: BSL-1.0
// expect: a part of a static value, or of one seen through a static transform, cannot be assigned to
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = [](auto x) { return x[0] * x[1]; };
static_assert(vv::equal(vv::grad(f)(vv::array<double, 2>{2, 3}), vv::array<double, 2>{3, 2}));
#ifdef FAIL
constexpr auto writes = [](auto x) {
  x[0] = x[1];
  return x[0];
};
constexpr auto wrong = vv::grad(writes)(vv::array<double, 2>{2, 3});
#endif
