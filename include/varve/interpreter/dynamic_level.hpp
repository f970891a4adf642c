// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/interpreter/grad.hpp>
#include <varve/interpreter/jvp.hpp>
#include <varve/interpreter/mode.hpp>
#include <varve/interpreter/recorded_call.hpp>
#include <varve/interpreter/vmap.hpp>

#include <vector>

namespace varve {

/// The operands of a boxed call opened by a run-time transform: their inner values, and the payload of each (null where
/// it has none).
struct boxed_dual {
  boxed_args primal;
  boxed_args tangent;
};
/// Operands of a call as a level of reverse mode sees them.
struct boxed_tracked {
  boxed_args const* of; // the operands as they came
  boxed_args primal;
  bool any = false;
};
/// Operands of a call, opened at a level.
struct boxed_operands {
  boxed_args const* from;
  boxed_args value;
  bool any = false;
  layer const* of = nullptr;
};

/// Boxed forms of the three rule calls (`rule_call.hpp`): the loop over operands is at run time, the rules are the
/// same.
template <class T>
  requires std::is_same_v<T, tensor>
T tangent(boxed_op const& op, T const& y, boxed_dual const& d) {
  T t;
  if (!op.table->differentiable || !has_derivatives(y.dtype())) return t;
  for (int i = 0; i < d.primal.size(); ++i) {
    if (!d.tangent[i].defined()) continue;
    T const c = op.table->jvp(i, *op.at, d.tangent[i], y, d.primal);
    t = t.defined() ? add(t, c) : c;
  }
  return t;
}
/// How an interpreter opens and closes *tensors*: by the layer their payload names.
struct dynamic_level {
  static constexpr int level = 0;
  layer* self = nullptr;

  /// Finds the payload of a view anew; null where values have none.
  void (*refresh)(tensor const& view) = nullptr;

  /// What the function was given without a part in the derivative: it may be written into, unlike what it captures.
  std::vector<tensor> given;

  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }
  /// A value of this level, with its payload as it is after writes into the memory it is a view of.
  tensor const& fresh(tensor const& t) const {
    if (t.base().defined() && t.is_overtaken()) [[unlikely]]
      refresh_as_of(t);
    return t;
  }
  /// What is kept in a view outlives a layer that began after its base was made, as the trace of a branch that asks for
  /// the view first.
  VARVE_NOINLINE void refresh_as_of(tensor const& t) const {
    thread_state& s = this_thread_state;
    layer* const top = s.transforms.top;
    layer* below = top;
    for (layer* l = top; l; l = l->below)
      if (static_cast<std::int32_t>(l->epoch - self->epoch) > 0 && !t.base().is_made_since(l->epoch)) below = l->below;
    detail::set_top(s.transforms, below);
    struct put_back {
      layer* top;
      ~put_back() { detail::set_top(this_thread_state.transforms, top); }
    } const on_exit{top};
    refresh(t);
  }

  boxed_dual open_dual(boxed_args const& x) const {
    boxed_dual d;
    for (auto const& t : x) {
      d.primal.push_back(mine(t) ? t.inner() : t);
      d.tangent.push_back(mine(t) ? fresh(t).extra() : tensor());
    }
    return d;
  }
  template <class I>
  tensor close_dual(I const&, tensor const& y, tensor const& t) const {
    return t.defined() ? tensor::wrap(y, self->id, self->level, t, {}, y.sizes()) : y;
  }
  /// A result without history or tangent that was made at this level may be written into with values of the level
  /// (FS-7): it is one of them. What lies in the memory of an operand is as that operand is.
  template <class Y, class X>
  VARVE_NOINLINE void make_own(Y& y, X const& of) const {
    if (mine(y) || !has_derivatives(y.dtype()) || y.is_number() || self->kind->is_dual_level) return;
    for (int i = 0; i < of.size(); ++i)
      if (of[i].defined() && y.shares_storage(of[i])) return;
    y = tracked_value(y, {});
  }
  /// ... of a higher-order operator or custom function, whose functions may also return what they captured: that others
  /// hold.
  template <class Y>
  Y own(Y y, boxed_args const& of) const {
    for (int k = 0; refresh && k < y.size(); ++k)
      if (y[k].defined() && y[k].is_unique()) make_own(y[k], of);
    return y;
  }

  /// What a function of a higher-order operator that is traced returned in the memory of an operand is a view of that:
  /// not to be written into, nor read when the operand was, since the graph may run another branch than this one.
  template <class Y>
  Y tied(Y y, boxed_args const& x) const {
    for (int k = 0; refresh && k < y.size(); ++k)
      for (int i = 0; i < x.size() && mine(y[k]) && !y[k].base().defined(); ++i)
        if (x[i].defined() && y[k].shares_storage(x[i]))
          y[k].set_base(x[i].base().defined() ? x[i].base() : x[i], detail::view_origin::function);
    return y;
  }

  boxed_operands open_batched(boxed_args const& x) const {
    boxed_operands o{&x, {}, false, self};
    for (auto const& t : x) {
      bool const m = mine(t);
      o.any = o.any || m;
      o.value.push_back(m ? t.inner() : t);
    }
    return o;
  }
  /// Is the one operand of a pack mapped?
  bool is_mapped(boxed_args const& x) const { return mine(x[0]); }
  template <class I, class Flag>
  tensor close_batched(I const&, operand<tensor, Flag> const& y) const {
    if (!y.batched) return y.value;
    dims logical = y.value.sizes();
    return tensor::wrap(y.value, self->id, self->level, {}, {}, logical.erase(0));
  }

