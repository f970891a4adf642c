// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/dispatch/dispatch_table.hpp>
#include <varve/dispatch/table.hpp>
#include <varve/dispatch/tensor_eval.hpp>
#include <varve/dispatch/transform_dispatch.hpp>

namespace varve {

template <>
inline constexpr bool is_tensor_base<tensor> = true;

namespace detail {
/// Returns an operand as a tensor; plain numbers and arrays are boxed.
inline tensor const& as_tensor(tensor const& t) { return t; }
template <number T>
tensor as_tensor(T v) {
  return tensor::from_number(v);
}
template <class T, index_t... D>
tensor as_tensor(array<T, D...> const& a) {
  return tensor::from_data(a.data, ints<D...>::to_dims());
}

/// Returns the keys of a call: those of its operands and of the thread, except the excluded ones. A call without any
/// backend is on memory of this process, as for factories.
dispatch_key_set keys_of_call(boxed_args const& x);
/// Dispatches a call by its highest key. This is the slow path.
tensor call_boxed(boxed_op const& op, boxed_args const& x);

/// All keys except the default ones. The fast path may skip the default keys, because no operator stops at them unless
/// a kernel is registered.
inline constexpr unsigned watched = ~default_keys.bits;

/// True if only one recorder watches a call: eager autograd, or a single level of `grad`. Then `x` becomes what the
/// operands contain below it, on which the kernel may run at once.
bool opened_for_one_recorder(tensor const** x, int n);
/// Makes the one recorder record a call that was computed.
VARVE_INLINE void record_done(boxed_op const& op, tensor& y, tensor const* const* of, tensor const* const* below,
                              int n) {
  if (!this_thread_state.included.bits) return autograd_kernels.load(std::memory_order_acquire)->record(op, y, {of, n});
  layer& l = *this_thread_state.transforms.top;
  l.kind->record(l, op, y, of, below, n);
}

/// Processes a call that something watches. If that is one recorder, runs the kernel `evaluate` and records the call;
/// otherwise dispatches the call boxed.
tensor call_watched(boxed_op const& op, tensor const* const* x, int n,
                    tensor (*evaluate)(attributes const& at, tensor const* const* x));

/// True if only their kernels would process calls on these tensors, unless others are registered for the operators. A
/// composition of such calls may be one pass over memory.
bool are_unwatched(tensor const* x, std::size_t n);
/// Throws `dtype_error`, which names the operator.
[[noreturn]] void refuse_complex(char const* op, dtype t);
/// True if nothing is registered for the operators.
template <class... Tag>
bool are_built_in() {
  return (!registered<Tag>.load(std::memory_order_relaxed) && ...);
}

/// Runs the kernel.
tensor call_kernel(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);
tensor call_meta(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x);

/// Calls the modes from the top down, until one accepts the call. Each is off the stack while it and those below it
/// run. Returns an undefined tensor if all decline.
tensor ask_modes(boxed_op const& op, boxed_args const& x);
[[noreturn]] void refuse_all_declined(boxed_op const& op);
/// Processes a call by the modes; everything above them is off meanwhile. If all decline, the subclasses among the
/// operands process the call, with all modes on again.
tensor call_mode(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

/// Processes a call by the modes of a separate stack: pre-dispatch or function modes. A mode that declines is skipped.
template <dispatch_key Key>
tensor call_stack(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

/// Processes a call with a complex operand, by `varve/complex.hpp` if that supports the operator. Operators that only
/// move elements, and those of users, continue as they are. All others are refused by name, because kernels for real
/// numbers must not receive the parts of complex ones.
tensor call_complex(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
/// Processes a call by the subclasses among the operands: the more derived first, then from left to right.
tensor call_subclass(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
} // namespace detail

#if VARVE_DEFINES
VARVE_LIBRARY tensor boxed_op::operator()(boxed_args const& x) const {
  if (below) [[unlikely]]
    return detail::call_kernels_below({table, at}, *below);
  return detail::call_boxed(*this, x);
}
#endif

/// The processor of calls on tensors. It runs the kernel at once if nothing watches; otherwise the call is boxed and
/// dispatched through the operator's table.
template <>
struct backend<detail::tensor_base> {
  template <class Op, class... X>
  static tensor call(Op const& op, X const&... x) {
    return enter(op, detail::as_tensor(x)...);
  }
  template <class S, class T, number N>
  static tensor full(S const& sizes, T const& type, N v);
  /// Returns a constant with the dtype of another tensor, on its backend.
  template <number N>
  static tensor full_on(tensor const& like, dims const& sizes, N v) {
    tensor const* base = &like;
    while (base->is_wrapped()) base = &base->inner();
    if (subclass_object const* const o = base->object()) [[unlikely]] {
      auto const make = [&] { return full(sizes, dims{static_cast<index_t>(like.dtype())}, v); };
      return o->in_its_mode([](void const* f) { return (*static_cast<decltype(make) const*>(f))(); }, &make);
    }
    constexpr dispatch_key_set elsewhere{dispatch_key::private_use, dispatch_key::other, dispatch_key::meta};
    if (!(base->keys().bits & elsewhere.bits & 0xF)) [[likely]]
      return full(sizes, dims{static_cast<index_t>(like.dtype())}, v);
    include_keys const there(base->keys() & elsewhere);
    return full(sizes, dims{static_cast<index_t>(like.dtype())}, v);
  }
  /// True if a tensor is mapped, at any depth, by a `vmap` that is running.
  static bool is_mapped(tensor const& t) { return t.is_wrapped() && detail::is_mapped(t); }
  /// Returns how many elements of shape `from` become one of shape `to`: as a plain number, or as the result of
  /// operators if it is symbolic.
  template <class T>
  static T count(T const&, dims const& from, dims const& to);
  /// Returns 0, 1, ..., n - 1 as int64.
  template <class = void>
  static tensor arange(tensor const& like, dims const& n);

  template <class Op, class... X>
  static tensor enter(Op const& op, X const&... x) {
    if constexpr (detail::in_library<typename Op::tag>) {
      using library = detail::library_operator<typename Op::tag, Op::facts>;
      static_assert(sizeof...(X) == static_cast<std::size_t>(rules<typename Op::tag>::arity));
      tensor const* const in[] = {&x..., nullptr};
      if constexpr (std::is_same_v<Op, typename library::bound_type>)
        return library::call_since_users_tags_are_not_in_namespace_varve(op, in);
      else
        return library::call_since_users_tags_are_not_in_namespace_varve(
            detail::rebound<typename Op::tag, Op::facts>(op.boxed()), in);
    } else {
      return dispatched(op, x...);
    }
  }

private:
  template <class Tag, int Facts, std::size_t Arity>
  friend struct detail::library_operator;
  /// True if eager autograd would process a call with this operand.
  template <class Tag>
  static bool in_history(tensor const& x) {
    if constexpr (rules<Tag>::kind == op_kind::mutation) return x.is_in_recorded_memory();
    else return x.has_history();
  }
  template <class Op, class... X>
  static tensor dispatched(Op const& op, X const&... x) {
    if constexpr (Op::facts == 0) return dispatched_at<typename Op::tag, 0>(no_attributes, x...);
    else return dispatched_at<typename Op::tag, Op::facts>(op.boxed(), x...);
  }
  template <class Tag, int Facts, class... X>
  static tensor dispatched_at(attributes const& at, X const&... x) {
    if (!(x.defined() && ...)) [[unlikely]]
      detail::refuse_undefined(Tag::op_name);
    unsigned const seen = (x.keys().bits | ... | 0u) & detail::watched;
    if (this_thread_state.quiet() && !(seen & ~unsigned{dispatch_key_set::history_bit}) &&
        !detail::registered<Tag>.load(std::memory_order_relaxed)) [[likely]]
      if (!seen || !(in_history<Tag>(x) || ...)) return detail::evaluate_at<Tag, Facts>(at, x...);
    tensor const* const in[] = {&x..., nullptr};
    return detail::call_watched({detail::registered_table<Tag, Facts>(), &at}, in, sizeof...(X),
                                &detail::evaluate_operands<Tag, Facts>);
  }
};

#if VARVE_DEFINES_OPERATORS()
template <class Tag, int Facts, std::size_t Arity>
tensor
detail::library_operator<Tag, Facts, Arity>::call_since_users_tags_are_not_in_namespace_varve(bound_type const& op,
                                                                                              tensor const* const* x) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return backend<tensor_base>::dispatched(op, *x[K]...);
  }(std::make_index_sequence<Arity>{});
}
#endif

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_LIBRARY dispatch_key_set keys_of_call(boxed_args const& x) {
  thread_state const& s = this_thread_state;
  dispatch_key_set keys = s.included;
  for (auto const& t : x)
    if (t.defined()) keys |= t.keys();
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  if ((keys & backends).empty()) keys |= default_keys;
  return keys - s.excluded;
}
VARVE_LIBRARY bool are_unwatched(tensor const* x, std::size_t n) {
  if (!this_thread_state.quiet()) return false;
  constexpr unsigned history = dispatch_key_set::history_bit;
  for (std::size_t k = 0; k < n; ++k) {
    if (!x[k].defined() || (x[k].keys().bits & watched & ~history)) return false;
    if ((x[k].keys().bits & history) && x[k].has_history() && this_thread_state.grad_mode) return false;
  }
  return true;
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_boxed(boxed_op const& op, boxed_args const& x) {
  // A call that nothing watches runs its kernel at once: the last step of every lowered call.
  if (this_thread_state.quiet() && op.table->eval && !op.table->registered->load(std::memory_order_relaxed)) {
    unsigned keys = 0;
    for (auto const& t : x) keys |= t.defined() ? t.keys().bits : 0u;
    if (!(keys & watched)) [[likely]]
      return op.table->eval(*op.at, x);
  }
  return redispatch(op, keys_of_call(x), x);
}
VARVE_NOINLINE VARVE_LIBRARY bool opened_for_one_recorder(tensor const** x, int n) {
  thread_state const& s = this_thread_state;
  constexpr unsigned history = dispatch_key_set::history_bit;
  if (s.excluded.bits) return false;
  if (!s.included.bits) { // without history, the call came here for a kernel that another thread has just removed
    unsigned seen = 0;
    for (int i = 0; i < n; ++i) seen |= x[i]->keys().bits & watched;
    return seen == history;
  }
  layer const* const l = s.transforms.top;
  if (s.included.bits != dispatch_key_set(dispatch_key::transform).bits || !l->kind->record || l->below) return false;
  for (int i = 0; i < n; ++i) {
    if (x[i]->is_wrapped() && x[i]->layer() == l->id) x[i] = &x[i]->inner();
    unsigned const k = x[i]->keys().bits & watched;
    if (k && ((k & ~history) || x[i]->has_history())) return false;
  }
  return true;
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_watched(boxed_op const& op, tensor const* const* x, int n,
                                                 tensor (*evaluate)(attributes const& at, tensor const* const* x)) {
  constexpr int most = saved_values::most;
  unsigned const on = this_thread_state.included.bits;
  bool const recorded = !on || on == dispatch_key_set(dispatch_key::transform).bits; // perhaps only a recorder
  if (recorded && n > 0 && n <= most && op.table->kind != op_kind::mutation &&
      !op.table->registered->load(std::memory_order_relaxed)) {
    tensor const* below[most];
    for (int i = 0; i < n; ++i) below[i] = x[i];
    if (opened_for_one_recorder(below, n)) {
      tensor y = evaluate(*op.at, below);
      record_done(op, y, x, below, n);
      return y;
    }
  }
  return call_boxed(op, boxed_args(x, n));
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_kernel(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) {
  return op.table->eval(*op.at, x);
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_meta(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) {
  return op.table->meta(*op.at, x);
}
VARVE_COLD VARVE_LIBRARY void refuse_complex(char const* op, dtype t) {
  bool const any = complex_kernels.load(std::memory_order_relaxed);
  refuse::dtype_is_not_supported((std::string(op) + (any ? "" : " (without #include <varve/complex.hpp>)")).c_str(),
                                 name(t));
}
VARVE_COLD VARVE_LIBRARY tensor call_complex(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  if (op.table->takes_complex || !op.table->eval) return redispatch(op, keys.below(dispatch_key::complex_value), x);
  if (auto const kernels = complex_kernels.load(std::memory_order_acquire)) {
    tensor y = kernels(op, x);
    if (y.defined()) return y;
  }
  for (auto const& t : x)
    if (t.defined() && is_complex(t.dtype())) refuse_complex(op.name(), t.dtype());
  refuse_complex(op.name(), dtype::complex64);
}
VARVE_LIBRARY tensor ask_modes(boxed_op const& op, boxed_args const& x) {
  layer_stack* const stack = this_thread_state.next_mode();
  if (!stack) return {};
  popped const p(*stack);
  tensor y = p.top().kind->process(p.top(), op, x);
  if (y.defined()) [[likely]]
    return y;
  return ask_modes(op, x);
}
VARVE_COLD VARVE_LIBRARY void refuse_all_declined(boxed_op const& op) {
  thread_state const& s = this_thread_state;
  std::string tried;
  auto const add = [&](layer_stack const& stack) {
    for (layer const* l = stack.top; l; l = l->below) tried += (tried.empty() ? "" : ", ") + std::string(l->kind->name);
  };
  add(s.modes);
  for (layer_stack const& slot : s.infra) add(slot);
  refuse::with<dispatch_error>(
      ("varve: " + std::string(op.name()) + ": all modes declined (" + tried +
       "), and no operand is of a subclass that could accept; let the process of one of them return a "
       "tensor, for instance op(args)")
          .c_str());
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_mode(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  if (!s.next_mode()) return redispatch(op, keys.below(dispatch_key::dispatch_mode), x); // no mode is on
  {
    constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) -
                                       dispatch_key_set(dispatch_key::transform, dispatch_key::complex_value);
    key_guard const off(s.included, s.excluded | above);
    tensor y = ask_modes(op, x);
    if (y.defined()) [[likely]]
      return y;
  }
  if (keys.has(dispatch_key::subclass)) return redispatch(op, keys.below(dispatch_key::dispatch_mode), x);
  refuse_all_declined(op);
}
template <dispatch_key Key>
VARVE_NOINLINE tensor call_stack(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  thread_state& s = this_thread_state;
  layer_stack* const stack = Key == dispatch_key::pre_dispatch ? s.next_pre_dispatch() : &s.functions;
  if (!stack || !stack->top) return redispatch(op, keys.below(Key), x);
  popped const p(*stack);
  tensor y = p.top().kind->process(p.top(), op, x);
  return y.defined() ? y : op(x);
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_subclass(void*, boxed_op const& op, dispatch_key_set keys,
                                                  boxed_args const& x) {
  constexpr int most = 8;
  subclass_type const* order[most];
  int n = 0;
  for (auto const& t : x) {
    if (!t.defined() || !t.object()) continue;
    subclass_type const* const type = &t.object()->type();
    int at = 0;
    bool known = false;
    for (int k = 0; k < n; ++k) known = known || order[k] == type;
    if (known || n == most) continue;
    while (at < n && !type->derives_from(order[at])) ++at;
    for (int k = n++; k > at; --k) order[k] = order[k - 1];
    order[at] = type;
  }
  if (!n) return redispatch(op, keys.below(dispatch_key::subclass), x);
  for (int k = 0; k < n; ++k) {
    thread_state const& s = this_thread_state;
    constexpr dispatch_key_set above = dispatch_key_set::full().above(dispatch_key::dispatch_mode) -
                                       dispatch_key_set(dispatch_key::transform, dispatch_key::complex_value);
    key_guard const off(s.included, s.excluded | above);
    tensor y = order[k]->dispatch(op, x);
    if (y.defined()) return y;
  }
  std::string tried;
  for (int k = 0; k < n; ++k) tried += (k ? ", " : "") + std::string(order[k]->name);
  refuse::with<dispatch_error>(("varve: " + std::string(op.name()) +
                                ": no implementation found; these subclasses declined: " + tried +
                                "; let the dispatch of one of them return a tensor")
                                   .c_str());
}
} // namespace varve::detail
#endif
