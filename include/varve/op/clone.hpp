// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/rule/linear.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

/// Returns a copy in row-major order.
inline constexpr struct clone_t {
  static constexpr auto op_name = "clone";
  template <value X>
  constexpr auto operator()(X const& x) const {
    return bound<clone_t>{}(x);
  }
} clone{};

template <>
struct rules<clone_t> : rule::linear {
  static constexpr operator_class planned_as = operator_class::expand;
  static constexpr saved_values saved = saved_values::nothing();
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::view;
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, in[0].sizes}; }
  /// The layout for static values, which have no memory to share; tensors are copied by `make`.
  static constexpr layout layout_of(attributes const&, layout const& in) { return in; }
  static tensor make(attributes const&, tensor const& x);
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&) {
    return g;
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

/// Returns the value itself if its elements are contiguous in row-major order, otherwise a copy.
inline constexpr struct contiguous_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    if constexpr (std::is_same_v<X, tensor>)
      return (x.is_wrapped() ? detail::memory_layout(x).contiguous() : x.is_contiguous()) ? x : tensor(clone(x));
    else if constexpr (detail::memory_ref<X>) return (*this)(detail::viewed(x));
    else return x;
  }
} contiguous{};

} // namespace varve
