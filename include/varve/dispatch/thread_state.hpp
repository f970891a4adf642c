// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/layer.hpp>

#include <atomic>
#include <cstdint>

/// @file
/// The dispatcher's state of a thread: its keys, its stacks of layers (`layer.hpp`), and settings of eager autograd.
/// Scopes that change it are in `guards.hpp` and `pushed.hpp`.
namespace varve {

/// A replacement for a value that an eager node saves, made by the innermost scope of `saved_tensors_hooks`.
struct packed_value {
  virtual ~packed_value() = default;
  virtual tensor unpack() = 0;
};
/// A scope that packs and unpacks saved tensors while it is on.
struct saved_hooks_scope {
  saved_hooks_scope* below = nullptr;
  /// True if it applies to what nodes of a run-time level of `grad` save, for a `checkpoint` there, and not to eager
  /// nodes.
  bool at_level = false;
  virtual packed_value* pack(tensor const& t) = 0;

protected:
  ~saved_hooks_scope() = default;
};

/// The slots of infra modes, which do not belong to users, in the order in which they process a call. A call reaches
/// them after all user modes, whatever was entered first. `fake` is among the modes and `schema_check` among the
/// pre-dispatch modes; each of the other two may be among either.
enum class infra_mode : unsigned char { functional, proxy, fake, schema_check };
constexpr char const* name(infra_mode m) {
  constexpr char const* names[] = {"functional", "proxy", "fake", "schema check"};
  return names[static_cast<int>(m)];
}
/// The number of infra slots.
inline constexpr int infra_modes = 4;

/// The dispatcher's state of one thread. It is one trivially destructible `constinit` struct, so that reading it costs
/// one load.
struct thread_state {
  dispatch_key_set included, excluded;
  /// Transforms (`grad`, `vmap`, ...), innermost first. They process a call before any mode does.
  layer_stack transforms{nullptr, dispatch_key::transform};
  /// Modes switched on by `mode_guard`, last first. The infra slots follow below them.
  layer_stack modes{nullptr, dispatch_key::dispatch_mode};
  layer_stack infra[infra_modes]{{nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode},
                                 {nullptr, dispatch_key::dispatch_mode}};
  /// `pre_dispatch` and `pre_infra`: modes above transforms and autograd. `functions`: modes that process public calls.
  layer_stack pre_dispatch{nullptr, dispatch_key::pre_dispatch};
  layer_stack pre_infra[infra_modes]{{nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch},
                                     {nullptr, dispatch_key::pre_dispatch}};
  layer_stack functions{nullptr, dispatch_key::function_mode};
  /// True while an `enable_mode` is on, which refuses a second one.
  bool single_mode = false;
  /// The dtype of factories that are called without one, set by `default_dtype_mode`.
  dtype default_type = default_dtype;
  std::uint64_t next_id = 0;
  /// True while a `thread_snapshot` of another thread is in use.
  bool borrowed = false;
  /// True if operators are recorded (`torch.is_grad_enabled`).
  bool grad_mode = true;
  saved_hooks_scope* saved_hooks = nullptr;
  /// `anomaly`: every node stores the name of the call that made it. `check_nan`: gradients are checked for NaN
  /// (`anomaly_mode`).
  bool anomaly = false, check_nan = false;
  /// True if the histories of views are found by calling again what made them.
  bool view_replay = false;
  /// The number of the next node that this thread records.
  std::uint64_t next_node = 1;

  bool quiet() const { return !(included.bits | excluded.bits); }
  /// Returns the stack whose top mode processes the next call: the user's, else the first infra slot in use, else null.
  layer_stack* next_mode() { return next(modes, infra); }
  /// Returns the stack whose top pre-dispatch mode processes the next call: the user's, else the first infra slot in
  /// use, else null.
  layer_stack* next_pre_dispatch() { return next(pre_dispatch, pre_infra); }

private:
  static layer_stack* next(layer_stack& users, layer_stack (&of_infra)[infra_modes]) {
    if (users.top) return &users;
    for (layer_stack& slot : of_infra)
      if (slot.top) return &slot;
    return nullptr;
  }
};
/// The dispatcher's state of this thread.
inline constinit thread_local thread_state this_thread_state{};

/// Returns the dtype of this thread's factories that are called without one (`torch.get_default_dtype`).
inline dtype get_default_dtype() { return this_thread_state.default_type; }

/// Returns an identity that no layer of any thread had before. Threads reserve blocks of them.
inline std::uint64_t next_layer_id() {
  constexpr int block_bits = 20;
  static std::atomic<std::uint64_t> blocks{0};
  std::uint64_t& next = this_thread_state.next_id;
  if ((next & ((std::uint64_t{1} << block_bits) - 1)) == 0)
    next = (blocks.fetch_add(1, std::memory_order_relaxed) << block_bits) + 1;
  return next++;
}

/// True if a transform other than a `dual_level` runs on this thread.
inline bool inside_transform() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (!l->kind->is_dual_level) return true;
  return false;
}

namespace detail {
/// Returns the running layer of this thread with an identity, or null.
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
/// Makes a layer the top of a stack of this thread, and includes the key of the stack while the stack has a layer.
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
