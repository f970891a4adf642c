// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/kernel/math.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/to.hpp>

namespace varve {

/// 1 / x, correctly rounded. Integers become floating.
template <>
struct rules<reciprocal_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::reciprocal;
  static constexpr operator_text cpp{"kernel::reciprocal($0)"};
  static constexpr char const* onnx = "Reciprocal";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::reciprocal(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return neg(mul(y, y)); }
};

/// 1 / sqrt(x): infinite at 0, NaN below.
template <>
struct rules<rsqrt_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::rsqrt;
  static constexpr operator_text cpp{"kernel::reciprocal(kernel::sqrt($0))"};
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::reciprocal(kernel::sqrt(x)); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return mul(mul(y, -0.5), mul(y, y)); }
};

/// x * x. bool becomes int64, as for powers.
inline constexpr struct square_t : composite_operator<square_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "square";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const product = [](auto const& v) { return mul(v, v); };
    return choose(
        same_fact(type_fact(x), type<bool>), [&](auto const& v) { return product(to(v, type<std::int64_t>)); }, product,
        x);
  }
} square{};

} // namespace varve
