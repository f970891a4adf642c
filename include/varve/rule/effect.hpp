// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/handle.hpp>
#include <varve/value/strided.hpp>

namespace varve::rule {

/// Family of operators that do something outside of the program, and give nothing but a receipt (an int64 0 of rank 0).
/// `Rules` are the rules themselves, which say `run(attributes, operands...)` on memory: `struct rules<log_t> :
/// rule::effect<rules<log_t>>`. Calls keep their order wherever programs go: graphs made at run time keep each, in the
/// order of the text, and no pass drops, merges, moves or repeats one; a trace does not act, who runs the graph does.
/// Derivatives pass by: `run` is given primal values, and where a function runs again for its gradient it is not called
/// again. Under `vmap` a rule `batch` says what a call on lanes is; without one it is refused. `trace` and fused
/// programs refuse effects by name; `compile` runs such programs operator by operator.
///
/// An effect that gives a value has rules as any operator, with `kind = op_kind::effect`. It does act again where a
/// gradient needs that value again.
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
