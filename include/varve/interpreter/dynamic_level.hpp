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

/// The operands of a boxed call opened by a run-time transform: their inner values and the payload of each, which is
/// undefined for operands without one.
struct boxed_dual {
  boxed_args primal;
  boxed_args tangent;
};
/// The operands of a call as a level of reverse mode sees them.
struct boxed_tracked {
  boxed_args const* of; // the original operands
  boxed_args primal;
  bool any = false;
};
/// The operands of a call, opened at a level.
struct boxed_operands {
  boxed_args const* from;
  boxed_args value;
  bool any = false;
  layer const* of = nullptr;
};

/// The boxed form of the rule calls in `rule_call.hpp`: the loop over operands runs at run time; the rules are the
/// same. This one returns the tangent of the result, undefined if there is none.
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
/// Opens and closes *tensors* for an interpreter, by the layer that their payload names.
struct dynamic_level {
  static constexpr int level = 0;
  layer* self = nullptr;

  /// Recomputes the payload of a view; null if values have none.
  void (*refresh)(tensor const& view) = nullptr;

  /// The tensors that the function received without being differentiated by them. It may write into these, unlike into
  /// captures.
  std::vector<tensor> given;

  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }
  /// Returns a value of this level, with its payload updated after writes into the memory of which it is a view.
  tensor const& fresh(tensor const& t) const {
    if (t.base().defined() && t.is_overtaken()) [[unlikely]]
      refresh_as_of(t);
    return t;
  }
  /// Recomputes the payload of a view while layers that began after its base was made are off the stack. The payload
  /// outlives such a layer, for example the trace of a branch that is the first to read the view.
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
  /// Makes a result without history or tangent a value of this level, so that values of the level may be written into
  /// it. A result in the memory of an operand is left as the operand is.
  template <class Y, class X>
  VARVE_NOINLINE void make_own(Y& y, X const& of) const {
    if (mine(y) || !has_derivatives(y.dtype()) || y.is_number() || self->kind->is_dual_level) return;
    for (int i = 0; i < of.size(); ++i)
      if (of[i].defined() && y.shares_storage(of[i])) return;
    y = tracked_value(y, {});
  }
  /// Applies `make_own` to the results of a higher-order operator or custom function. It skips results that have other
  /// owners, since functions may return tensors that they captured.
  template <class Y>
  Y own(Y y, boxed_args const& of) const {
    for (int k = 0; refresh && k < y.size(); ++k)
      if (y[k].defined() && y[k].is_unique()) make_own(y[k], of);
    return y;
  }

  /// Marks results of a traced function of a higher-order operator that lie in the memory of an operand as views of it.
  /// They may not be written into, nor read after the operand was written, since the graph may run another branch than
  /// this one.
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
  /// True if the only operand of a pack is mapped.
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
            class Y> // not tensor: compilers instantiate what depends on no parameter, even if unused
  tensor record(I const&, boxed_op const& op, Y const& y, boxed_tracked const& t) const {
    Y r = y;
    if (t.any && records()) write_down(op, r, *t.of, t.primal);
    return r;
  }
  /// Makes the result of a finished call a value of this level with a history. `of` are its operands and `below` their
  /// values one level below.
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
  /// Records a finished call while the level is on the stack (`layer_kind::record`).
  template <class Y>
  static void record_done(layer& l, boxed_op const& op, Y& y, tensor const* const* of, tensor const* const* below,
                          int n);
  /// Marks a result in the memory of an operand as a view of it. A view made while nothing is recorded has no history
  /// and may not be written into while operators are recorded.
  template <class Y>
  void link(boxed_op const& op, Y& y, tensor const& of, bool recording) const {
    if (!mine(of) || !y.shares_storage(of)) return;
    detail::view_origin origin = of.origin();
    if (!mine(y)) {
      if (!op.table->differentiable || !has_derivatives(y.dtype())) {
        // Detached from a value made at this level: a value of the level, too, but not linked to that value.
        if (has_derivatives(y.dtype()) && !self->kind->is_dual_level && y.is_made_since(self->epoch))
          y = tracked_value(y, {});
        return;
      }
      y = tracked_value(y, {});
      if (!recording) origin = detail::view_origin::no_grad;
    }
    y.set_base(of.base().defined() ? of.base() : of, origin);
  }
  /// True if operators are recorded at this level: the thread's grad mode before the level was taken off the stack.
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
  if (op.table->kind != op_kind::pointwise) in.link(op, y, *of[0], on); // pointwise results have memory of their own
  if (!y.is_wrapped()) in.make_own(y, operand_list{of, n});
}
#endif

/// A level of `vmap`, with the data that only `vmap` needs.
struct batch_level : dynamic_level {
  /// The size of the mapped dimension. `random` says what random operators do.
  extent batch_size = 0;
  random_policy random = random_policy::error;
  /// Returns the level of a layer of `vmap`.
  static batch_level const& of(layer const& l) {
    return static_cast<batch_level const&>(*static_cast<dynamic_level const*>(l.object));
  }
};

namespace detail {
/// Runs a random operator under `vmap` by the policy of the layer. Attribute 0 is its shape.
VARVE_COLD inline operand<tensor, bool> batched_random(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (op.at->count == 0) return {op(o.value), false}; // states of the generator are the same for all lanes
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
