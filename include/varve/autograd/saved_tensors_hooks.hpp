// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/recorded_call.hpp>

namespace varve {

/// In this scope every tensor that eager nodes keep for their backward pass goes through `pack(tensor)`, whose result,
/// of any type, is kept in its place; `unpack(result)` gives the tensor back when it is needed, each time it is
/// (AG-23). The innermost scope counts. Not inside or around `grad`, `vjp`, `jacrev`: `transform_error` (TR-25).
template <class Pack, class Unpack>
class saved_tensors_hooks final : public saved_hooks_scope {
public:
  saved_tensors_hooks(Pack pack, Unpack unpack) : saved_tensors_hooks(std::move(pack), std::move(unpack), false) {
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->kind->records)
        refuse::with<transform_error>(
            "varve: saved tensor hooks were switched on inside of grad, vjp or jacrev, which do not "
            "support them (TR-25)");
  }
  /// What `checkpoint` asks for: of the one level of `grad` that is at work, or of eager nodes.
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
/// The hooks of this thread are off: values are kept as they are.
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
