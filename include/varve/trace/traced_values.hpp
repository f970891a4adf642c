// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/trace/trace_layer.hpp>

/// @file
/// The values on which a trace runs operators: the values themselves, copies that stand for their memory, or aliases.
#if VARVE_DEFINES
namespace varve {

/// Makes a copy stand for the memory of the original, and as old as that. What levels know of the original then holds
/// for the copy, too.
VARVE_LIBRARY tensor trace_layer::standing_for(tensor const& t, tensor copied) {
  auto const memory_of = [](tensor const& v) {
    tensor const* p = &v;
    while (p->is_wrapped() && !p->id()->store) p = &p->inner();
    return p->id()->store;
  };
  if (storage *const now = memory_of(copied), *const then = memory_of(t); now != then)
    now->epoch = then->epoch, stand_ins_.add(*now, *then);
  return copied;
}
VARVE_LIBRARY tensor trace_layer::value_of(tensor const& t, trace_layer const& at_work) {
  bool const holds = t.is_wrapped() || t.has_data() || (t.object() && t.object()->inner_count() > 0);
  if (!apart || !copies || !holds || t.is_number()) return t;
  return standing_for(t, at_work.below([&] { return copy(t); }));
}
VARVE_LIBRARY bool trace_layer::has_written(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    for (std::size_t k = 0; k < l->copied_writes_.size(); ++k) {
      int const at = 2 * static_cast<int>(k);
      if (l->copied_[at].shares_storage(t) && l->copied_[at + 1].writes() != l->copied_writes_[k]) return true;
    }
  return false;
}
VARVE_LIBRARY tensor trace_layer::real(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    if (l->is_mine(t)) return is_mode() ? t : t.inner();
  return t;
}
VARVE_LIBRARY boxed_args trace_layer::reals(boxed_args const& x) {
  boxed_args r;
  for (auto const& t : x) r.push_back(real_operand(t));
  return r;
}
/// Returns the tensor on which a mode runs in place of an argument. It is a different tensor, because the function may
/// capture the argument as well. If the trace runs on the values themselves, it shares the argument's memory.
VARVE_LIBRARY tensor trace_layer::stand_in(tensor const& of) {
  tensor const t = detail::unwrap_dead(this_thread_state.transforms.top, of); // no transform is active
  tensor const value = value_of(t);
  if (apart && !value.is(t) && known_node(value) < 0) return value;
  if (apart) return standing_for(value, below([&] { return twin(value); }));
  if (known_node(t) >= 0) return below([&] { return twin(t); });
  originals_.push_back(t);
  tensor const r = t.alias();
  if (t.has_history()) r.set_history(t.history());
  return r;
}
VARVE_LIBRARY tensor trace_layer::input(tensor const& t) {
  if (!copies) outside_.push_back(t);
  tensor const value = is_mode() ? stand_in(t) : value_of(t);
  return wrap(value, builder.input({t.dtype(), value.sizes()}));
}
VARVE_LIBRARY std::vector<int> trace_layer::captured() const {
  std::vector<int> r;
  for (std::size_t k = 0; k < captured_.size(); k += 2) r.push_back(captured_[k]);
  return r;
}
VARVE_LIBRARY tensor trace_layer::run_on(tensor const& t, trace_layer const& at_work) {
  if (!apart || is_mine(t)) return real(t);
  tensor const seen = real(t);
  trace_layer* around = nullptr; // it has copies of what no trace within it made
  for (trace_layer const* l = this; l && !around && !is_mode() && seen.is(t); l = l->outer) around = l->captures_of;
  tensor const value = around && !around->is_mode() ? around->run_on(seen, at_work) : seen;
  if (!copies) {
    if (!is_outside(value)) outside_.push_back(value);
    return value;
  }
  for (int k = 0; k < copied_.size(); k += 2)
    if (copied_[k].is(t)) return copied_[k + 1];
  tensor const made = value_of(value, at_work);
  copied_.push_back(t);
  copied_.push_back(made);
  copied_writes_.push_back(made.writes());
  return made;
}
VARVE_LIBRARY bool trace_layer::is_outside(tensor const& t) const {
  for (trace_layer const* l = this; l; l = l->outer)
    for (auto const& o : l->outside_)
      if (t.shares_storage(o)) return true;
  return false;
}

} // namespace varve
#endif
