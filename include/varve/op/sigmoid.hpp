// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>

namespace varve {

/// 1 / (1 + e^-x).
template <>
struct rules<sigmoid_t> : rule::pointwise<1, promotion::floating> {
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::sigmoid(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return mul(y, sub(1, y)); }
};

} // namespace varve
