// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/interpreter/dynamic_level.hpp>

#include <cstring>

namespace varve {

namespace detail {
/// Gives a tensor another history. A retained gradient is from then on the gradient of the tensor's new value.
void change_history(tensor const& t, edge e);
/// A lock for threads that share a view, so that they find its history one at a time.
inline constinit spin_lock finding_histories;
void find_history(tensor const& t);
/// Returns the history of an eager tensor, recomputed if its base was written into since. Safe to call from several
/// threads at once.
inline edge const& eager_history(tensor const& t) {
  tensor const& base = t.base();
  if (base.defined() && base.history() && !t.is_wrapped() && t.is_overtaken()) [[unlikely]]
    find_history(t);
  return t.history();
}
/// Returns edges to what a gradient that may not be differentiated depends on: the operands of its node, and the
/// cotangents. Differentiating by one of these then reaches the refusal instead of yielding zero.
inline std::vector<edge> leading_to(grad_node const* node, boxed_args const& cotangents) {
  std::vector<edge> r;
  for (int k = 0; node && k < node->count; ++k) r.push_back(node->next[k]);
  for (auto const& t : cotangents)
    if (t.defined() && !t.is_wrapped() && t.has_history()) r.push_back(eager_history(t));
  if (r.empty()) r.emplace_back();
  return r;
}
/// Returns a value of an active level, with its history updated after writes into the memory of which it is a view.
inline tensor const& fresh_at_level(tensor const& t) {
  for (layer const* l = this_thread_state.transforms.top; l && t.is_wrapped() && t.base().defined(); l = l->below)
    if (l->id == t.layer()) static_cast<dynamic_level const*>(l->object)->fresh(t);
  return t;
}
/// Returns a value as seen below levels that did not record it, or that have ended while the value inside has a
/// history.
tensor const& where_recorded(tensor const& t);
/// Runs a recorded call below autograd. If a kernel returns an operand itself, the result becomes a view of it, since
/// the operand has a history of its own.
struct below_autograd {
  boxed_op const& op;
  dispatch_key_set keys;
  op_table const* table = op.table;
  attributes const* at = op.at;
  tensor operator()(boxed_args const& x) const {
    tensor y = redispatch(op, keys, x);
    for (auto const& t : x)
      if (t.is(y)) [[unlikely]] {
        y = t.with_layout(t.where(), true);
        if (y.base().defined()) y.set_origin(view_origin::custom);
        break;
      }
    return y;
  }
};
template <class X>
struct eager_tracked {
  X const& primal;
  bool any;
};
} // namespace detail

/// Eager autograd as the outermost level of `grad`. Values are not wrapped and store their histories themselves.
struct eager_level {
  template <class X>
  detail::eager_tracked<X> open_tracked(X const& x) const {
    bool any = false;
    for (int i = 0; i < x.size(); ++i) any = any || (x[i].defined() && x[i].has_history());
    return {x, any};
  }
  template <class Op>
  static bool records(Op const& op, tensor const& y) {
    return this_thread_state.grad_mode && !this_thread_inference && op.table->differentiable &&
           has_derivatives(y.dtype());
  }
  template <class I, class Op, class X>
  tensor record(I const&, Op const& op, tensor const& y, detail::eager_tracked<X> const& t) const {
    if (!t.any || !records(op, y)) {
      if (y.base().defined() && t.any)
        y.set_origin(this_thread_inference ? detail::view_origin::inference : detail::view_origin::no_grad);
      return y;
    }
    write_down(op, y, t.primal);
    return y;
  }
  /// Records a finished call as the history of its result.
  template <class Op, class X>
  static void write_down(Op const& op, tensor const& y, X const& x) {
    auto const edge_of = [&](int i) -> edge const* {
      if (x[i].is_inference()) [[unlikely]]
        for (int k = 0; k < x.size(); ++k)
          if (x[k].has_history() && op.table->saved_for(*op.at).of[k] >> i & 1)
            detail::refuse_inference(x[i], op.table->name);
      edge const& e = detail::eager_history(x[i]);
      return e ? &e : nullptr;
    };
    auto* const n = detail::operator_node::make({op.table, op.at}, y, x, edge_of, true);
    y.set_history(detail::edge_to(n));
    if (this_thread_state.anomaly) [[unlikely]]
      detail::autograd_kernels.load(std::memory_order_acquire)->note(*n);
  }
};

namespace detail {
[[noreturn]] VARVE_COLD inline void refuse_write(char const* op, char const* why) {
  refuse::with<autograd_error>((std::string("varve: ") + op + ": " + why).c_str());
}

/// Refuses a write that would make gradients wrong.
void check_write(char const* op, tensor const& x);
/// Makes a write into a tensor its history, and the history of its base and of the base's other views. `written` leads
/// to the node of the call, whose operand `target` is the tensor. `views` finds the other histories.
template <class Views>
void rebase(Views const& views, tensor const& self, edge const& written, int target = 0) {
  tensor const& base = self.base();
  if (!base.defined()) return change_history(self, written);
  change_history(base, views.history_of_base(base, edge(base.history()), self, written.to(), target));
  change_history(self, views.history_of_view(base, self));
}
/// Makes nodes that saved this memory release it, before the node of a write becomes its history. Nodes to which
/// `written` leads would otherwise keep themselves alive.
void let_go_of(tensor const& self, edge const& written);
/// Runs and records an operator that writes into its first operand.
tensor write_recorded(boxed_op const& op, dispatch_key_set below, boxed_args const& x);
/// Records a finished call with operands of which at least one requires grad.
void record_eagerly_done(boxed_op const& op, tensor const& y, operand_list x);
/// Processes a call at the autograd key: it is recorded if an operand has a history.
tensor record_eagerly(boxed_op const& op, dispatch_key_set below, boxed_args const& x);
} // namespace detail

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_NOINLINE VARVE_LIBRARY void change_history(tensor const& t, edge e) {
  edge const& old = t.history();
  bool const retained = old && old.to()->extra && old.to()->extra->release_retained(old.nr());
  t.set_history(static_cast<edge&&>(e));
  if (retained) autograd_kernels.load(std::memory_order_acquire)->retain(t.history());
}
VARVE_COLD VARVE_LIBRARY void find_history(tensor const& t) {
  edge old; // released outside of the lock: a graph may own user objects
  spin_lock::held const on(finding_histories);
  if (!t.is_overtaken()) return;
  if (t.origin() == view_origin::function)
    refuse::with<autograd_error>(
        "varve: what a function of a higher-order operator returned may lie in the memory of its "
        "operand, which was written into since; let it return a copy, clone(x)");
  if (t.origin() == view_origin::other_dtype)
    refuse::with<autograd_error>("varve: what a view of another dtype shows was written into since with values that "
                                 "require grad; take the view, view_as_real or view_as_complex, anew");
  if (t.history() && t.history().to()->type->is_leaf)
    refuse::with<autograd_error>(
        "varve: a leaf that requires grad is a view of a tensor that was written into with values that "
        "require grad: it would be no leaf any more, and get no gradient; make the leaf a clone");
  old = t.history();
  change_history(t, autograd_kernels.load(std::memory_order_acquire)->history_of_view(t.base(), t));
}
VARVE_LIBRARY tensor const& where_recorded(tensor const& t) {
  if (!t.is_wrapped() || t.dim() != t.inner().dim()) return t;
  bool const constant = !fresh_at_level(t).history() && !t.extra().defined();
  bool const left_over = !constant && t.inner().has_history() && !is_alive(this_thread_state.transforms.top, t);
  return constant || left_over ? where_recorded(t.inner()) : t;
}
VARVE_LIBRARY void check_write(char const* op, tensor const& x) {
  bool const leaf = x.history() && x.history().to()->type->is_leaf;
  if (leaf)
    refuse_write(
        op, "a leaf tensor that requires grad is used in an in-place operator; write under no_grad, or into a clone");
  if (!x.base().defined()) return;
  if (x.origin() == view_origin::function)
    refuse_write(op, "what a function of a higher-order operator returned may lie in the memory of its operand, and is "
                     "written into; let it return a copy, clone(x)");
  if (x.base().history() && x.base().history().to()->type->is_leaf)
    refuse_write(op, "a view of a leaf tensor that requires grad is used in an in-place operator; write under no_grad, "
                     "or into a clone");
  switch (x.origin()) {
  case view_origin::no_grad:
    refuse_write(op, "a view that was made in no_grad mode is written into with grad mode enabled; make the view "
                     "outside of no_grad, or write inside");
  case view_origin::inference:
    refuse_write(op, "a view that was made in inference mode is written into in normal mode; clone it first");
  case view_origin::many:
    refuse_write(op, "a view that is one of several results of an operator is written into; such views cannot be; use "
                     "the functional operator");
  case view_origin::custom:
    refuse_write(op, "a view that a custom function returned is written into; clone it in the function's forward");
  case view_origin::other_dtype:
    refuse_write(op, "a view of another dtype, of view_as_real or view_as_complex, is written into; write into the "
                     "value itself, complex(re, im)");
  case view_origin::leaf:
    refuse_write(op,
                 "a view of a leaf that requires grad, which is a view itself, is used in an in-place operator; write "
                 "under no_grad, or into a clone");
  default:
    break;
  }
  tensor const* memory = &x.base();
  int mapped = 0; // each lane must be dense, as its history requires (`region_of`)
  for (; memory->is_wrapped() && !memory->state(); memory = &memory->inner())
    mapped += memory->inner().dim() - memory->dim();
  if (!(memory->state() ? is_dense(memory->state()->layout_shown(), mapped)
                        : memory->is_contiguous() || is_dense(memory->where(), mapped)))
    refuse_write(op, "a view of memory that has gaps is written into with grad mode enabled; clone it first");
}
VARVE_COLD VARVE_LIBRARY void let_go_of(tensor const& self, edge const& written) {
  if (!self.may_be_kept()) return;
  edge const& before = (self.base().defined() ? self.base() : self).history();
  std::uint64_t const first = before ? before.to()->sequence : 0; // nodes that saved it since are later
  auto const order = [](grad_node const* n) { return std::pair(n->sequence, reinterpret_cast<std::uintptr_t>(n)); };
  list<grad_node*> ahead;
  ahead.push_back(written.to());
  for (grad_node* last = nullptr; !ahead.empty();) {
    std::ptrdiff_t at = 0; // later nodes first: a node to which several lead comes several times in a row
    for (std::ptrdiff_t k = 1; k < static_cast<std::ptrdiff_t>(ahead.size()); ++k)
      if (order(ahead[k]) > order(ahead[at])) at = k;
    grad_node* const n = ahead[at];
    ahead[at] = ahead.back();
    ahead.pop_back();
    if (n == last) continue;
    last = n;
    if (n->type->let_go) n->type->let_go(*n, self);
    for (int k = 0; k < n->count; ++k) {
      grad_node* const to = n->next[k].to();
      if (to && !to->type->is_leaf && to->sequence > first) ahead.push_back(to);
    }
  }
}
VARVE_NOINLINE VARVE_LIBRARY tensor write_recorded(boxed_op const& op, dispatch_key_set below, boxed_args const& x) {
  tensor const& self = x[0];
  bool any = false;
  for (auto const& t : x) any = any || (t.defined() && t.has_history());
  any = any || self.is_in_recorded_memory();
  bool const on = this_thread_state.grad_mode && !this_thread_inference && any && has_derivatives(self.dtype());
  if (!on) return redispatch(op, below, x);
  check_write(op.name(), self);
  edge edges[saved_values::most];
  unsigned keep = 0;
  boxed_args before = x;
  saved_values const saved = op.table->saved_for(*op.at);
  for (int i = 0; i < x.size(); ++i) {
    edges[i] = eager_history(x[i]);
    if (edges[i]) keep |= saved.of[i];
  }
  for (int i = 0; i < x.size(); ++i)
    if (keep >> i & 1) refuse_inference(x[i], op.name());
  for (int i = 0; i < x.size(); ++i)
    if ((keep >> i & 1) && x[i].shares_storage(self)) {
      // The gradient needs this value, which is about to be overwritten. The copy continues the history of the
      // original.
      bool const unseen = x[i].has_data() && this_thread_state.quiet();
      before[i] = unseen ? contiguous_copy(x[i]) : autograd_kernels.load(std::memory_order_acquire)->copy(x[i]);
      if (edges[i]) before[i].set_history(edges[i]);
    }
  tensor const y = redispatch(op, below, x);
  auto* const n = operator_node::make(op, y, before, [&](int i) { return edges[i] ? &edges[i] : nullptr; }, true);
  if (this_thread_state.anomaly) [[unlikely]]
    autograd_kernels.load(std::memory_order_acquire)->note(*n);
  edge const written = edge_to(n);
  let_go_of(self, written);
  rebase(*autograd_kernels.load(std::memory_order_acquire), self, written);
  return y;
}
VARVE_NOINLINE VARVE_LIBRARY void record_eagerly_done(boxed_op const& op, tensor const& y, operand_list x) {
  if (eager_level::records(op, y)) [[likely]]
    return eager_level::write_down(op, y, x);
  eager_level const level;
  level.record(level, op, y, eager_tracked<operand_list>{x, true});
}
VARVE_NOINLINE VARVE_LIBRARY tensor record_eagerly(boxed_op const& op, dispatch_key_set below, boxed_args const& x) {
  if (op.table->kind == op_kind::mutation) return write_recorded(op, below, x);
  if (!op.table->vjp && std::strchr(op.table->schema, '!') && this_thread_state.grad_mode) [[unlikely]]
    for (auto const& t : x) // the written operand would keep its old history
      if (t.defined() && t.has_history()) no_rule(op.name(), "grad");
  return grad_interpreter<eager_level>{}.process(below_autograd{op, below}, x);
}
} // namespace varve::detail
#endif
