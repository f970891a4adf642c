// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>

namespace varve {

/// Switches a mode on for this thread's tensor operators, factories included, until the end of the scope: `mode_guard on{counting};`. Guards nest; while a mode
/// runs it is off the stack (MD-8), so its own operators reach the modes below. Modes see what transforms have made of a call. The mode must outlive the guard.
template <class M>
class mode_guard {
public:
  explicit mode_guard(M& mode) : layer_(mode), on_(this_thread_state.modes, layer_) {}
  mode_guard(mode_guard const&) = delete;
  mode_guard& operator=(mode_guard const&) = delete;

private:
  struct mode_layer : layer {
    mode_interpreter<dynamic_level, M> interpreter{};
    explicit mode_layer(M& m) {
      kind = "mode";
      interpreter.self = this;
      interpreter.mode = &m;
      process = [](layer& l, boxed_op const& op, boxed_args const& x) -> tensor { return static_cast<mode_layer&>(l).interpreter.process(op, x); };
    }
  };
  mode_layer layer_;
  pushed on_;
};
template <class M>
mode_guard(M&) -> mode_guard<M>;

} // namespace varve
