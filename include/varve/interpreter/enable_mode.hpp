// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>

namespace varve {

/// A type with a static `dispatch(op, args)`: what `enable_mode` takes, and what wrapper types are.
template <class T>
concept handler_type = requires(boxed_op const& op, boxed_args const& x) {
  { T::dispatch(op, x) } -> std::convertible_to<tensor>;
};

/// The single-slot mode (the first "python mode", MD-1): while it lives, every operator of this thread on tensors,
/// factories included, is handled by `T::dispatch`, so that `empty({})` can return a `T`. It beats every operand
/// (MD-2); tensors made from data are not intercepted (MD-3). While the handler runs the mode is off. A second one of
/// this form is refused with `dispatch_error`; `mode_guard` nests.
template <handler_type T>
class enable_mode {
  struct mode {
    tensor process(boxed_op const& op, boxed_args const& x) const { return T::dispatch(op, x); }
  };
  struct slot {
    slot() {
      if (this_thread_state.single_mode)
        refuse::with<dispatch_error>((std::string("varve: enable_mode<") + name_of_type<T>.c_str() +
                                      ">: a mode of this form is on already, and they do not nest; use mode_guard")
                                         .c_str());
      this_thread_state.single_mode = true;
    }
    slot(slot const&) = delete;
    slot& operator=(slot const&) = delete;
    ~slot() { this_thread_state.single_mode = false; }
  };
  slot slot_;
  mode mode_;
  mode_guard<mode> on_{mode_};

public:
  enable_mode() = default;
};

} // namespace varve
