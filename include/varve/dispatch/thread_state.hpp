// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>
#include <varve/dispatch/boxed.hpp>

#include <atomic>
#include <cstdint>

namespace varve {

/// What a random operator does under `vmap`: it is refused, all slices see the same numbers, or each its own.
enum class random_policy : unsigned char { error, same, different };
/// The policy as a type, for `vmap(f, randomness::different)` (`torch.vmap`'s `randomness`).
template <random_policy P>
struct randomness_t {};
struct randomness {
  static constexpr randomness_t<random_policy::error> error{};
  static constexpr randomness_t<random_policy::same> same{};
  static constexpr randomness_t<random_policy::different> different{};
};

/// One interpreter on the thread's stack: it lives on the C++ stack of the transform or `mode_guard` that pushed it and
/// links to the one below.
struct layer {
  layer* below = nullptr;
  /// Position in its stack, from 1.
  int level = 0;
  /// Never reused: tells values of this layer from those of an earlier one at the same level.
  std::uint64_t id = 0;
  /// "grad", "jvp", "vmap", "mode", or what a mode calls itself: for messages and rules.
  char const* kind = "";
  tensor (*process)(layer& self, boxed_op const& op, boxed_args const& args) = nullptr;
  /// Of `grad`: writes down a call that is done already on what its operands hold one level below: the result `y` of
  /// that becomes a value of the level. Null of others.
  void (*record)(layer& self, boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below,
                 int operands) = nullptr;
  /// What it does with a higher-order operator; null: it has no rule for any.
  boxed_args (*process_hop)(layer& self, boxed_hop const& op, boxed_args const& args) = nullptr;
  /// What it does with a custom function, erased (`detail::custom_function_ptr`), where that is not as `grad`, `jvp`
  /// and `vmap` do.
  boxed_args (*process_custom)(layer& self, void const* function, boxed_args const& args) = nullptr;
  /// What it works for: the user's mode, or the `dynamic_level` of a transform.
  void* object = nullptr;
  /// Of a transform: the keys at which kernels that a program registered are part of what it does (`transform_keys`).
  dispatch_key_set keys;
  /// Identity of the type of a mode, for rules registered for it.
  void const* type = nullptr;
  /// Of `grad`: were operators recorded when it was entered? If not, they are not at the levels below (FS-8).
  bool outer_grad_mode = true;
  /// ... and are they at its own? Of the thread that took it off its stack last.
  bool grad_mode = true;
  /// A `dual_level`: not a transform of a function, eager autograd goes on as if it were not there.
  bool is_dual_level = false;
  bool is_trace = false; // what its values hold is not to be asked for: the program would be the one for these values
  /// Does it write down what it sees (`grad`, `make_fx`)? Then its operators must come from one thread.
  bool records = false;
  /// Size of the mapped dimension of a `vmap`, and what random operators do under it.
  index_t batch_size = 0;
  random_policy random = random_policy::error;
};

/// A stack of layers, and the key that is included while it holds one (FS-2, MD-7).
struct layer_stack {
  layer* top = nullptr;
  dispatch_key key;
};

/// What replaces the values that eager nodes keep: the innermost scope of `saved_tensors_hooks` (AG-23).
struct packed_value {
  virtual ~packed_value() = default;
  virtual tensor unpack() = 0;
};
struct saved_hooks_scope {
  saved_hooks_scope* below = nullptr;
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
  static layer_stack* next(layer_stack& users, layer_stack (&slots)[infra_modes]) {
    if (users.top) return &users;
    for (layer_stack& slot : slots)
      if (slot.top) return &slot;
    return nullptr;
  }
};
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
    if (!l->is_dual_level) return true;
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
  return l && l->is_trace;
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

/// Takes the top of a stack away while it runs, and puts it back on every exit (MD-8: pop, not key-juggling).
class popped {
public:
  explicit popped(layer_stack& stack) : stack_(stack), saved_(stack.top), grad_mode_(this_thread_state.grad_mode) {
    detail::set_top(stack_, saved_->below);
    if (saved_->records) saved_->grad_mode = grad_mode_;
    this_thread_state.grad_mode = grad_mode_ && saved_->outer_grad_mode;
  }
  popped(popped const&) = delete;
  popped& operator=(popped const&) = delete;
  ~popped() {
    detail::set_top(stack_, saved_);
    this_thread_state.grad_mode = grad_mode_;
  }
  layer& top() const { return *saved_; }

private:
  layer_stack& stack_;
  layer* saved_;
  bool grad_mode_;
};

/// Takes a whole stack away for the life of the object.
class emptied {
public:
  explicit emptied(layer_stack& stack) : stack_(stack), saved_(stack.top) { detail::set_top(stack_, nullptr); }
  emptied(emptied const&) = delete;
  emptied& operator=(emptied const&) = delete;
  ~emptied() { detail::set_top(stack_, saved_); }

private:
  layer_stack& stack_;
  layer* saved_;
};

/// Sets the included and excluded keys of the thread for the life of the object; on every exit they are as before
/// (DK-9).
class key_guard {
public:
  key_guard(dispatch_key_set include, dispatch_key_set exclude)
      : included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    this_thread_state.included = include;
    this_thread_state.excluded = exclude;
  }
  key_guard(key_guard const&) = delete;
  key_guard& operator=(key_guard const&) = delete;
  ~key_guard() {
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

private:
  dispatch_key_set included_, excluded_;
};
/// Calls of this thread have the keys, whatever their arguments: a key `private_use` makes factories allocate there.
struct include_keys : key_guard {
  explicit include_keys(dispatch_key_set k) : key_guard(this_thread_state.included | k, this_thread_state.excluded) {}
};
/// Calls of this thread pass over the keys.
struct exclude_keys : key_guard {
  explicit exclude_keys(dispatch_key_set k) : key_guard(this_thread_state.included, this_thread_state.excluded | k) {}
};
/// Neither modes nor subclasses see the calls of this scope (MD-13).
struct no_dispatch : exclude_keys {
  no_dispatch() : exclude_keys({dispatch_key::dispatch_mode, dispatch_key::subclass}) {}
};

} // namespace varve
