// SPDX-License-Identifier: BSL-1.0
// expect: a batched value has no single truth value; use `where`, `cond` or `while_loop` instead of `if`
#include <varve/op/operators.hpp>
#include <varve/op/where.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto right = [](auto x) { return vv::where(x > 0, x, 0); };
static_assert(vv::equal(vv::vmap(right)(vv::array<double, 2>{-1, 2}), vv::array<double, 2>{0, 2}));
#ifdef FAIL
constexpr auto wrong = [](auto x) {
  if (x > 0) return x;
  return 0 * x;
};
constexpr auto y = vv::vmap(wrong)(vv::array<double, 2>{-1, 2});
#endif
