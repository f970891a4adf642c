// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/handle.hpp>
#include <varve/value/strided.hpp>

namespace varve::rule {

/// Family of operators that act outside of the program and return only a receipt, an int64 0 of rank 0. `Rules` are the
/// rules of the operator, which provide `run(attributes, operands...)` on memory: `struct rules<log_t> :
/// rule::effect<rules<log_t>>`.
///
/// Calls keep their order. Graphs made at run time record each call in program order, and no pass drops, merges, moves
/// or repeats one. Tracing a function does not run its effects; running the graph does.
///
/// Derivatives ignore the call: `run` receives primal values, and is not called again when a function runs again for
/// its gradient. Under `vmap` a rule `batch` defines a call on lanes; without it the call is refused. `trace` and fused
/// programs refuse effects and name them. `compile` runs such programs operator by operator.
///
/// An effect that returns a value has rules like any operator, with `kind = op_kind::effect`. It acts again if a
/// gradient needs its value again.
template <class Rules, int Arity = 1>
struct effect {
  static constexpr op_kind kind = op_kind::effect;
  static constexpr int arity = Arity;
  static constexpr bool differentiable = false, only_tells = true;
  template <class>
  using result = std::int64_t;
  static constexpr meta shape(attributes const&, meta const*, int) { return {dtype::int64, {}}; }
  template <class R, class... T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T> const&... x) {
    Rules::run(at, x...);
    *out.data = R{};
  }
};

} // namespace varve::rule
