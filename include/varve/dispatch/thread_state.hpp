// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/layer.hpp>

#include <atomic>
#include <cstdint>

/// @file
/// What the dynamic world keeps per thread: its keys, its stacks of layers (`layer.hpp`), and what eager autograd asks
/// for. Scopes that change it are in `guards.hpp` and `pushed.hpp`.
namespace varve {

/// What replaces the values that eager nodes keep: the innermost scope of `saved_tensors_hooks` (AG-23).
struct packed_value {
  virtual ~packed_value() = default;
  virtual tensor unpack() = 0;
};
/// What packs and unpacks saved tensors, while it is on.
struct saved_hooks_scope {
  saved_hooks_scope* below = nullptr;
  /// Of what the nodes of a run-time level of `grad` keep, and not eager ones: a `checkpoint` there.
  bool at_level = false;
  virtual packed_value* pack(tensor const& t) = 0;

protected:
  ~saved_hooks_scope() = default;
};

/// The slots of the modes that are no user's, from the one asked first: a call reaches them after all user modes,
/// whatever was entered first (MD-5). `fake` has its place among the modes, `schema_check` among the pre-dispatch
/// modes, the other two in one of both (MD-18).
enum class infra_mode : unsigned char { functional, proxy, fake, schema_check };
constexpr char const* name(infra_mode m) {
  constexpr char const* names[] = {"functional", "proxy", "fake", "schema check"};
  return names[static_cast<int>(m)];
}
/// The number of infra slots.
inline constexpr int infra_modes = 4;

/// Everything the dynamic world keeps per thread: one trivially destructible `constinit` struct, so that reading it
/// costs one load.
struct thread_state {
  dispatch_key_set included, excluded;
  /// Transforms (`grad`, `vmap`, ...), innermost first. They process a call before any mode does.
  layer_stack transforms{nullptr, dispatch_key::transform};
  /// Modes switched on by `mode_guard`, last first; below them the infra slots.
  layer_stack modes{nullptr, dispatch_key::dispatch_mode};
  layer_stack infra[infra_modes]{{nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode}};
  /// Modes above transforms and autograd (MD-18), and modes that see public calls (MD-22).
  layer_stack pre_dispatch{nullptr, dispatch_key::pre_dispatch};
  layer_stack pre_infra[infra_modes]{{nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch}};
  layer_stack functions{nullptr, dispatch_key::function_mode};
  /// An `enable_mode` is on: it refuses a second one (MD-1).
  bool single_mode = false;
  /// What factories give when no dtype is named: set by `default_dtype_mode`.
  dtype default_type = default_dtype;
  std::uint64_t next_id = 0;
  /// A `thread_snapshot` of another thread is in place.
  bool borrowed = false;
  /// Are operators recorded (`torch.is_grad_enabled`)?
  bool grad_mode = true;
  saved_hooks_scope* saved_hooks = nullptr;
  /// Every node keeps the name of the call that made it, and gradients are looked at (`anomaly_mode`).
  bool anomaly = false, check_nan = false;
  /// Histories of views are found by calling again what made them (AG-18).
  bool view_replay = false;
  /// Number of the next node that this thread records.
  std::uint64_t next_node = 1;

  bool quiet() const { return !(included.bits | excluded.bits); }
  /// The stack whose top mode is asked next: the user's, else the first infra slot taken, else null (MD-6).
  layer_stack* next_mode() { return next(modes, infra); }
  /// ... of the pre-dispatch modes.
  layer_stack* next_pre_dispatch() { return next(pre_dispatch, pre_infra); }

private:
  static layer_stack* next(layer_stack& users, layer_stack (&of_infra)[infra_modes]) {
    if (users.top) return &users;
    for (layer_stack& slot : of_infra)
      if (slot.top) return &slot;
    return nullptr;
  }
};
/// All of it, for this thread.
inline constinit thread_local thread_state this_thread_state{};

/// Dtype of a factory of this thread that names none (`torch.get_default_dtype`).
inline dtype get_default_dtype() { return this_thread_state.default_type; }

/// An identity that no layer of any thread had before. Threads draw blocks of them.
inline std::uint64_t next_layer_id() {
  constexpr int block_bits = 20;
  static std::atomic<std::uint64_t> blocks{0};
  std::uint64_t& next = this_thread_state.next_id;
  if ((next & ((std::uint64_t{1} << block_bits) - 1)) == 0)
    next = (blocks.fetch_add(1, std::memory_order_relaxed) << block_bits) + 1;
  return next++;
}

/// Is a transform at work on this thread?
inline bool inside_transform() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (!l->kind->is_dual_level) return true;
  return false;
}

namespace detail {
/// The layer of this thread with this number, if it is at work.
VARVE_COLD inline layer const* layer_at_work(std::uint64_t id) {
  layer const* l = this_thread_state.transforms.top;
  while (l && l->id != id) l = l->below;
  return l;
}
VARVE_COLD inline bool is_at_work(std::uint64_t id) { return layer_at_work(id); }
VARVE_COLD inline bool is_traced(std::uint64_t id) {
  layer const* const l = layer_at_work(id);
  return l && l->kind->is_trace();
}
VARVE_COLD inline bool is_traced_for_gradient(std::uint64_t id) {
  layer const* l = layer_at_work(id);
  if (!l || !l->kind->is_trace()) return false;
  for (int k = l->hidden; k > 0 && l; --k) {
    l = l->below;
    if (l && l->kind->role == layer_role::grad) return true;
  }
  return false;
}
/// Makes a layer the top of a stack of this thread, and the key of the stack included as long as there is one.
inline void set_top(layer_stack& stack, layer* l) {
  thread_state& s = this_thread_state;
  stack.top = l;
  bool const any = stack.key == dispatch_key::dispatch_mode  ? s.next_mode() != nullptr
                   : stack.key == dispatch_key::pre_dispatch ? s.next_pre_dispatch() != nullptr
                                                             : l != nullptr;
  s.included = any ? s.included | stack.key : s.included - dispatch_key_set(stack.key);
}
} // namespace detail

} // namespace varve
