// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>
#include <varve/dispatch/boxed.hpp>

#include <cstdint>

/// @file
/// What stands on a thread's stacks: a `layer` of a transform or a mode. What all layers of a kind do is said once, by
/// the `layer_kind` that they point to; a layer itself has only what differs from one to the next.
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

/// The function that a program called, where it draws by another random operator: for messages. Null elsewhere.
inline constinit thread_local char const* random_caller = nullptr;

struct layer;
struct boxed_hop;

/// What a layer is of, where that is asked for: a mode, whatever its type, or one of the transforms; `lanes` stand
/// above a `vmap` while a function runs that only some of its lanes are to run; `other` is any other transform.
enum class layer_role : unsigned char { mode, grad, jvp, vmap, functionalize, trace, lanes, other };

/// What the layers of one kind do: one constant per kind, beside the class of its layers (`grad_kind`, `jvp_kind`,
/// `vmap_kind`, `functionalize_kind`, `dual_level_kind`, `trace_layer::own_kind`, `mode_layer<M>::own_kind`).
struct layer_kind {
  /// "grad", "jvp", "vmap", "functionalize", "trace", or the type of a mode: for messages, and for rules, which a
  /// program registers by it.
  char const* name;
  layer_role role;
  /// Of a transform: the keys at which kernels that a program registered are part of what it does (`transform_keys`).
  dispatch_key_set keys{};
  /// Identity of the type of a mode, for rules registered for it.
  void const* mode_type = nullptr;
  /// What it does with an operator.
  tensor (*process)(layer& self, boxed_op const& op, boxed_args const& args);
  /// Of `grad`: writes down a call that is done already on what its operands hold one level below: the result `y` of
  /// that becomes a value of the level. Null of others.
  void (*record)(layer& self, boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below,
                 int operands) = nullptr;
  /// What it does with a higher-order operator; null: it has no rule for any.
  boxed_args (*process_hop)(layer& self, boxed_hop const& op, boxed_args const& args) = nullptr;
  /// What it does with a custom function, erased (`detail::custom_function_ptr`), where that is not as `grad`, `jvp`
  /// and `vmap` do.
  boxed_args (*process_custom)(layer& self, void const* function, boxed_args const& args) = nullptr;
  /// Does it write down what it sees (`grad`, `make_fx`)? Then its operators must come from one thread.
  bool records = false;
  /// A `dual_level`: not a transform of a function, eager autograd goes on as if it were not there.
  bool is_dual_level = false;

  /// What the values of a trace hold is not to be asked for: the program would be the one for these values.
  constexpr bool is_trace() const { return role == layer_role::trace; }
  /// Do both mean the same to who looks at a stack? (Not one constant: a `processing_layer` has a copy.)
  constexpr bool is_like(layer_kind const& o) const { return role == o.role && mode_type == o.mode_type; }
};

/// One interpreter on the thread's stack: it lives on the C++ stack of the transform or `mode_guard` that pushed it and
/// links to the one below.
struct layer {
  explicit layer(layer_kind const& k, void* works_for = nullptr) : kind(&k), object(works_for) {}

  layer_kind const* kind;
  layer* below = nullptr;
  /// Never reused: tells values of this layer from those of an earlier one at the same level.
  std::uint64_t id = 0;
  /// Position in its stack, from 1.
  int level = 0;
  /// Of a trace: layers directly below that see nothing of what the function computes; they stay on the stack, so that
  /// values of theirs that it captures are known as such.
  int hidden = 0;
  /// When it began: memory of this epoch or a later one is made while it runs.
  std::uint32_t epoch = 0;
  /// Of `grad`: were operators recorded when it was entered? If not, they are not at the levels below (FS-8). This and
  /// the next are here and not with the object, since `popped` reads them at every call of every transform and mode.
  bool outer_grad_mode = true;
  /// ... and are they at its own? Of the thread that took it off its stack last.
  bool grad_mode = true;
  /// What it works for: the user's mode, the `trace_layer`, or the `dynamic_level` of another transform.
  void* object;
};

/// A stack of layers, and the key that is included while it holds one (FS-2, MD-7).
struct layer_stack {
  layer* top = nullptr;
  dispatch_key key;
};

} // namespace varve
