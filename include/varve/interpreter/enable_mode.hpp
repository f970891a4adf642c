// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>

namespace varve {

/// A type with a static `dispatch(op, args)`, as `enable_mode` requires it and wrapper types have it.
template <class T>
concept handler_type = requires(boxed_op const& op, boxed_args const& x) {
  { T::dispatch(op, x) } -> std::convertible_to<tensor>;
};

/// The single-slot mode (the first "python mode"). During its lifetime `T::dispatch` handles every operator of this
/// thread on tensors, factories included, so that `empty({})` can return a `T`. It precedes the handlers of all
/// operands. Tensors made from data are not intercepted. The mode is off while the handler runs. Throws
/// `dispatch_error` if another mode of this form is on; `mode_guard` nests.
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
