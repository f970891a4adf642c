// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/transform_keys.hpp>
#include <varve/interpreter/rule_call.hpp>

namespace varve {

/// Forward mode. Every value is a pair of primal and tangent; an operator's tangent is the sum of its `jvp` rules over
/// the operands that have one. Static values and tensors share this source: `Lv` is a `static_level` or a
/// `dynamic_level`, and these differ only in `open_dual` and `close_dual`.
template <class Lv>
struct jvp_interpreter : Lv {
  static constexpr char const* kind = "jvp";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::jvp);

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::jvp(*this, op, x...);
    } else {
      return [&](auto const&... d) {
        auto y = op(d.primal...);
        return this->close_dual(*this, y, tangent(op, y, d...));
      }(this->open_dual(x)...);
    }
  }

  /// Wraps a constant, whose tangent is zeros.
  template <class V>
  constexpr auto lift_with(V const& v, V const& zeros) const {
    return this->close_dual(*this, v, zeros);
  }
};

} // namespace varve
