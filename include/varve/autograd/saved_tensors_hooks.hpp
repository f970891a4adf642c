// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/recorded_call.hpp>

namespace varve {

/// A scope in which every tensor that eager nodes save for their backward pass is passed to `pack(tensor)`. The result,
/// of any type, is saved instead; `unpack(result)` returns the tensor each time it is needed. The innermost scope
/// applies. Hooks cannot be used inside or around `grad`, `vjp` and `jacrev` (`transform_error`).
template <class Pack, class Unpack>
class saved_tensors_hooks final : public saved_hooks_scope {
public:
  saved_tensors_hooks(Pack pack, Unpack unpack) : saved_tensors_hooks(std::move(pack), std::move(unpack), false) {
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->kind->records)
        refuse::with<transform_error>(
            "varve: saved tensor hooks were switched on inside of grad, vjp or jacrev, which do not "
            "support them");
  }
  /// Makes hooks for `checkpoint`: for the one active level of `grad` if `of_level`, otherwise for eager nodes.
  saved_tensors_hooks(Pack pack, Unpack unpack, bool of_level) : pack_(std::move(pack)), unpack_(std::move(unpack)) {
    at_level = of_level;
    below = this_thread_state.saved_hooks;
    this_thread_state.saved_hooks = this;
  }
  saved_tensors_hooks(saved_tensors_hooks const&) = delete;
  saved_tensors_hooks& operator=(saved_tensors_hooks const&) = delete;
  ~saved_tensors_hooks() { this_thread_state.saved_hooks = below; }

  packed_value* pack(tensor const& t) override {
    using P = decltype(pack_(t));
    struct kept final : packed_value {
      P value;
      Unpack unpack_fn;
      kept(P&& v, Unpack const& u) : value(static_cast<P&&>(v)), unpack_fn(u) {}
      tensor unpack() override { return unpack_fn(value); }
    };
    return new kept(pack_(t), unpack_);
  }

private:
  Pack pack_;
  Unpack unpack_;
};
/// A scope in which the hooks of this thread are off; values are saved unchanged.
class disable_saved_tensors_hooks {
public:
  disable_saved_tensors_hooks() : before_(this_thread_state.saved_hooks) { this_thread_state.saved_hooks = nullptr; }
  disable_saved_tensors_hooks(disable_saved_tensors_hooks const&) = delete;
  disable_saved_tensors_hooks& operator=(disable_saved_tensors_hooks const&) = delete;
  ~disable_saved_tensors_hooks() { this_thread_state.saved_hooks = before_; }

private:
  saved_hooks_scope* before_;
};

} // namespace varve
