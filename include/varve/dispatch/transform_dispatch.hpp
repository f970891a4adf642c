// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch_table.hpp>
#include <varve/dispatch/pushed.hpp>
#include <varve/dispatch/table.hpp>
#include <varve/dispatch/transform_keys.hpp>

/// @file
/// The processing of boxed calls at the keys `transform` and `transform_back`, by the innermost transform of the
/// thread.
namespace varve::detail {

tensor call_boxed(boxed_op const& op, boxed_args const& x);
struct kernels_below;
tensor call_kernels_below(boxed_op const& op, kernels_below const& rest);

/// True if a value belongs to one of the transforms, which then can process it.
inline bool is_alive(layer const* transforms, tensor const& t) {
  while (transforms && transforms->id != t.layer()) transforms = transforms->below;
  return transforms;
}
[[noreturn]] void refuse_elsewhere();
/// Returns a value without the wrappers of transforms that have ended; it behaves like the value inside. Throws
/// `transform_error` if it was mapped, because it would lose its dimension. Also throws for a mapped or tracked value
/// of a transform that runs on another thread: what is done to it here would be missing there.
tensor const& left_in(layer const* transforms, tensor const& t);
inline tensor unwrap_dead(layer const* transforms, tensor const& t) { return left_in(transforms, t); }
bool is_mapped(tensor const& t);

/// True if a transform has rules for an operator. For an operator of a `library` this holds only for traces and
/// `functionalize`, which need no more than that the operator only computes.
inline bool has_rules(layer_kind const& by, boxed_op const& op) {
  return op.table->eval || (op.table->defined && (by.is_trace() || by.role == layer_role::functionalize));
}
/// Calls an operator of a `library` that has neither rules nor a composite kernel. The call skips a transform that none
/// of the operands belongs to, and is refused by others.
tensor call_without_rules(layer const& in, boxed_op const& op, boxed_args const& x);

/// Returns the keys of a call at a transform: those of the innermost values of its operands, and of the layer, minus
/// those that the layer skips. The history bit states that autograd is the layer's own, so that the call stops there.
dispatch_key_set keys_at(layer const& l, boxed_op const& op, boxed_args const& x);

/// The rest of a call after a transform has done its own part: kernels below its key, then the layers below.
struct kernels_below {
  layer& of;
  dispatch_key_set keys;
  boxed_args const& x;
};
/// Runs a call at the key that the layer itself implements. Kernels below that key run as part of it, as they do below
/// autograd for eager tensors: what they do is not recorded.
tensor call_layer(layer& top, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);
tensor call_kernels_below(boxed_op const& op, kernels_below const& rest);
/// Ends the kernels of a transform. If its own key was passed, by itself or by a kernel in its place, only lowering
/// remains; otherwise the layer does all of its own part.
tensor call_transform_back(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

/// Processes a call by the innermost transform. It uses the rule registered for it, or kernels registered between
/// `transform` and `transform_back` that concern it, or the composite that the operator is, or the operator's rules.
tensor call_transform(void*, boxed_op const& op, dispatch_key_set keys, boxed_args const& x);

} // namespace varve::detail

#if VARVE_DEFINES
namespace varve::detail {
VARVE_COLD VARVE_LIBRARY void refuse_elsewhere() {
  refuse::with<transform_error>(
      "varve: a value of a transform that is at work on another thread was used without the state of "
      "that thread; hand the function over by carry, or restore a thread_snapshot");
}
VARVE_COLD VARVE_LIBRARY tensor const& left_in(layer const* transforms, tensor const& t) {
  tensor const* p = &t;
  for (; p->defined() && p->is_wrapped() && !is_alive(transforms, *p); p = &p->inner()) {
    if (p->state()) {
      if (working_layers::elsewhere(p->layer())) refuse_elsewhere();
      (void)p->current(); // refreshes it from its memory for the last time
      continue;
    }
    bool const constant = !p->history() && !p->extra().defined() && p->sizes() == p->inner().sizes();
    if (!constant && working_layers::elsewhere(p->layer())) refuse_elsewhere();
    if (!(p->sizes() == p->inner().sizes()))
      refuse::with<transform_error>(
          "varve: a value mapped by vmap was used after its vmap had returned; return it from the "
          "mapped function instead of storing it");
  }
  return *p;
}
VARVE_COLD VARVE_LIBRARY bool is_mapped(tensor const& t) {
  return t.is_wrapped() &&
         ((t.dim() != t.inner().dim() && is_alive(this_thread_state.transforms.top, t)) || is_mapped(t.inner()));
}
VARVE_COLD VARVE_LIBRARY tensor call_without_rules(layer const& in, boxed_op const& op, boxed_args const& x) {
  for (auto const& t : x)
    if (t.defined() && t.is_wrapped() && t.layer() == in.id) no_rule(op.name(), in.kind->name);
  return op(x);
}
VARVE_LIBRARY tensor processing_layer::finish(boxed_op const& op, boxed_args const& x, bool replaced) const {
  key_guard const callers(included(), excluded());
  if (kind_.records) of_.grad_mode = grad_mode;
  if (!replaced) return has_rules(kind_, op) ? of_.kind->process(of_, op, x) : call_without_rules(*this, op, x);
  auto const mine = [&](tensor const& t) { return t.defined() && t.is_wrapped() && t.layer() == id; };
  bool const writes = x.size() && (op.table->kind == op_kind::mutation || std::strchr(op.schema(), '!'));
  boxed_args inside;
  for (auto const& t : x) {
    // A kernel in place of the layer must not do what the layer itself would refuse.
    if (writes && mine(t) && !mine(x[0]) && (t.history() || t.extra().defined()))
      refuse::with<transform_error>(
          (std::string("varve: ") + kind_.name + ": " + op.name() +
           ": a captured tensor cannot be written with a value of the transform; pass it as an argument")
              .c_str());
    inside.push_back(mine(t) ? t.current() : t);
  }
  if (writes && mine(x[0]) && x[0].history() && x[0].history().to()->type->is_leaf)
    refuse::with<autograd_error>((std::string("varve: ") + op.name() + ": an argument of " + kind_.name +
                                  " is a leaf and cannot be written into; write into a value computed from it")
                                     .c_str());
  tensor const y = op(inside);
  return writes ? x[0] : y;
}
VARVE_COLD VARVE_LIBRARY dispatch_key_set keys_at(layer const& l, boxed_op const& op, boxed_args const& x) {
  thread_state const& s = this_thread_state;
  dispatch_key_set keys = s.included | l.kind->keys;
  for (auto const& t : x) {
    if (!t.defined()) continue;
    tensor const* base = &t;
    while (base->is_wrapped()) base = &base->inner();
    keys |= base->keys();
  }
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  if ((keys & backends).empty()) keys |= default_keys;
  dispatch_key_set const excluded =
      processing_layer::of(l) ? s.excluded : (s.excluded - l.kind->keys) | passed_over(l.kind->keys);
  keys = ((keys.below(dispatch_key::transform) | dispatch_key::transform_back) - excluded) & dispatch_key_set::full();
  bool const own =
      op.table->eval && keys.has_any(l.kind->keys & dispatch_key_set(dispatch_key::autograd_functionality));
  return own ? keys | dispatch_key_set::of_bits(dispatch_key_set::history_bit) : keys;
}
VARVE_COLD VARVE_LIBRARY tensor call_layer(layer& top, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  processing_layer const* const here = processing_layer::of(top);
  kernels_below const rest{here->working_for(),
                           keys.below(dispatch_key::autograd_functionality) & dispatch_key_set::full(), x};
  bool const any = table_of(op).stops.has_any(rest.keys.above(dispatch_key::transform_back));
  popped const off(this_thread_state.transforms);
  return here->finish({op.table, op.at, any ? &rest : nullptr}, x, false);
}
VARVE_COLD VARVE_LIBRARY tensor call_kernels_below(boxed_op const& op, kernels_below const& rest) {
  thread_state& s = this_thread_state;
  pushed const back(s.transforms, rest.of);
  bool const outer = s.grad_mode;
  if (rest.of.kind->records) s.grad_mode = rest.of.grad_mode;
  struct restored {
    bool& mode;
    bool value;
    ~restored() { mode = value; }
  } const grad_mode{s.grad_mode, outer};
  processing_layer const here(rest.of);
  exclude_keys const off(dispatch_key::autograd_functionality);
  tensor const y = redispatch(op, rest.keys, rest.x);
  return y.defined() && y.is_wrapped() && y.layer() == rest.of.id ? y.current() : y;
}
VARVE_COLD VARVE_LIBRARY tensor call_transform_back(void*, boxed_op const& op, dispatch_key_set keys,
                                                    boxed_args const& x) {
  layer* const top = this_thread_state.transforms.top;
  processing_layer const* const here = top ? processing_layer::of(*top) : nullptr;
  if (!here) return redispatch(op, keys.below(dispatch_key::transform_back), x);
  dispatch_table const& t = table_of(op);
  if (t.composite.call) return t.composite.call(t.composite.self, op, keys, x);
  dispatch_key_set const own = implementing(top->kind->keys);
  constexpr dispatch_key_set backends = dispatch_key_set::of_bits(0xF);
  bool const passed = !own.empty() && !keys.has_any(own);
  // Without rules the layer has no part of its own: only a kernel can have done it.
  bool const replaced = passed && (op.table->eval || t.at[static_cast<int>(((keys & backends) | own).highest())].call ||
                                   this_thread_state.excluded.has_any(own));
  popped const off(this_thread_state.transforms);
  return here->finish(op, x, replaced);
}
VARVE_NOINLINE VARVE_LIBRARY tensor call_transform(void*, boxed_op const& op, dispatch_key_set keys,
                                                   boxed_args const& x) {
  thread_state& s = this_thread_state;
  bool dead = false;
  for (auto const& t : x) dead = dead || (t.defined() && t.is_wrapped() && !is_alive(s.transforms.top, t));
  if (dead) {
    boxed_args plain;
    for (auto const& t : x) plain.push_back(unwrap_dead(s.transforms.top, t));
    return call_boxed(op, plain);
  }
  if (!s.transforms.top) return redispatch(op, keys.below(dispatch_key::transform), x);
  if (dispatch_table const& t = table_of(op); &t != &unregistered) [[unlikely]] {
    for (auto const& r : t.rules)
      if (r.call && std::strcmp(r.kind, s.transforms.top->kind->name) == 0)
        return r.call(r.self, *s.transforms.top, op, x);
    if (dispatch_key_set const at = keys_at(*s.transforms.top, op, x);
        t.stops.has_any(at.above(dispatch_key::transform_back))) {
      if (processing_layer::of(*s.transforms.top)) return redispatch(op, at, x);
      processing_layer const here(*s.transforms.top);
      return redispatch(op, at, x);
    }
    if (t.composite.call) return t.composite.call(t.composite.self, op, keys, x);
    layer_kind const& by = *s.transforms.top->kind;
    if (!has_rules(by, op) && by.role != layer_role::lanes) {
      lowered const off;
      return call_without_rules(off.top(), op, x);
    }
  }
  popped const p(s.transforms);
  return p.top().kind->process(p.top(), op, x);
}
} // namespace varve::detail
#endif
