// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/trace_layer.hpp>

/// @file
/// How a trace finds the node of a value.
#if VARVE_DEFINES
namespace varve {

VARVE_LIBRARY tensor trace_layer::wrap(tensor const& v, int node) {
  if (is_mode()) {
    known_.remember(v, node);
    return v;
  }
  return tensor::wrap(v, id, level, tensor::from_number(static_cast<std::int64_t>(node)), {}, v.sizes());
}
/// Returns a node of zeros, for the shape of what uses a value that is not part of the program.
VARVE_LIBRARY int trace_layer::unknown(tensor const& t) {
  int const zero = builder.constant(t.dtype(), 0);
  attributes const at(t.sizes(), dims{static_cast<index_t>(t.dtype())});
  int const zeros = builder.add_node(&handle<full_t>, at, &zero, 1, {t.dtype(), t.sizes()});
  // others are generator states, which only calls use
  return is_floating(t.dtype()) ? builder.is_unknown(zeros) : zeros;
}
VARVE_LIBRARY int trace_layer::node_of(tensor const& t) {
  if (!t.defined())
    refuse::argument_is_invalid("trace", "a tensor that is undefined was used in, or returned by, a function that is "
                                         "traced; return only tensors that hold something");
  if (is_mode()) {
    require_seen(t);
    int n = exact_node(t);
    bool by_outer = false;
    for (trace_layer const* l = outer; l && n < 0; l = l->outer) by_outer = by_outer || l->exact_node(t) >= 0;
    if (n < 0 && !by_outer) n = known_node(t);
    if (n >= 0) return n;
  } else if (is_mine(t)) {
    return static_cast<int>(t.extra().item<std::int64_t>());
  }
  if (t.is_number() && !t.is_wrapped() && !t.has_history()) // nothing differentiates or maps it
    return builder.constant(t.dtype(),
                            is_floating(t.dtype()) ? t.item<double>() : detail::held(t.item<std::int64_t>()));
  if (custom && outer->owns(t))
    refuse::argument_is_invalid(custom, "its forward uses a value that is being traced and is not among its "
                                        "arguments (hidden in another one, or captured); pass it to apply");
  if (int const n = literal_node(t); n >= 0) return n;
  if (outer) return from_outside(t, builder.lift(&outer->builder, outer->node_of(t), {t.dtype(), t.sizes()}));
  bool const within =
      t.is_made_since(epoch) || (t.stands_in() && (!is_mode() || (t.object() && !on_fakes_))); // by a trace in this one
  if (builder.writes_scaffolds() && within) return unknown(t);
  if (!captures && t.is_made_since(epoch) && t.writes())
    refuse::argument_is_invalid("make_fx", "the function uses a tensor that it made apart from what is traced, and "
                                           "wrote into; use the operator without underscore");
  return captured_node(t);
}
/// Returns the node of a captured tensor: an input after the arguments, if captures are collected; else it is refused.
VARVE_LIBRARY int trace_layer::captured_node(tensor const& t) {
  if (!captures) refuse::argument_is_invalid("make_fx", "the function captures a tensor; pass it as an argument");
  for (std::size_t k = 0; k < captured_.size(); k += 2)
    if ((*captures)[captured_[k]].is(t)) return captured_[k + 1];
  for (int k = 0; !is_mode() && k < found_.size(); ++k)
    if (found_[k].shares_storage(t) && !found_[k].is(t))
      refuse::argument_is_invalid("trace",
                                  "another handle of a tensor that the function made of C++ values (data()) is "
                                  "used beside it, and would not see what is written; use detach");
  int at = 0;
  while (at < captures->size() && !(*captures)[at].is(t)) ++at;
  if (at == captures->size()) {
    captures->push_back(t);
    if (folds) writes_before.push_back(t.writes());
  }
  captured_.push_back(at);
  captured_.push_back(builder.input({t.dtype(), t.sizes()}));
  return from_outside(t, captured_.back());
}
/// Refuses a value that was written by another thread, or in a scope that modes do not see: that is not in the graph.
VARVE_LIBRARY void trace_layer::require_seen(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->known_.is_overtaken(t))
      refuse::argument_is_invalid("trace", "a value of a traced function was written into where the trace does not see "
                                           "it (by another thread, or with modes off); write into it in the function "
                                           "itself");
}
VARVE_LIBRARY int trace_layer::from_outside(tensor const& t, int node) {
  if (is_mode()) found_.push_back(t), found_nodes_.push_back(node);
  return node;
}
/// Returns the node of a tensor that the function made from C++ values, or -1. It is a constant, created anew in each
/// run. A tensor that no constant can represent is a copy of a captured one. The tensor keeps its node when it is
/// written into, unless writes fold.
VARVE_LIBRARY int trace_layer::literal_node(tensor const& t) {
  if (folds && t.writes()) return -1;
  for (int k = 0; !is_mode() && k < found_.size(); ++k)
    if (found_[k].is(t)) return found_nodes_[static_cast<std::size_t>(k)];
  tensor const value = literal && t.is_made_since(epoch) && !t.writes() ? literal(t) : tensor();
  if (!value.defined()) return -1;
  for (std::size_t k = 0; !is_mode() && k < captured_.size(); k += 2) // another handle of it is captured
    if ((*captures)[captured_[k]].shares_storage(t)) return -1;
  int n = -1;
  if (captures && value.is(t) && !can_be_constant(value)) {
    int const captured = captured_node(t);
    n = builder.add_node(&handle<clone_t>, {}, &captured, 1, meta_of(t));
  } else {
    on_dtype(t.dtype(), "trace", [&]<class E>() {
      E const* const elements = static_cast<E const*>(value.raw());
      if (t.dim()) return void(n = builder.constant(t.dtype(), t.sizes(), elements));
      int const number = builder.constant(t.dtype(), detail::held(*elements));
      n = builder.add_node(&handle<full_t>, attributes(dims{}, dims{static_cast<index_t>(t.dtype())}), &number, 1,
                           meta_of(t));
    });
  }
  found_.push_back(t), found_nodes_.push_back(n);
  return n;
}
VARVE_LIBRARY bool trace_layer::can_be_constant(tensor const& t) {
  bool r = !is_compact(t.dtype()) && !is_complex(t.dtype());
  if (t.dtype() == dtype::int64)
    for (index_t k = 0; k < t.numel(); ++k) {
      std::int64_t const x = static_cast<std::int64_t const*>(t.raw())[k];
      r = r && x <= std::int64_t{1} << 53 && x >= -(std::int64_t{1} << 53);
    }
  return r;
}
VARVE_LIBRARY bool trace_layer::is_mine(tensor const& t) const {
  return is_mode() ? known_node(t) >= 0 : t.is_wrapped() && t.layer() == id;
}
VARVE_LIBRARY int trace_layer::exact_node(tensor const& t) const {
  if (int const n = known_.exact(t); n >= 0) return n;
  for (int k = 0; k < found_.size(); ++k)
    if (found_[k].is(t)) return found_nodes_[static_cast<std::size_t>(k)];
  return -1;
}
VARVE_LIBRARY int trace_layer::known_node(tensor const& t) const {
  if (int const n = known_.exact(t); n >= 0) return n;
  for (auto const& o : originals_)
    if (o.is(t)) return -1; // captured
  // A value and its detached alias have the same place in memory; a tensor with a history is not the alias.
  return known_.alike(t, [&](int n) { return !t.has_history() || !is_detached(n); });
}
VARVE_LIBRARY bool trace_layer::is_detached(int n) const {
  while (builder.written(n).op->kind == op_kind::view && builder.written(n).op != &handle<detach_t>)
    n = builder.operand_of(n);
  return builder.written(n).op == &handle<detach_t>;
}
VARVE_LIBRARY bool trace_layer::owns(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->is_mine(t)) return true;
  return false;
}

} // namespace varve
#endif
