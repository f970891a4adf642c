// SPDX-License-Identifier: BSL-1.0
// expect: a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop
#include <varve/graph/graph.hpp>
#include <varve/op/operators.hpp>
#include <varve/op/where.hpp>
#include <varve/trace/trace.hpp>
namespace vv = varve;

constexpr auto right = vv::trace([](auto x) { return vv::where(x > 0, x, 0); }, vv::spec<float>);
static_assert(right.count(vv::where) == 1);
#ifdef FAIL
constexpr auto f = [](auto x) {
  if (x > 0) return x;
  return 0 * x;
};
constexpr auto wrong = vv::trace(f, vv::spec<float>);
#endif
