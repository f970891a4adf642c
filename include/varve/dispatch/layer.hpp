// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dispatch_key.hpp>
#include <varve/dispatch/boxed.hpp>

#include <cstdint>

/// @file
/// The layers on a thread's stacks, each of a transform or a mode. A `layer_kind` describes once what all layers of a
/// kind do. A layer points to its kind and contains only what differs from one layer to the next.
namespace varve {

/// The behavior of a random operator under `vmap`: it is refused, or all lanes use the same numbers, or each lane its
/// own.
enum class random_policy : unsigned char { error, same, different };
/// A policy as a type, for `vmap(f, randomness::different)` (`torch.vmap`'s `randomness`).
template <random_policy P>
struct randomness_t {};
struct randomness {
  static constexpr randomness_t<random_policy::error> error{};
  static constexpr randomness_t<random_policy::same> same{};
  static constexpr randomness_t<random_policy::different> different{};
};

/// The function that a program called, if that uses another random operator; else null. For messages.
inline constinit thread_local char const* random_caller = nullptr;

struct layer;
struct boxed_hop;

/// The transform or mode that a layer belongs to. `lanes` is above a `vmap` while a function runs for only some of its
/// lanes. `mode` is a mode of any type, and `other` any other transform.
enum class layer_role : unsigned char { mode, grad, jvp, vmap, functionalize, trace, lanes, other };

/// The behavior of the layers of one kind. There is one constant per kind, next to the class of its layers
/// (`grad_kind`, `jvp_kind`, `vmap_kind`, `functionalize_kind`, `dual_level_kind`, `trace_layer::own_kind`,
/// `mode_layer<M>::own_kind`).
struct layer_kind {
  /// The name: "grad", "jvp", "vmap", "functionalize", "trace", or the type of a mode. It is used in messages, and
  /// programs register rules by it.
  char const* name;
  layer_role role;
  /// For a transform: the keys at which kernels that a program registers are part of what it does (`transform_keys`).
  dispatch_key_set keys{};
  /// The identity of the type of a mode, for rules registered for it; null for transforms.
  void const* mode_type = nullptr;
  /// Processes an operator.
  tensor (*process)(layer& self, boxed_op const& op, boxed_args const& args);
  /// For `grad`: records a call that was computed already, on the values one level below. Its result `y` becomes a
  /// value of the level. Null for others.
  void (*record)(layer& self, boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below,
                 int operands) = nullptr;
  /// Processes a higher-order operator; null if the kind has no rule for any.
  boxed_args (*process_hop)(layer& self, boxed_hop const& op, boxed_args const& args) = nullptr;
  /// True if the layer records the operators that it processes (`grad`, `make_fx`). They must then come from one
  /// thread.
  bool records = false;
  /// True for a mode that processes whole programs, as a trace does: eager autograd records calls with functions above
  /// it, and custom functions reach it as calls.
  bool takes_programs = false;
  /// True for a `dual_level`. It is not a transform of a function: eager autograd works as if it were not there.
  bool is_dual_level = false;

  /// True for a trace. The data of its values must not be read, because the recorded program would be valid for these
  /// values only.
  constexpr bool is_trace() const { return role == layer_role::trace; }
  /// True if the kinds are equivalent to code that inspects the stack. (They may be two objects: a `processing_layer`
  /// has a copy.)
  constexpr bool is_like(layer_kind const& o) const { return role == o.role && mode_type == o.mode_type; }
};

/// One interpreter on the thread's stack. It lives on the C++ stack, in the transform or `mode_guard` that pushed it,
/// and points to the layer below.
struct layer {
  explicit layer(layer_kind const& k, void* works_for = nullptr) : kind(&k), object(works_for) {}

  layer_kind const* kind;
  layer* below = nullptr;
  /// The identity, which is never reused. It distinguishes values of this layer from those of an earlier one at the
  /// same level.
  std::uint64_t id = 0;
  /// The position in its stack, from 1.
  int level = 0;
  /// For a trace: the number of layers directly below that do not process what the function computes. They stay on the
  /// stack, so that their values are recognized if the function captures them.
  int hidden = 0;
  /// The epoch in which it began. Memory of this epoch or a later one was allocated while it runs.
  std::uint32_t epoch = 0;
  /// For `grad`: true if operators were recorded when it was entered. If not, they are not recorded at the levels
  /// below. This member and the next are not in `object`, because `popped` reads them at every call of every transform
  /// and mode.
  bool outer_grad_mode = true;
  /// True if operators are recorded at its own level, as set by the thread that last removed it from its stack.
  bool grad_mode = true;
  /// The object that it works for: the user's mode, the `trace_layer`, or the `dynamic_level` of another transform.
  void* object;
};

/// A stack of layers, and the key that is included while the stack is not empty.
struct layer_stack {
  layer* top = nullptr;
  dispatch_key key;
};

} // namespace varve
