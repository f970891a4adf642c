// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/region_call.hpp>

/// @file
/// A call of a function whose random numbers follow from a given generator state. Programs traced at run time represent
/// `checkpoint` by it. `cond` and loops use it to draw the same random numbers again when their gradient is computed
/// (`hop/drawing_function.hpp`).
namespace varve {

namespace detail {
/// True if a function receives no state because it draws no random numbers (`pass/unread_states.hpp`).
inline bool is_no_state(tensor const& lead) {
  tensor const* t = &lead;
  while (t->is_wrapped()) t = &t->inner();
  return t->dim() == 0;
}
/// Returns the generator stored in a state, below all transforms. A mapped state is the same in all lanes.
inline generator generator_of(tensor const& state) {
  tensor const* t = &state;
  while (t->is_wrapped()) t = &t->inner();
  dims const end = t->sizes().sub(t->dim() > 0 ? t->dim() - 1 : 0, t->dim());
  return as_generator(
      t->with_layout({end, t->strides().sub(t->dim() > 0 ? t->dim() - 1 : 0, t->dim()), t->where().offset, true}));
}
} // namespace detail

/// Tag of the operator. Operand 0 is the generator state when the region first runs, or a number if the region draws no
/// random numbers. One attribute says whether the region runs again.
struct wrap_activation_checkpoint_t {
  static constexpr auto op_name = "wrap_activation_checkpoint";
  static constexpr auto backward_name = "CheckpointBackward";
  static constexpr bool is_call = true, draws_from_state = true;
  static constexpr hop_signature signature{
      "(GraphModule function, Tensor rng_state, Tensor[] operands, bool again) -> Tensor[]"};

  template <class T = void>
  static higher_order_operator& in_library();
  static boxed_args run(tensor const& lead, bool again, boxed_function const& f, boxed_args const& x) {
    if (detail::is_no_state(lead)) return f(x);
    generator const state = detail::generator_of(lead);
    if (again) {
      generator_guard const same(state);
      return f(x);
    }
    default_generator = state;
    return f(x);
  }
};
template <>
struct rules<wrap_activation_checkpoint_t> : rule::region_call {};

namespace detail {
template <class = void>
higher_order_operator& checkpoint_operator();
} // namespace detail
template <class T>
higher_order_operator& wrap_activation_checkpoint_t::in_library() {
  return detail::checkpoint_operator<T>();
}
namespace detail {
#if VARVE_DEFINES
template <class T>
higher_order_operator& checkpoint_operator() {
  static auto* const op = new region_operator_rules<dependent<wrap_activation_checkpoint_t, T>>; // never destroyed
  (void)&known_from_start<&checkpoint_operator<T>>;
  return *op;
}
#endif
} // namespace detail

} // namespace varve
