// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/interpreter/grad.hpp>
#include <varve/interpreter/jvp.hpp>
#include <varve/interpreter/mode.hpp>
#include <varve/interpreter/tape.hpp>
#include <varve/interpreter/vmap.hpp>

namespace varve {

/// Collects the cotangent of one tensor; null until something arrives.
struct cotangent_slot {
  tensor value;
};

/// The operands of a boxed call opened by a run-time transform: their inner values, and the payload of each (null where it has none).
struct boxed_dual {
  boxed_args primal;
  boxed_args tangent;
};
struct boxed_tracked {
  static constexpr int most = 8;
  mutable boxed_args primal; // moved into the node that records the call
  cotangent_slot* slot[most]; // as many as there are operands
  bool any = false;
};
struct boxed_operands {
  static constexpr int most = 8;
  boxed_args value;
  bool batched[most] = {};
  bool any = false;
  layer const* of = nullptr;
};

/// Boxed forms of the three rule calls (`rule_call.hpp`): the loop over operands is at run time, the rules are the same.
template <class T>
  requires std::is_same_v<T, tensor>
T tangent(boxed_op const& op, T const& y, boxed_dual const& d) {
  T t;
  if (!op.table->differentiable || !is_floating(y.dtype())) return t;
  for (int i = 0; i < d.primal.size(); ++i) {
    if (!d.tangent[i].defined()) continue;
    T const c = op.table->jvp(i, *op.at, d.tangent[i], y, d.primal);
    t = t.defined() ? add(t, c) : c;
  }
  return t;
}
namespace detail {
/// A random operator under `vmap`, by the policy of the layer: attribute 0 is its shape.
VARVE_COLD inline operand<tensor, bool> batched_random(boxed_op const& op, dims const& n, boxed_operands const& o) {
  if (o.of->random == random_policy::error)
    throw transform_error((std::string("varve: vmap: ") + op.name() + " is random; say whether all slices see the same numbers: vmap(f, ..., randomness::same) or randomness::different").c_str());
  if (o.of->random == random_policy::same) return {op(o.value), false};
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
  return {op.table->batch(*op.at, n[0], o.value, o.batched), true};
}

namespace detail {
/// One operator recorded on the tape of a run-time `grad`. (A template only to cost nothing unless used, as `tangent`.)
template <class T = tensor>
struct boxed_node : tape_node {
  cotangent_slot out;
  op_table const* table;
  attributes const* at;
  tensor y;
  boxed_args primal;
  cotangent_slot* slot[boxed_tracked::most];

  boxed_node(op_table const* f, attributes const* a, tensor const& r, boxed_tracked const& t) : table(f), at(a), y(r), primal(static_cast<boxed_args&&>(t.primal)) {
    for (int i = 0; i < primal.size(); ++i) slot[i] = t.slot[i];
    act = &run;
  }
  static void run(tape_node* n, action a) {
    auto* self = static_cast<boxed_node*>(n);
    if (a == pull) self->pull_all();
    else if (a == clear) self->out.value = tensor();
    else self->~boxed_node();
  }
  void pull_all() {
    if (!out.value.defined()) return;
    for (int i = 0; i < primal.size(); ++i) {
      if (!slot[i]) continue;
      T const c = table->vjp(i, *at, out.value, y, primal);
      slot[i]->value = slot[i]->value.defined() ? add(slot[i]->value, c) : c;
    }
  }
};
struct boxed_leaf : tape_node {
  cotangent_slot out;
  boxed_leaf() { act = &run; }
  static void run(tape_node* n, action a) {
    auto* self = static_cast<boxed_leaf*>(n);
    if (a == clear) self->out.value = tensor();
    else if (a == drop) self->~boxed_leaf();
  }
};
} // namespace detail

/// How an interpreter opens and closes *tensors*: by the layer their payload names.
struct dynamic_level {
  static constexpr int level = 0;
  layer* self = nullptr;
  tape_memory* record_on = nullptr;

  bool mine(tensor const& t) const { return t.defined() && t.is_wrapped() && t.layer() == self->id; }

  boxed_dual open_dual(boxed_args const& x) const {
    boxed_dual d;
    for (auto const& t : x) {
      d.primal.push_back(mine(t) ? t.inner() : t);
      d.tangent.push_back(mine(t) ? t.extra() : tensor());
    }
    return d;
  }
  template <class I>
  tensor close_dual(I const&, tensor const& y, tensor const& t) const {
    return t.defined() ? tensor::wrap(y, self->id, self->level, t, nullptr, y.sizes()) : y;
  }

  boxed_operands open_batched(boxed_args const& x) const {
    boxed_operands o;
    o.of = self;
    for (int i = 0; i < x.size(); ++i) {
      o.batched[i] = mine(x[i]);
      o.any = o.any || o.batched[i];
      o.value.push_back(o.batched[i] ? x[i].inner() : x[i]);
    }
    return o;
  }
  /// Is the one operand of a pack mapped?
  bool is_mapped(boxed_args const& x) const { return mine(x[0]); }
  template <class I, class Flag>
  tensor close_batched(I const&, operand<tensor, Flag> const& y) const {
    if (!y.batched) return y.value;
    dims logical = y.value.sizes();
    return tensor::wrap(y.value, self->id, self->level, {}, nullptr, logical.erase(0));
  }

  boxed_args const& open_plain(boxed_args const& x) const { return x; }
  template <class I>
  tensor close(I const&, tensor const& y) const {
    return y;
  }

  boxed_tracked open_tracked(boxed_args const& x) const {
    boxed_tracked r;
    for (int i = 0; i < x.size(); ++i) {
      tensor const& t = x[i];
      bool const m = mine(t);
      r.slot[i] = m ? t.slot() : nullptr;
      r.any = r.any || r.slot[i];
      r.primal.push_back(m ? t.inner() : t);
    }
    return r;
  }
  template <class I, class Y> // not tensor const& y: compilers instantiate what does not depend on a parameter, used or not
  tensor record(I const&, boxed_op const& op, Y const& y, boxed_tracked const& t) const {
    if (!t.any || !op.table->differentiable || !is_floating(y.dtype())) return y;
    auto* n = record_on->template make<detail::boxed_node<>>(op.table, op.at->count ? record_on->keep(*op.at) : &no_attributes, y, t);
    return tensor::wrap(y, self->id, self->level, {}, &n->out, y.sizes());
  }
};

} // namespace varve
