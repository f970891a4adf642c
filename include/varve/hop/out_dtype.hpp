// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// Tag of `out_dtype`.
struct out_dtype_t : detail::plain_call {
  static constexpr auto op_name = "out_dtype", backward_name = "OutDtypeBackward";
};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& detail::region_operator<out_dtype_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& detail::region_operator<out_dtype_t>();
#endif
namespace detail {
template <class Op>
concept of_any_dtype =
    std::is_same_v<Op, mm_t> || std::is_same_v<Op, add_t> || std::is_same_v<Op, sub_t> || std::is_same_v<Op, mul_t>;
} // namespace detail

/// Computes an operator in another dtype, as in `out_dtype(mm, dtype::int32, x, y)`, so that intermediate results do
/// not overflow; the result has that dtype. In graphs it is one node with a subgraph. Supports `mm`, `add`, `sub` and
/// `mul`; other operators are a compile error. The operands are converted first, so a narrower dtype loses what the
/// conversion loses.
template <class Op>
tensor out_dtype(Op const& op, dtype type, tensor const& x, tensor const& y) {
  static_assert(detail::of_any_dtype<Op>, "varve: out_dtype: of mm, add, sub and mul; convert the operands of others");
  auto const in_type = [&op, type](auto const& a, auto const& b) { return tensor(op(to(a, type), to(b, type))); };
  return detail::call_region<out_dtype_t>(0, in_type, x, y);
}

} // namespace varve
