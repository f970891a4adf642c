// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/neighbour.hpp>
#include <varve/op/abs.hpp>

namespace varve {

/// The absolute value of x with the sign of y, including the signs of -0 and NaN (`torch.copysign`). Integers become
/// floating. The derivative at 0 is 0.
inline constexpr struct copysign_t : promoting_operator<copysign_t> {
  static constexpr auto op_name = "copysign";
} copysign{};
template <>
struct rules<copysign_t> : rule::pointwise<2, promotion::floating> {
  static constexpr char const* c99 = "copysign$F($0, $1)";
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result, saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::copysign(x, y); }
  static constexpr auto partial(arg_t<0>, auto const& r, auto const& x, auto const&) { return mul(sign(x), sign(r)); }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&, auto const& y) { return mul(sign(y), 0); }
};

} // namespace varve
