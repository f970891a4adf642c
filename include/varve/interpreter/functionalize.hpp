// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/functional_core.hpp>
#include <varve/interpreter/write_level.hpp>

/// @file
/// A transform of tensors only, by the core that it shares with the functional mode. All higher-order operators have
/// one rule (`layer::process_hop`), which a rule registered for one of them precedes; a custom function is called one
/// level below in its functional form, a custom function again.
namespace varve {

/// Takes writing out of programs: each value stands for memory, an in-place operator runs as the functional one and
/// becomes what that memory holds, and views are made anew when they are read after it. Below, no operator writes (FN-1
/// to FN-13). Of static values there is nothing to take out: they have no in-place operators, and traces lose theirs
/// when they are finished.
template <class T>
struct functionalize_interpreter : dynamic_level, detail::functional_core<T, functionalize_interpreter<T>> {
  static constexpr char const* kind = "functionalize";
  static constexpr dispatch_key_set keys = transform_keys(transform_type::functionalize);
  std::shared_ptr<detail::functional_run> run = std::make_shared<detail::functional_run>();

  using core = detail::functional_core<T, functionalize_interpreter<T>>;
  using typename core::alias, typename core::memory;

  tensor process(boxed_op const& op, boxed_args const& x) const { return core::call(op, x); }
  friend tensor write_at(functionalize_interpreter const& in, boxed_op const& op, boxed_args const& x) {
    return in.core::write(op, x);
  }

  static T current(tensor const& t) { return t.current(); }
  static alias& alias_of(tensor const& t) { return detail::seen_alias<T>::of(t); }
  std::shared_ptr<detail::functional_run> const& run_of() const {
    run->layer = self->id;
    return run;
  }
  tensor made(T const& y, std::shared_ptr<memory> m, detail::view_chain at, layout const& shown,
              tensor const& shares_with) const {
    tensor r = tensor::wrap(y, self->id, self->level, {}, {}, y.sizes());
    r.set_state(new detail::seen_alias<T>(std::move(m), std::move(at), shown), shares_with);
    return r;
  }
  void check_write(boxed_op const& op, boxed_args const& x) const { detail::check_write_at_level(*self, op, x); }
  static constexpr bool loses_gradient(tensor const&) { return false; }
  /// Around functions of a higher-order operator that it handed down, and around what it hands down itself.
  detail::reentered inside() const { return {this_thread_state.transforms, *self}; }
  lowered below() const { return {}; }
};

} // namespace varve
