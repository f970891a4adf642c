// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>
#include <varve/rule/pointwise.hpp>

namespace varve {

/// x + y. Linear in both operands. Integer results wrap around, also in `sub`, `neg` and `mul`, and for plain C++
/// numbers.
template <>
struct rules<add_t> : rule::pointwise<2> {
  static constexpr complex_rule of_complex = complex_rule::by_parts;
  static constexpr operator_text cpp{"kernel::add($0, $1)", "$0 + $1"};
  static constexpr operator_class planned_as = operator_class::add;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Add";
  static constexpr saved_values saved = saved_values::nothing();
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    using R = decltype(x + y);
    if constexpr (kernel::integral<R>) return kernel::add<R>(x, y);
    else return x + y;
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return one; }
};

namespace detail {
/// Base of operators that refuse bool, which has no negative, magnitude or difference (as in PyTorch: use `eq`, `ne`,
/// or convert first).
template <class Tag, int Arity>
struct no_bool : rule::pointwise<Arity> {
  static constexpr bool accepts_bool = false;
  static constexpr meta shape(attributes const& at, meta const* in, int count) {
    for (int k = 0; k < Arity; ++k)
      if (in[k].type == dtype::bool_) refuse::dtype_is_not_supported(Tag::op_name, "bool");
    return rule::pointwise<Arity>::shape(at, in, count);
  }
};
} // namespace detail

/// x - y. Linear in both operands.
template <>
struct rules<sub_t> : detail::no_bool<sub_t, 2> {
  static constexpr complex_rule of_complex = complex_rule::by_parts;
  static constexpr operator_text cpp{"kernel::sub($0, $1)", "$0 - $1"};
  static constexpr operator_class planned_as = operator_class::sub;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Sub";
  static constexpr saved_values saved = saved_values::nothing();
  static VARVE_INLINE constexpr auto kernel(auto x, auto y) {
    using R = decltype(x - y);
    if constexpr (kernel::integral<R>) return kernel::sub<R>(x, y);
    else return x - y;
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return minus_one; }
};

/// -x.
template <>
struct rules<neg_t> : detail::no_bool<neg_t, 1> {
  static constexpr complex_rule of_complex = complex_rule::by_parts;
  static constexpr operator_text cpp{"kernel::neg($0)", "-$0"};
  static constexpr operator_class planned_as = operator_class::neg;
  static constexpr bool integer_lanes = true;
  static constexpr char const* onnx = "Neg";
  static constexpr saved_values saved = saved_values::nothing();
  template <class X>
  static VARVE_INLINE constexpr auto kernel(X x) {
    if constexpr (kernel::is_batch<X>) return kernel::negate<kernel::element_t<X>>(x);
    else if constexpr (kernel::integral<X>) return kernel::neg<decltype(-x)>(x);
    else return -x;
  }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&) { return minus_one; }
};

} // namespace varve
