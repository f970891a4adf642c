// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/arithmetic.hpp>
#include <varve/kernel/angles.hpp>
#include <varve/op/sqrt.hpp>

/// @file
/// Tangent, inverse trigonometric and hyperbolic functions. Integers give floating-point results.
namespace varve {

/// Tangent of an angle in radians.
inline constexpr struct tan_t : promoting_operator<tan_t> {
  static constexpr auto op_name = "tan";
} tan{};
/// Inverse sine, in radians; NaN outside of [-1, 1].
inline constexpr struct asin_t : promoting_operator<asin_t> {
  static constexpr auto op_name = "asin";
} asin{};
/// Inverse cosine, in radians; NaN outside of [-1, 1].
inline constexpr struct acos_t : promoting_operator<acos_t> {
  static constexpr auto op_name = "acos";
} acos{};
/// Inverse tangent, in radians.
inline constexpr struct atan_t : promoting_operator<atan_t> {
  static constexpr auto op_name = "atan";
} atan{};
/// Angle of the point (x, y) in radians, in all quadrants: `atan2(y, x)`.
inline constexpr struct atan2_t : promoting_operator<atan2_t> {
  static constexpr auto op_name = "atan2";
} atan2{};

template <>
struct rules<tan_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::tan;
  static constexpr operator_text cpp{"kernel::tan($0)"};
  static constexpr char const* onnx = "Tan";
  static constexpr saved_values saved{{saved_values::result}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::tan(x); }
  static constexpr auto partial(arg_t<0>, auto const& y, auto const&) { return add(square(y), 1); }
};
template <>
struct rules<asin_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::asin;
  static constexpr char const* c99 = "asin$F($0)";
  static constexpr char const* onnx = "Asin";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::asin(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return rsqrt(sub(1, square(x))); }
};
template <>
struct rules<acos_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::acos;
  static constexpr char const* c99 = "acos$F($0)";
  static constexpr char const* onnx = "Acos";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::acos(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return neg(rsqrt(sub(1, square(x)))); }
};
template <>
struct rules<atan_t> : rule::pointwise<1, promotion::floating> {
  static constexpr complex_rule of_complex = complex_rule::atan;
  static constexpr char const* c99 = "atan$F($0)";
  static constexpr char const* onnx = "Atan";
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static VARVE_INLINE constexpr auto kernel(auto x) { return kernel::atan(x); }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& x) { return reciprocal(add(square(x), 1)); }
};
template <>
struct rules<atan2_t> : rule::pointwise<2, promotion::floating> {
  static constexpr char const* c99 = "atan2$F($0, $1)";
  static constexpr bool is_slow = true;
  static constexpr saved_values saved{
      {saved_values::operand(0) | saved_values::operand(1), saved_values::operand(0) | saved_values::operand(1)}};
  static VARVE_INLINE constexpr auto kernel(auto y, auto x) { return kernel::atan2(y, x); }
  /// Returns 1 / (x^2 + y^2), and 0 for the origin, as in PyTorch.
  static constexpr auto per_square(auto const& y, auto const& x) {
    auto const d = add(square(x), square(y));
    return where(eq(d, 0), 0, reciprocal(d));
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const& y, auto const& x) {
    return mul(x, per_square(y, x));
  }
  static constexpr auto partial(arg_t<1>, auto const&, auto const& y, auto const& x) {
    return mul(neg(y), per_square(y, x));
  }
};

/// Hyperbolic sine (e^x - e^-x) / 2, without cancellation near 0.
inline constexpr struct sinh_t : composite_operator<sinh_t> {
  static constexpr complex_rule of_complex = complex_rule::sinh;
  static constexpr auto op_name = "sinh";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = detail::as_floating(x);
    return sub(mul(expm1(z), 0.5), mul(expm1(neg(z)), 0.5));
  }
} sinh{};
/// Inverse hyperbolic sine.
inline constexpr struct asinh_t : composite_operator<asinh_t> {
  static constexpr complex_rule of_complex = complex_rule::asinh;
  static constexpr auto op_name = "asinh";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = detail::as_floating(x), size = abs(z);
    auto const a = where(gt(size, detail::nothing_beside_square), 1, size);
    auto const root = hypot(a, 1.0);
    // a + a^2 / (1 + root) is root + a - 1 without cancellation
    auto const r = log1p(add(a, mul(a, div(a, add(root, 1)))));
    return copysign_of(detail::area_of_hyperbola(size, r), z);
  }

private:
  template <value R, value Z>
  static constexpr auto copysign_of(R const& r, Z const& z) {
    return where(eq(z, 0), z, where(lt(z, 0), neg(r), r));
  }
} asinh{};
/// Inverse hyperbolic tangent; NaN outside of [-1, 1].
inline constexpr struct atanh_t : composite_operator<atanh_t> {
  static constexpr complex_rule of_complex = complex_rule::atanh;
  static constexpr auto op_name = "atanh";
  template <value X>
  static constexpr auto body(X const& x) {
    auto const z = detail::as_floating(x);
    return mul(sub(log1p(z), log1p(neg(z))), 0.5);
  }
} atanh{};

} // namespace varve
