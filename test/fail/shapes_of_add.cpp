// SPDX-License-Identifier: BSL-1.0
// expect: shapes_do_not_broadcast
#include <varve/dispatch/static_eval.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 3> a{};
static_assert(vv::equal(a + vv::array<double, 3>{}, a));
#ifdef FAIL
constexpr auto b = a + vv::array<double, 2>{};
#endif
