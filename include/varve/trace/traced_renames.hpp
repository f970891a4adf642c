// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/trace_layer.hpp>

/// @file
/// How a trace follows values that change under the same handle.
#if VARVE_DEFINES
namespace varve {

/// Refuses to change the shape or memory of an argument, which a graph cannot represent.
VARVE_LIBRARY void trace_layer::follows_renames::told_before(detail::rename_watcher& self, char const* op,
                                                             tensor const& x) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->renaming(*me.before, op, x);
  bool const mine = of.is_mode() ? of.exact_node(x) >= 0 : of.is_mine(x);
  me.knows = mine || (of.is_mode() && of.known_node(x) >= 0);
  if (mine && of.builder.written(of.node_of(x)).op == &placeholder_handle)
    refuse::argument_is_invalid(op, "a traced function changes the shape or the memory of an argument, which a graph "
                                    "does not keep; use the operator without underscore");
}
VARVE_LIBRARY void trace_layer::follows_renames::told_after(detail::rename_watcher& self, tensor const& x,
                                                            tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->renamed(*me.before, x, y);
  if (!of.is_mode()) return;
  if (y.is_wrapped()) { // seen through levels above: the value inside is a separate value
    tensor const* v = &y;
    while (v->is_wrapped()) v = &v->inner();
    return of.known_.written(*v);
  }
  int const exact = of.exact_node(y);
  if (!me.knows && exact < 0) return;
  of.known_.remember(x, exact >= 0 ? exact : of.node_of(y));
  of.known_.written(x);
}
/// Records that the data of a value are the value without its history. Writes through the data are not followed. They
/// are refused when the memory is used again, since the data have a separate write counter. A value that is detached in
/// place is its own data.
VARVE_LIBRARY void trace_layer::follows_renames::told_read(detail::rename_watcher& self, tensor const& x,
                                                           tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  trace_layer& of = me.of;
  if (me.before) me.before->read(*me.before, x, y);
  auto const detached = [&] {
    int const from = of.node_of(x);
    // the caller of the program would find it attached
    if (y.is(x) && of.builder.written(from).op == &placeholder_handle)
      refuse::argument_is_invalid("detach_", "a function that is traced detaches its argument in place, of which the "
                                             "program would know nothing; use detach");
    return of.builder.add_node(&handle<detach_t>, {}, &from, 1, {x.dtype(), x.sizes()});
  };
  if (!of.is_mode()) {
    if (y.is(x) && of.is_mine(x)) x.set_extra(tensor::from_number(static_cast<std::int64_t>(detached())));
    return;
  }
  if (of.known_node(x) < 0) {
    if (y.is(x) && x.object() && detail::exports)
      refuse::argument_is_invalid("detach_", "the program that is traced would not know of it; use detach");
    return;
  }
  of.known_.remember(y, detached());
}
VARVE_LIBRARY void trace_layer::follows_renames::told_shared(detail::rename_watcher& self, tensor const& x,
                                                             tensor const& y) {
  auto& me = static_cast<follows_renames&>(self);
  if (me.before) me.before->shared(*me.before, x, y);
  if (!me.of.is_mode()) return;
  if (int const n = me.of.known_.exact(x); n >= 0) me.of.known_.remember(y, n);
}

} // namespace varve
#endif
