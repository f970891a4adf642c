// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/math.hpp>
#include <varve/rule/pointwise.hpp>

namespace varve {

namespace detail {
struct comparison : rule::pointwise<2, promotion::comparison> {
  static constexpr operator_class planned_as = operator_class::cheap;
  static constexpr bool integer_lanes = true;
};
} // namespace detail

/// x < y, as bool; false with NaN. Its derivative is zero, as of all comparisons.
template <>
struct rules<lt_t> : detail::comparison {
  static constexpr operator_text cpp{"kernel::lt($0, $1)"};
  static constexpr char const* onnx = "Less";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::lt(x, y); }
};
/// x <= y.
template <>
struct rules<le_t> : detail::comparison {
  static constexpr operator_text cpp{"kernel::le($0, $1)"};
  static constexpr char const* onnx = "LessOrEqual";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::le(x, y); }
};
/// x > y.
template <>
struct rules<gt_t> : detail::comparison {
  static constexpr operator_text cpp{"kernel::gt($0, $1)"};
  static constexpr char const* onnx = "Greater";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::gt(x, y); }
};
/// x >= y.
template <>
struct rules<ge_t> : detail::comparison {
  static constexpr operator_text cpp{"kernel::ge($0, $1)"};
  static constexpr char const* onnx = "GreaterOrEqual";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::ge(x, y); }
};
/// x == y.
template <>
struct rules<eq_t> : detail::comparison {
  static constexpr complex_rule of_complex = complex_rule::eq;
  static constexpr operator_text cpp{"kernel::eq($0, $1)"};
  static constexpr char const* onnx = "Equal";
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::eq(x, y); }
};
/// x != y; true with NaN.
template <>
struct rules<ne_t> : detail::comparison {
  static constexpr complex_rule of_complex = complex_rule::ne;
  static constexpr operator_text cpp{"kernel::ne($0, $1)"};
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) { return kernel::ne(x, y); }
};

namespace detail {
/// Returns a value as the condition of a `where`: true where it is not 0.
template <value P>
constexpr auto as_condition(P const& p) {
  return choose(
      same_fact(type_fact(p), ints<static_cast<index_t>(dtype::bool_)>{}), identity,
      [](auto const& v) { return ne(v, 0); }, p);
}
} // namespace detail

} // namespace varve
