// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/core/spin_lock.hpp>
#include <varve/interpreter/dynamic_level.hpp>

#include <cstring>

namespace varve {

namespace detail {
/// Gives a tensor another history. A gradient that is retained is from then on that of what the tensor now holds
/// (AG-9).
void change_history(tensor const& t, edge e);
/// Threads that share a view find its history one at a time.
inline constinit spin_lock finding_histories;
void find_history(tensor const& t);
/// An eager tensor's history, found anew when its base was written into since (AG-15). Threads may ask for it at once.
inline edge const& eager_history(tensor const& t) {
  tensor const& base = t.base();
  if (base.defined() && base.history() && !t.is_wrapped() && t.is_overtaken()) [[unlikely]]
    find_history(t);
  return t.history();
}
/// What a gradient that may not be differentiated depends on: the operands of its node, and the cotangents. Who asks
/// for a derivative by one of them meets the refusal, and no zero.
inline std::vector<edge> leading_to(grad_node const* node, boxed_args const& cotangents) {
  std::vector<edge> r;
  for (int k = 0; node && k < node->count; ++k) r.push_back(node->next[k]);
  for (auto const& t : cotangents)
    if (t.defined() && !t.is_wrapped() && t.has_history()) r.push_back(eager_history(t));
  if (r.empty()) r.emplace_back();
  return r;
}
/// A value of a level that is at work, with its history as it is after writes into the memory it is a view of.
inline tensor const& fresh_at_level(tensor const& t) {
  for (layer const* l = this_thread_state.transforms.top; l && t.is_wrapped() && t.base().defined(); l = l->below)
    if (l->id == t.layer()) static_cast<dynamic_level const*>(l->object)->fresh(t);
  return t;
}
/// A value that is only the own of levels which did not record it, or have ended while what it holds has a history, as
/// seen below them.
tensor const& where_recorded(tensor const& t);
/// Lowers below autograd: what a recorded call runs. A kernel that returns an operand itself is taken to have returned
/// a view of it, since the operand has a history of its own.
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

/// Eager autograd as the outermost level of `grad`: values are seen as they are, their histories hang on themselves.
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
  /// Makes a call whose result is there the history of that.
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

/// Refuses to write where that would make gradients wrong (AG-14, AG-16).
void check_write(char const* op, tensor const& x);
/// What was written into a tensor, operand `target` of the call, becomes its history, and that of its base and of the
/// base's other views (AG-15). `views` finds these.
template <class Views>
void rebase(Views const& views, tensor const& self, edge const& written, int target = 0) {
  tensor const& base = self.base();
  if (!base.defined()) return change_history(self, written);
  change_history(base, views.history_of_base(base, edge(base.history()), self, written.to(), target));
  change_history(self, views.history_of_view(base, self));
}
/// A memory is written, and its history is to be a node: nodes that this leads to, and that saved the memory as it was,
/// would keep themselves.
void let_go_of(tensor const& self, edge const& written);
/// A recorded call of an operator that writes into its first operand.
tensor write_recorded(boxed_op const& op, dispatch_key_set below, boxed_args const& x);
/// ... a call whose result is there, of operands one of which is known to require grad.
void record_eagerly_done(boxed_op const& op, tensor const& y, operand_list x);
/// What happens at the autograd key: recorded when an operand has a history.
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
  edge old; // let go outside of the lock: what a graph holds may be the user's
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
  int mapped = 0; // lanes must be dense each, as its history asks of them (`region_of`)
  for (; memory->is_wrapped() && !memory->state(); memory = &memory->inner())
    mapped += memory->inner().dim() - memory->dim();
  if (!(memory->state() ? is_dense(memory->state()->layout_shown(), mapped)
                        : memory->is_contiguous() || is_dense(memory->where(), mapped)))
    refuse_write(op, "a view of memory that has gaps is written into with grad mode enabled; clone it first");
}
VARVE_COLD VARVE_LIBRARY void let_go_of(tensor const& self, edge const& written) {
  if (!self.may_be_kept()) return;
  edge const& before = (self.base().defined() ? self.base() : self).history();
  std::uint64_t const first = before ? before.to()->sequence : 0; // what saved it since is later
  auto const order = [](grad_node const* n) { return std::pair(n->sequence, reinterpret_cast<std::uintptr_t>(n)); };
  list<grad_node*> ahead;
  ahead.push_back(written.to());
  for (grad_node* last = nullptr; !ahead.empty();) {
    std::ptrdiff_t at = 0; // later nodes first: one that several lead to comes several times in a row
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
      // What the gradient needs is about to be written over; its own derivative goes on to the history of the original.
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
    for (auto const& t : x) // what it writes would keep the history of what was there before
      if (t.defined() && t.has_history()) no_rule(op.name(), "grad");
  return grad_interpreter<eager_level>{}.process(below_autograd{op, below}, x);
}
} // namespace varve::detail
#endif
