// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/trace_layer.hpp>

/// @file
/// How a trace records a call, and what it refuses because a graph cannot represent it.
#if VARVE_DEFINES
namespace varve {

/// True if modes were switched on inside the traced function. Modes that were on around an operator with functions, and
/// are on again in these functions, do not count.
VARVE_LIBRARY bool trace_layer::sees_other_modes() const {
  layer const* l = this_thread_state.modes.top;
  while (l && l != modes_ && static_cast<std::int32_t>(l->epoch - epoch) < 0) l = l->below;
  return l != modes_;
}
VARVE_LIBRARY void trace_layer::require_kept() const {
  if (!is_mode() && sees_other_modes())
    refuse::argument_is_invalid("trace", "a mode was switched on in a function that is traced: the graph would not "
                                         "know of it; switch it on around the call of what was traced");
  if (this_thread_state.saved_hooks != hooks_)
    refuse::argument_is_invalid("trace", "saved tensor hooks were switched on in a function that is traced: the graph "
                                         "would not know of them; switch them on around the call of what was traced");
  if (builder.writes_scaffolds()) return; // the generator will be restored
  if (detail::generator_sets != sets_ || default_generator.seed != drawn_.seed ||
      default_generator.offset != drawn_.offset)
    refuse::argument_is_invalid("trace", "the random generator was set in a function that is traced (manual_seed, "
                                         "set_rng_state, generator_guard): the graph would not know of it; set it "
                                         "around the call of what was traced");
}
VARVE_LIBRARY bool trace_layer::records(boxed_args const& x, bool random) const {
  bool traced = !folds || random;
  for (auto const& t : x) traced = traced || (t.defined() && is_mine(t));
  return traced;
}
VARVE_LIBRARY void trace_layer::called(int node, bool grad_mode) {
  settle();
  if (detail::runs_text) builder.is_text(node);
  bool const now = grad_mode && !this_thread_inference;
  if (now != ambient_) builder.called_in(node, now ? recording::on : recording::off);
}
VARVE_LIBRARY void trace_layer::settle() {
  if (!builder.writes_scaffolds()) drawn_ = default_generator;
}
VARVE_LIBRARY bool trace_layer::is_random(boxed_op const& op) {
  return op.table->handle && op.table->handle()->kind == op_kind::random;
}
VARVE_LIBRARY tensor trace_layer::run(boxed_op const& op, boxed_args const& x) const {
  if (!copies && op.table->kind == op_kind::mutation && is_outside(x[0])) refuse::with<write_met>();
  if (apart && is_random(op)) {
    emptied const alone(this_thread_state.transforms), alone_below(mode_slot());
    return op(x);
  }
  return below([&] { return op(x); });
}
VARVE_COLD VARVE_LIBRARY tensor trace_layer::record_nothing(boxed_op const& op, boxed_args const& x) {
  if (!missing_node) detail::no_rule(op.name(), "trace");
  missing_node(op.name());
  boxed_args inner;
  for (auto const& t : x) inner.push_back(t.defined() ? run_on(t) : t);
  tensor const y = run(op, inner);
  int const zero = builder.constant(y.dtype(), 0);
  attributes const at(y.sizes(), dims{static_cast<index_t>(y.dtype())});
  return wrap(y, builder.add_node(&handle<full_t>, at, &zero, 1, {y.dtype(), y.sizes()}));
}
VARVE_LIBRARY tensor trace_layer::record(boxed_op const& op, boxed_args const& x) {
  require_kept();
  if (!op.table->node()) return record_nothing(op, x);
  if (!records(x, is_random(op))) {
    tensor const y = run(op, x);
    settle();
    return y;
  }
  boxed_args inner;
  std::vector<int> ids;
  for (auto const& t : x) {
    ids.push_back(node_of(t));
    inner.push_back(run_on(t));
  }
  if (op.table->kind == op_kind::mutation && x[0].origin() == detail::view_origin::other_dtype)
    refuse::argument_is_invalid("trace",
                                "what view_as_real or view_as_complex gave is a copy in a traced function, and "
                                "is written into; write into the value itself, complex(re, im)");
  bool const acts = op.table->kind == op_kind::effect;
  detail::unacted_scope const silent(acts); // the graph performs the effect when it is run
  tensor const y = run(op, inner);
  if (acts && detail::reruns > 0 && op.table->node()->only_tells) return wrap(y, builder.constant(y.dtype(), 0));
  if (is_mode() && op.table->kind == op_kind::mutation)
    for (trace_layer* l = this; l; l = l->outer) l->known_.written(inner[0]);
  attributes at = *op.at;
  if (op.table->node() == &handle<local_scalar_t>) { // the node stores the symbol
    tensor number = y;                               // as it is below the transforms around the trace
    while (number.is_wrapped()) number = number.current();
    extent const* const n = number.object() ? number.object()->symbol_of(number) : nullptr;
    if (n) at = attributes(dims{*n}), told(at[0][0], ids[0]);
  }
  int const node =
      builder.add_node(op.table->node(), at, ids.data(), static_cast<int>(ids.size()), {y.dtype(), y.sizes()});
  called(node, grad_mode);
  return wrap(y, node);
}

} // namespace varve
#endif
