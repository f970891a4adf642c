// SPDX-License-Identifier: BSL-1.0
// expect: varve: fuse: a traced value cannot steer C\+\+ control flow
// expect: fuse_of_a_branch.cpp:1[0-9]:
// expect: a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop
// expect: varve: no if on a traced value
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = [](auto x) { return vv::where(x > 0, x * x, -x); };
inline double slope(double x) { return vv::fuse(vv::grad(right))(x); }
#ifdef FAIL
constexpr auto wrong = [](auto x) { return x > 0 ? x * x : -x; };
inline auto other_slope(double x) {
  auto const y = vv::fuse(vv::grad(wrong))(x);
  return y;
}
#endif
