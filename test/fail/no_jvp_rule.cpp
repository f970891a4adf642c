// SPDX-License-Identifier: BSL-1.0
// expect: this operator has no jvp rule; add `jvp`
// expect: thrice_t
#include <varve/interpreter/rule_call.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/jvp.hpp>
namespace vv = varve;

inline constexpr struct thrice_t : vv::promoting_operator<thrice_t> {
  static constexpr auto op_name = "thrice";
} thrice{};
template <>
struct vv::rules<thrice_t> {
  static constexpr auto kind = op_kind::pointwise;
  static constexpr auto promote = promotion::arithmetic;
  static constexpr int arity = 1, conditions = 0;
  static constexpr dtype compute_type(meta const* in, int) { return in[0].type; }
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static constexpr auto kernel(auto x) { return 3 * x; }
#ifndef FAIL
  static constexpr auto jvp(arg_t<0>, auto const& op, auto const& d, auto const&, auto const&) { return op(d); }
#endif
};
constexpr auto y = vv::jvp([](auto x) { return thrice(x); }, std::tuple{2.0}, std::tuple{1.0});
#ifndef FAIL
static_assert(y.second == 3);
#endif
