// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// Tag of `out_dtype`.
struct out_dtype_t : detail::plain_call {
  static constexpr auto op_name = "out_dtype", backward_name = "OutDtypeBackward";
};
namespace detail {
template <class Op>
concept of_any_dtype =
    std::is_same_v<Op, mm_t> || std::is_same_v<Op, add_t> || std::is_same_v<Op, sub_t> || std::is_same_v<Op, mul_t>;
} // namespace detail

/// `out_dtype(mm, dtype::int32, x, y)`: mm(x, y) as if it had been computed in another dtype, which it has, without an
/// overflow on the way; one node with a subgraph in graphs (OH-1). Of `mm`, `add`, `sub` and `mul`; others are refused
/// by the compiler. Operands are converted, so that dtypes that hold less lose what conversions lose.
template <class Op>
tensor out_dtype(Op const& op, dtype type, tensor const& x, tensor const& y) {
  static_assert(detail::of_any_dtype<Op>, "varve: out_dtype: of mm, add, sub and mul; convert the operands of others");
  auto const in_type = [&op, type](auto const& a, auto const& b) { return tensor(op(to(a, type), to(b, type))); };
  return detail::call_region<out_dtype_t>(0, in_type, x, y);
}

} // namespace varve
