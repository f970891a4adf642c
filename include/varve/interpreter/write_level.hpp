// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/op/clone.hpp>

/// @file
/// Operators that write, on values seen through a run-time transform: the memory inside is written into, and what the transform knows of the value changes with it. What has no
/// part in the transform cannot take a value of it (FS-7, TR-5), and memory that other values share would be overtaken unseen: both are refused before anything is written.
namespace varve::detail {

[[noreturn]] VARVE_COLD inline void refuse_write_at_level(boxed_op const& op, char const* kind, char const* why) {
  throw transform_error((std::string("varve: ") + kind + ": " + op.name() + ": " + why).c_str());
}
inline void check_write_at_level(layer const& l, boxed_op const& op, boxed_args const& x) {
  auto const mine = [&](tensor const& t) { return t.is_wrapped() && t.layer() == l.id; };
  if (!mine(x[0])) {
    bool const maps = std::strcmp(l.kind, "vmap") == 0;
    refuse_write_at_level(op, l.kind, maps ? "a value that is not mapped cannot be written with a mapped one; use the functional operator"
                                           : "a captured tensor, which the transform does not see, cannot be written with a value that it does; pass the tensor as an argument, or use the functional operator");
  }
  tensor const* inside = &x[0];
  while (inside->is_wrapped()) inside = &inside->inner();
  if (std::strcmp(l.kind, "vmap") != 0 && inside->has_data() && !inside->has_own_memory()) refuse_write_at_level(op, l.kind, "the value is a view or has views; inside of a transform these cannot be written into: use the functional operator");
}
/// The operands as they were before the write.
template <class T = tensor>
boxed_args kept_before(boxed_args const& x) {
  boxed_args before = x;
  for (int i = 0; i < x.size(); ++i)
    if (x[i].is(x[0])) before[i] = T(clone(static_cast<T const&>(x[i])));
  return before;
}

/// Of a tape: the value's history is the write.
template <class Lv>
tensor write_at(grad_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_tracked const t = in.open_tracked(x);
  bool any = false;
  for (auto const& v : x) any = any || in.mine(v);
  if (!any) return op(t.primal);
  check_write_at_level(*in.self, op, x);
  tensor const& self = x[0];
  if (self.history() && self.history().to()->type->is_leaf)
    throw autograd_error((std::string("varve: ") + op.name() + ": an argument of grad is a leaf and cannot be written into; write into a value computed from it, as mul(x, 1)").c_str());
  if (!t.any || !in.records()) return op(t.primal), self;
  boxed_args const before = kept_before<>(t.primal);
  auto const edge_of = [&](int i) { return in.mine(x[i]) && x[i].history() ? &x[i].history() : nullptr; };
  edge edges[saved_values::most];
  for (int i = 0; i < x.size(); ++i)
    if (edge const* const e = edge_of(i)) edges[i] = *e;
  tensor const y = op(t.primal);
  self.set_history(edge_to(operator_node::make(op, y, before, [&](int i) { return edges[i] ? &edges[i] : nullptr; })));
  return self;
}
/// Of pairs: the tangent changes with the value.
template <class Lv>
tensor write_at(jvp_interpreter<Lv> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_dual const d = in.open_dual(x);
  bool any = false;
  for (auto const& v : x) any = any || in.mine(v);
  if (!any) return op(d.primal);
  check_write_at_level(*in.self, op, x);
  boxed_dual const before{kept_before<>(d.primal), d.tangent};
  tensor const y = op(d.primal);
  x[0].set_extra(tangent(op, y.is_wrapped() ? y : y.alias(), before));
  return x[0];
}
/// Of slices: the memory of all is written at once.
template <class N>
tensor write_at(vmap_interpreter<dynamic_level, N> const& in, boxed_op const& op, boxed_args const& x) {
  boxed_operands const o = in.open_batched(x);
  if (!o.any) return op(o.value);
  check_write_at_level(*in.self, op, x);
  bool batched_flags[saved_values::most] = {};
  for (int i = 0; i < x.size(); ++i) batched_flags[i] = in.mine(x[i]);
  op.table->batch(*op.at, in.n[0], o.value, batched_flags);
  return x[0];
}

} // namespace varve::detail
