// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/transform_keys.hpp>
#include <varve/interpreter/rule_call.hpp>

namespace varve {

/// Reverse mode: runs an operator on the primals and records it with its operands. Afterwards the tape pulls cotangents
/// back by the `vjp` rules.
template <class Lv>
struct grad_interpreter : Lv {
  static constexpr char const* kind = "grad";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::grad);

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::grad(*this, op, x...);
    } else {
      return [&](auto const&... t) {
        auto y = op(t.primal...);
        return this->record(*this, op, y, t...);
      }(this->open_tracked(x)...);
    }
  }

  /// Wraps a constant, which no tape tracks.
  template <class V>
  constexpr auto lift(V const& v) const {
    return this->close_tracked(*this, v);
  }
};

} // namespace varve
