// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/transform_keys.hpp>
#include <varve/interpreter/rule_call.hpp>

namespace varve {

/// Vectorization. Mapped values have the mapped dimension in front, which the function does not see. An operator with a
/// mapped operand runs by its `batch` rule; other operators run unchanged. The batch size is a type for static values
/// and a number otherwise.
template <class Lv, class N>
struct vmap_interpreter : Lv {
  static constexpr char const* kind = "vmap";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::vmap);
  [[no_unique_address]] N n;

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::vmap(*this, op, x...);
    } else {
      return
          [&](auto const&... o) { return this->close_batched(*this, batched(op, n, o...)); }(this->open_batched(x)...);
    }
  }

  template <class S>
  static constexpr auto logical_shape(S const& s) {
    return on_dims(detail::drop_first, s);
  }
  /// Wraps a constant, repeated over the batch.
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close_batched(*this,
                               operand<decltype(materialize(operand<V, std::false_type>{v, {}}, n)), std::true_type>{
                                   materialize(operand<V, std::false_type>{v, {}}, n), {}});
  }
};

} // namespace varve
