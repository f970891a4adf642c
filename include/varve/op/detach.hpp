// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/rule/linear.hpp>

namespace varve {

/// Returns the same values, as constants to all derivatives. For tensors it is a view.
inline constexpr struct detach_t {
  static constexpr auto op_name = "detach";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return bound<detach_t>{}(x);
  }
} detach{};

template <>
struct rules<detach_t> {
  static constexpr operator_class planned_as = operator_class::expand;
  static constexpr auto schema = "(Tensor(a) self) -> Tensor(a)";
  static constexpr op_kind kind = op_kind::view;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  static constexpr layout layout_of(attributes const&, layout const& in) { return in; }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

} // namespace varve
