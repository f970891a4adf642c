// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/rule/linear.hpp>

namespace varve {

/// Converts the dtype. Floating to integer truncates toward zero; the conversion to bool is `!= 0`. Attribute {dtype}.
template <>
struct rules<to_t> : rule::linear {
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr op_kind kind = op_kind::convert;
  static constexpr bool takes_complex = true;
  static constexpr auto schema = "(Tensor self, ScalarType dtype) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const*) {
    detail::require_dtype("to", at[0]);
    return at;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    return {static_cast<dtype>(at[0][0]), in[0].sizes, in[0].number};
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& x) {
    return to(g, type_fact(x));
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

template <value X, class T>
constexpr auto to_t::operator()(X const& x, T const& type) const {
  auto t = detail::as_fact(type);
  return choose(same_fact(type_fact(x), t), detail::identity, [&](auto const& v) { return bind<to_t>(t)(v); }, x);
}

} // namespace varve
