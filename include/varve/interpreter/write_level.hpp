// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/view_history.hpp>
#include <varve/op/clone.hpp>

/// @file
/// In-place operators on values seen through a run-time transform. The memory inside is written. The payload of the
/// value changes with it, and so do those of its base and of other views, as in eager autograd. A tensor that takes no
/// part in the transform cannot be written with a value of the transform; this is refused before anything is written.
namespace varve::detail {

[[noreturn]] VARVE_COLD inline void refuse_write_at_level(boxed_op const& op, char const* kind, char const* why) {
  refuse::with<transform_error>((std::string("varve: ") + kind + ": " + op.name() + ": " + why).c_str());
}
/// True if a value was made by the function that runs at a level of `grad` or `jvp`, or was passed to it.
inline bool is_own(layer const& l, tensor const& x) {
  if (l.kind->is_dual_level || x.is_made_since(l.epoch)) return true;
  for (tensor const& t : static_cast<dynamic_level const*>(l.object)->given)
    if (t.shares_storage(x)) return true;
  return false;
}
inline void check_write_at_level(layer const& l, boxed_op const& op, boxed_args const& x) {
  auto const mine = [&](tensor const& t) { return t.is_wrapped() && t.layer() == l.id; };
  if (!mine(x[0])) {
    bool const maps = l.kind->role == layer_role::vmap;
    if (!maps && !has_derivatives(x[0].dtype()) && is_own(l, x[0])) return; // has no derivative
    refuse_write_at_level(
        op, l.kind->name,
        maps ? "a value that is not mapped cannot be written with a mapped one; use the functional operator"
             : "a captured tensor, which the transform does not see, cannot be written with a value that it does; pass "
               "the tensor as an argument, or use the functional operator");
  }
  if (x[0].origin() == view_origin::other_dtype)
    refuse_write_at_level(op, l.kind->name,
                          "what view_as_real or view_as_complex gave is a copy in a transform, and is written into; "
                          "write into the value itself, complex(re, im)");
}
/// Refuses every write into a captured tensor, since the transform would not see it. Tensors that the function received
/// or made may be written.
template <class Lv>
void refuse_captured(Lv const& in, boxed_op const& op, tensor const& x) {
  if (in.mine(x) || is_own(*in.self, x)) return;
  refuse_write_at_level(op, in.self->kind->name,
                        "a captured tensor is written into; pass it as an argument, or use the functional operator");
}
/// Refuses writes in a trace that began after a level and runs below it. Such a trace runs the function of a
/// higher-order operator only for its graph: a branch that is not taken, or a step that a loop may not make. The level
/// must not treat its writes as done.
inline void refuse_before_trace(layer const& level, boxed_op const& op, tensor const& x) {
  tensor const& memory = x.base().defined() ? x.base() : x; // a view made by the function may be of older memory
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below) {
    if (!l->kind->is_trace()) continue;
    if (static_cast<std::int32_t>(l->epoch - level.epoch) > 0 && !memory.is_made_since(l->epoch))
      refuse_write_at_level(op, level.kind->name,
                            "the function of a higher-order operator writes into its operand, or into what it "
                            "captures; return the new value instead");
    return;
  }
}
/// Refuses to read a value that a function returned in memory that was written since. In a trace its position in that
/// memory is unknown, and only one path through the program returns it there (`dynamic_level::tied`).
VARVE_COLD inline void require_known(tensor const& v) {
  if (v.origin() == view_origin::other_dtype)
    refuse::with<transform_error>(
        "varve: what view_as_real or view_as_complex gave was read after a write into what it "
        "is of, in a transform, where it is a copy; take the view anew");
  bool const custom = v.origin() == view_origin::custom && v.stands_in();
  if (!custom && v.origin() != view_origin::function) return;
  refuse::with<transform_error>(
      "varve: what a function of a higher-order operator, or a custom function, returned may lie in "
      "the memory of its operand, which was written into since; let it return a copy, clone(x)");
}
/// A function that recomputes the payload of a view after its base was written into; null if there is none to compute.
template <class I>
inline constexpr void (*refresh_of)(tensor const&) = nullptr;
template <class Lv>
inline constexpr void (*refresh_of<grad_interpreter<Lv>>)(tensor const&) = [](tensor const& v) {
  require_known(v);
  v.set_history(v.base().history() ? level_views<dependent<tensor, Lv>>::history_of_view(v.base(), v) : edge());
};
template <class Lv>
inline constexpr void (*refresh_of<jvp_interpreter<Lv>>)(tensor const&) = [](tensor const& v) {
  require_known(v);
  v.set_extra(tangent_of_view<dependent<tensor, Lv>>(v.base(), v));
};

