// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/functional_core.hpp>
#include <varve/interpreter/write_level.hpp>

/// @file
/// `functionalize`: a transform of tensors only, with the core that it shares with the functional mode. All
/// higher-order operators share one rule (`layer::process_hop`); a rule registered for one of them takes precedence. A
/// custom function is called one level below in its functional form, which is a custom function again.
namespace varve {

/// The interpreter that removes writes from programs. Each value stands for memory. An in-place operator runs as the
/// functional one, and its result becomes the contents of that memory. Views are recomputed when they are read
/// afterwards. Below this level no operator writes. Static values need no such transform: they have no in-place
/// operators, and traces remove theirs when they are finished.
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
  /// Puts the level back around functions of a higher-order operator that it has passed on. `below` takes it off around
  /// calls that it makes itself.
  detail::reentered inside() const { return {this_thread_state.transforms, *self}; }
  lowered below() const { return {}; }
};

} // namespace varve
