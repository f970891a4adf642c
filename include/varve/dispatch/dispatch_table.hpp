// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/boxed.hpp>
#include <varve/dispatch/resolve.hpp>
#include <varve/dispatch/thread_state.hpp>

#include <atomic>
#include <string>

namespace varve {

/// A kernel for boxed calls, with the object that it was made of. It receives the keys of the call, so that it can
/// redispatch to lower ones.
struct boxed_kernel {
  tensor (*call)(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) = nullptr;
  void* self = nullptr;
  constexpr bool operator==(boxed_kernel const&) const = default;
};
/// A rule of one operator for one kind of interpreter, with the object that it was made of.
struct interpreter_rule {
  tensor (*call)(void* self, layer& in, boxed_op const& op, boxed_args const& x) = nullptr;
  void* self = nullptr;
  char const* kind = "";
  constexpr bool operator==(interpreter_rule const&) const = default;
};

/// The kernels of one operator by key, as `resolve` chose them; there are none where it falls through. A table never
/// changes: registering makes a new one.
struct dispatch_table {
  dispatch_key_set stops;
  kernel_inventory kernels;
  boxed_kernel at[dispatch_key_count];
  static constexpr int most_rules = 6;
  interpreter_rule rules[most_rules];
  /// The kernel that runs under a transform in place of rules, for an operator that is only a composite.
  boxed_kernel composite;
  constexpr bool operator==(dispatch_table const&) const = default;
};

namespace detail {
std::string names_of(dispatch_key_set s);
std::string kernels_of(kernel_inventory const& i);
// The kernels that all operators share. They are defined below, in tensor_dispatch.hpp and in transform_dispatch.hpp.
tensor no_kernel(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const&);
tensor call_kernel(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);
tensor call_meta(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);
tensor call_transform(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_transform_back(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_mode(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_subclass(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_complex(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
template <dispatch_key Key>
tensor call_stack(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

/// The functions of eager autograd, which other headers define. They process tensors with a history at the autograd
/// key, and the histories of views that were written into. The pointer to them is null until the program first computes
/// a gradient.
struct autograd_hooks {
  tensor (*call)(boxed_op const& op, dispatch_key_set below, boxed_args const& x);
  /// Records a call that was computed already; `y` is its result.
  void (*record)(boxed_op const& op, tensor const& y, operand_list x);
  edge (*history_of_view)(tensor const& base, tensor const& view);
  edge (*history_of_base)(tensor const& base, edge const& old, tensor const& view, grad_node* written, int target);
  /// Keeps the gradient of a result of a node.
  void (*retain)(edge const& e);
  /// Stores in a node where it was recorded (`anomaly_mode`).
  void (*note)(grad_node& n);
  /// Returns a copy of a tensor without memory of its own.
  tensor (*copy)(tensor const& t);
};
inline constinit std::atomic<autograd_hooks const*> autograd_kernels{nullptr};
/// The function that computes operators on complex tensors (`varve/complex.hpp`). It returns an undefined tensor for an
/// operator that it does not support. Null until the program includes that header.
inline constinit std::atomic<tensor (*)(boxed_op const& op, boxed_args const& x)> complex_kernels{nullptr};
tensor call_autograd(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_layer(layer& top, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

constexpr void place(dispatch_table& t, dispatch_key k, boxed_kernel const& f) { t.at[static_cast<int>(k)] = f; }
/// Returns the table of kernels that every operator has unless others are registered.
constexpr dispatch_table built_in_table() {
  dispatch_table t;
  t.kernels = built_in_kernels;
  t.stops = stops_of(built_in_kernels, built_in_fallbacks);
  for (int k = 0; k < dispatch_key_count; ++k)
    if (k == 0 ||
        resolve(built_in_kernels, built_in_fallbacks, static_cast<dispatch_key>(k)) != resolution::fallthrough)
      t.at[k].call = &no_kernel;
  place(t, dispatch_key::cpu, {&call_kernel});
  place(t, dispatch_key::meta, {&call_meta});
  place(t, dispatch_key::transform, {&call_transform});
  place(t, dispatch_key::transform_back, {&call_transform_back});
  place(t, dispatch_key::dispatch_mode, {&call_mode});
  place(t, dispatch_key::subclass, {&call_subclass});
  place(t, dispatch_key::complex_value, {&call_complex});
  place(t, dispatch_key::pre_dispatch, {&call_stack<dispatch_key::pre_dispatch>});
  place(t, dispatch_key::function_mode, {&call_stack<dispatch_key::function_mode>});
  return t;
}
/// The table of operators for which nothing is registered.
inline constexpr dispatch_table unregistered = built_in_table();

inline dispatch_table const& table_of(boxed_op const& op) {
  dispatch_table const* t = op.table->registered->load(std::memory_order_acquire);
  return t ? *t : unregistered;
}

/// Throws the error of a key for which `resolve` found no kernel, or two.
tensor no_kernel(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const&);
} // namespace detail

tensor redispatch(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
namespace detail {
/// Calls autograd: that of the transform for which kernels of a library run, else eager autograd.
tensor call_autograd(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
} // namespace detail

/// Continues a call at the highest of some keys. A kernel that adds to an operator passes the call on by
/// `redispatch(op, keys.below(its key), args)`, whereas calling `op(args)` starts again from the highest key.
tensor redispatch(boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_COLD VARVE_LIBRARY std::string names_of(dispatch_key_set s) {
  std::string r;
  for (int k = dispatch_key_count - 1; k > 0; --k)
    if (s.has(static_cast<dispatch_key>(k)))
      r += (r.empty() ? "" : ", ") + std::string(name(static_cast<dispatch_key>(k)));
  return r.empty() ? "none" : r;
}
VARVE_COLD VARVE_LIBRARY std::string kernels_of(kernel_inventory const& i) {
  std::string r;
  auto const say = [&](bool has, char const* what) {
    if (has) r += (r.empty() ? "" : ", ") + std::string(what);
  };
  for (int k = 1; k < dispatch_key_count; ++k)
    say(i.has(static_cast<dispatch_key>(k)), name(static_cast<dispatch_key>(k)));
  say(i.autograd, "autograd");
  say(i.composite_implicit, "composite_implicit");
  say(i.composite_explicit, "composite_explicit");
  say(i.composite_explicit_non_functional, "composite_explicit_non_functional");
  return r.empty() ? "none" : r;
}
VARVE_COLD VARVE_LIBRARY tensor no_kernel(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const&) {
  dispatch_table const& t = table_of(op);
  std::string const op_name = "varve: operator " + std::string(op.name());
  dispatch_key const k = (keys & t.stops).highest();
  if (k == dispatch_key::autograd_other && t.kernels.composite_implicit && t.kernels.has_backend_kernel())
    refuse::with<dispatch_error>(
        (op_name + " is ambiguous at autograd_other: it has a composite_implicit kernel and kernels for backends (" +
         kernels_of(t.kernels) + "); register one for autograd_other")
            .c_str());
  refuse::with<missing_rule>((op_name + " has no kernel for " + name(k) + "; it has: " + kernels_of(t.kernels) +
                              "; register one with library::impl(\"" + op.name() + "\", dispatch_key::" + name(k) +
                              ", kernel)")
                                 .c_str());
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_autograd(boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  if (this_thread_state.included.has(dispatch_key::transform_back) && this_thread_state.transforms.top) [[unlikely]]
    return call_layer(*this_thread_state.transforms.top, op, keys, x);
  dispatch_key_set const below = keys.below(dispatch_key::autograd_functionality);
  autograd_hooks const* const h = autograd_kernels.load(std::memory_order_acquire);
  return h ? h->call(op, below, x) : redispatch(op, below, x);
}
} // namespace varve::detail

namespace varve {
VARVE_LIBRARY tensor redispatch(boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  dispatch_table const& t = detail::table_of(op);
  dispatch_key_set const stops = keys.may_have_history() ? t.stops | dispatch_key::autograd_functionality : t.stops;
  while (true) {
    dispatch_key const k = (keys & stops).highest();
    boxed_kernel const& f = t.at[static_cast<int>(k)];
    if (f.call) [[likely]]
      return f.call(f.self, op, keys, x);
    if (keys.may_have_history() && is_autograd(k)) return detail::call_autograd(op, keys, x);
    keys = keys.below(k); // the operator stops at the autograd key of another backend only
  }
}
} // namespace varve
#endif