/// Returns the operands with copies of those in `which` that share memory with the operand to be written.
template <class T = tensor>
boxed_args kept_before(boxed_args const& x, unsigned which = ~0u) {
  boxed_args before = x;
  for (int i = 0; i < x.size(); ++i)
    if ((which >> i & 1) && x[i].shares_storage(x[0])) before[i] = T(clone(static_cast<T const&>(x[i])));
  return before;
}

/// Writes into a value at a level of reverse mode: the write becomes the value's history.
template <class Lv>
tensor write_at(grad_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_tracked const t = in.open_tracked(x);
  if (!t.any && !in.mine(x[0])) return refuse_captured(in, op, x[0]), op(t.primal), x[0];
  check_write_at_level(*in.self, op, x);
  tensor const& self = x[0];
  if (!in.mine(self)) return op(t.primal), self;
  refuse_before_trace(*in.self, op, self);
  for (tensor const* v : {&self, &self.base()})
    if (v->defined() && v->history() && v->history().to()->type->is_leaf)
      refuse::with<autograd_error>(
          (std::string("varve: ") + op.name() +
           ": an argument of grad is a leaf; neither it nor a view of it can be written into. Write "
           "into a value computed from it, as clone(x)")
              .c_str());
  bool const tracked = t.any || (self.base().defined() && self.base().history());
  if (!tracked || !in.records()) return op(t.primal), self;
  check_write(op.name(), self);
  edge edges[saved_values::most];
  unsigned keep = 0;
  saved_values const saved = op.table->saved_for(*op.at);
  for (int i = 0; i < x.size(); ++i) {
    if (in.mine(x[i])) edges[i] = x[i].history();
    if (edges[i]) keep |= saved.of[i];
  }
  boxed_args const before = kept_before<>(t.primal, keep);
  tensor const y = op(t.primal);
  rebase(level_views<dependent<tensor, Lv>>{}, self,
         edge_to(operator_node::make(op, y, before, [&](int i) { return edges[i] ? &edges[i] : nullptr; })));
  return self;
}
/// Returns the value just written, for rules that read the result. It has the current history and none that comes
/// later, which could lead to what the rules compute from it.
template <class T = tensor>
T as_written(T const& y) {
  if (y.is_wrapped()) return y;
  T const r = y.alias();
  if (edge e = eager_history(y)) r.set_history(static_cast<edge&&>(e));
  return r;
}
/// Writes into a value at a level of forward mode: the tangent changes with the value.
template <class Lv>
tensor write_at(jvp_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_dual const d = in.open_dual(x);
  bool any = false;
  for (auto const& t : d.tangent) any = any || t.defined();
  if (!any && !in.mine(x[0])) return refuse_captured(in, op, x[0]), op(d.primal), x[0];
  check_write_at_level(*in.self, op, x);
  if (!in.mine(x[0])) return op(d.primal), x[0];
  refuse_before_trace(*in.self, op, x[0]);
  check_write(op.name(), x[0]);
  boxed_dual const before{kept_before<>(d.primal), d.tangent};
  tensor const y = op(d.primal);
  change_tangent<dependent<tensor, Lv>>(x[0], tangent(op, as_written(y), before));
  return x[0];
}
/// Writes into a value at a level of `vmap`: the memory of all slices is written at once.
template <class N>
tensor write_at(vmap_interpreter<batch_level, N> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_operands const o = in.open_batched(x);
  if (!o.any) return op(o.value);
  check_write_at_level(*in.self, op, x);
  bool batched_flags[saved_values::most] = {};
  for (int i = 0; i < x.size(); ++i) batched_flags[i] = in.mine(x[i]);
  op.table->batch(*op.at, in.n[0], o.value, batched_flags);
  return x[0];
}

} // namespace varve::detail