  boxed_args const& open_plain(boxed_args const& x) const { return x; }
  template <class I>
  tensor close(I const&, tensor const& y) const {
    return y;
  }

  boxed_tracked open_tracked(boxed_args const& x) const {
    boxed_tracked r{&x, {}, false};
    for (auto const& t : x) {
      bool const m = mine(t);
      if (m && fresh(t).history()) r.any = true;
      r.primal.push_back(m ? t.inner() : t);
    }
    return r;
  }
  template <class I,
            class Y> // not tensor const& y: compilers instantiate what does not depend on a parameter, used or not
  tensor record(I const&, boxed_op const& op, Y const& y, boxed_tracked const& t) const {
    Y r = y;
    if (t.any && records()) write_down(op, r, *t.of, t.primal);
    return r;
  }
  /// Makes the result of a call that is done a value of this level, given what it was called on and what that held one
  /// level below.
  template <class Y, class X, class P>
  VARVE_INLINE void write_down(boxed_op const& op, Y& y, X const& of, P const& below) const {
    if (!op.table->differentiable || !has_derivatives(y.dtype())) return;
    edge const* edges[saved_values::most];
    edge const* any = nullptr;
    for (int i = 0; i < of.size(); ++i) {
      edges[i] = mine(of[i]) && fresh(of[i]).history() ? &of[i].history() : nullptr;
      if (edges[i]) any = edges[i];
    }
    if (!any) return;
    auto* const n = detail::operator_node::make(op, y, below, static_cast<edge const* const*>(edges));
    dims const& sizes = y.sizes();
    y = tensor::wrap(static_cast<Y&&>(y), self->id, self->level, {}, detail::edge_to(n), sizes);
  }
  /// ... while the level is on the stack (`layer_kind::record`).
  template <class Y>
  static void record_done(layer& l, boxed_op const& op, Y& y, tensor const* const* of, tensor const* const* below,
                          int n);
  /// A result in the memory of an operand remembers what it is a view of. Where nothing is recorded it has no history,
  /// and may not be written into where something is (AG-16).
  template <class Y>
  void link(boxed_op const& op, Y& y, tensor const& of, bool recording) const {
    if (!mine(of) || !y.shares_storage(of)) return;
    detail::view_origin origin = of.origin();
    if (!mine(y)) {
      if (!op.table->differentiable || !has_derivatives(y.dtype())) {
        // Detached of what was made at this level: its own, though nothing that it shows is told of it.
        if (has_derivatives(y.dtype()) && !self->kind->is_dual_level && y.is_made_since(self->epoch))
          y = tracked_value(y, {});
        return;
      }
      y = tracked_value(y, {});
      if (!recording) origin = detail::view_origin::no_grad;
    }
    y.set_base(of.base().defined() ? of.base() : of, origin);
  }
  /// Are operators recorded at this level? The mode of the thread as it was before the level was taken off (FS-8).
  bool records() const { return self->grad_mode; }
  tensor tracked_value(tensor const& y, edge history) const {
    return tensor::wrap(y, self->id, self->level, {}, static_cast<edge&&>(history), y.sizes());
  }
};

#if VARVE_DEFINES
template <class Y>
void dynamic_level::record_done(layer& l, boxed_op const& op, Y& y, tensor const* const* of, tensor const* const* below,
                                int n) {
  auto const& in = *static_cast<dynamic_level*>(l.object);
  bool const on = this_thread_state.grad_mode;
  if (on) in.write_down(op, y, operand_list{of, n}, operand_list{below, n});
  if (op.table->kind != op_kind::pointwise) in.link(op, y, *of[0], on); // those have memory of their own
  if (!y.is_wrapped()) in.make_own(y, operand_list{of, n});
}
#endif

/// ... of `vmap`: what only that needs.
struct batch_level : dynamic_level {
  /// Size of the mapped dimension, and what random operators do.
  extent batch_size = 0;
  random_policy random = random_policy::error;
  /// That of a layer which is one of `vmap`.
  static batch_level const& of(layer const& l) {
    return static_cast<batch_level const&>(*static_cast<dynamic_level const*>(l.object));
  }
};

namespace detail {
/// A random operator under `vmap`, by the policy of the layer: attribute 0 is its shape.
VARVE_COLD inline operand<tensor, bool> batched_random(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (op.at->count == 0) return {op(o.value), false}; // what the generator holds is one for all, and not random
  if (batch_level::of(*o.of).random == random_policy::error)
    refuse::with<transform_error>(
        (std::string("varve: vmap: ") + (random_caller ? random_caller : op.name()) +
         " is random; say whether all slices see the same numbers: vmap(f, ..., randomness::same) or "
         "randomness::different")
            .c_str());
  if (batch_level::of(*o.of).random == random_policy::same) return {op(o.value), false};
  attributes wide = *op.at;
  wide.fact[0] = wide.fact[0].insert(0, n[0]);
  return {boxed_op{op.table, &wide}(o.value), true};
}
} // namespace detail
inline operand<tensor, bool> batched(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (!o.any) {
    if (op.table->handle && op.table->handle()->kind == op_kind::random) return detail::batched_random(op, n, o);
    return {op(o.value), false};
  }
  bool batched[saved_values::most] = {};
  for (int i = 0; i < o.value.size(); ++i) batched[i] = !o.value[i].is((*o.from)[i]);
  return {op.table->batch(*op.at, n[0], o.value, batched), true};
}

} // namespace varve
