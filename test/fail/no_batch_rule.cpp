// SPDX-License-Identifier: BSL-1.0
// expect: this operator has no batch rule; add `batch`
// expect: thrice_t
#include <varve/interpreter/rule_call.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
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
  static constexpr auto batch(auto const& op, auto const&, auto const& x) { return op(x.value); }
#endif
};
constexpr auto y = vv::vmap([](auto x) { return thrice(x); })(vv::array<double, 2>{1, 2});
#ifndef FAIL
static_assert(vv::equal(y, vv::array<double, 2>{3, 6}));
#endif
