// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/guards.hpp>

/// @file
/// How kernels of a library between `transform` and `transform_back` take part in transforms. A call with such kernels
/// stops, at each layer, at the kernels of the layer's keys and at autocast; then the layer does the rest. A kernel at
/// autograd replaces the level's own gradient, as it does for eager tensors. Kernels below autograd run inside of the
/// level's record (`call_layer`), so that what they do to a value does not change its gradient.
///
/// While such a kernel runs, a `processing_layer` stands for the layer and stores the caller's keys, which `lowered`
/// restores. Other calls are not affected.
namespace varve {

/// The kinds of transform for which a rule can be registered.
enum class transform_type : unsigned char { grad, jvp, vmap, functionalize };
constexpr char const* name(transform_type t) {
  constexpr char const* names[] = {"grad", "jvp", "vmap", "functionalize"};
  return names[static_cast<int>(t)];
}

/// Returns the keys between `transform` and `transform_back` that implement a kind of transform. A kernel that a
/// program registers there is part of the transform, and processes each call at each such layer. `vmap` has none: its
/// kernels are the `batch` rules. The set contains functionalities only, whatever the backend. Takes constant time and
/// is usable in constant expressions.
constexpr dispatch_key_set transform_keys(transform_type t) {
  switch (t) {
  case transform_type::grad:
  case transform_type::jvp:
    return {dispatch_key::autograd_functionality, dispatch_key::inplace_or_view};
  case transform_type::functionalize:
    return dispatch_key::functionalize;
  default:
    return {};
  }
}
/// Returns the keys that a call skips while a layer processes it: all between `transform` and `transform_back` except
/// the layer's own, and autocast, which every layer leaves on.
constexpr dispatch_key_set passed_over(dispatch_key_set own) {
  return dispatch_key_set::full().below(dispatch_key::transform).above(dispatch_key::transform_back) - own -
         dispatch_key_set(dispatch_key::autocast);
}

namespace detail {
/// Returns the key of a layer that the layer itself implements unless a program registers a kernel: autograd or
/// functionalize.
constexpr dispatch_key_set implementing(dispatch_key_set own) {
  return own - dispatch_key_set(dispatch_key::inplace_or_view);
}

/// A stand-in for a layer on the stack while a kernel that a program registered runs for it. It stores the keys that
/// the caller included and excluded, because calls that the layer lowers need them again. Only calls with such a kernel
/// make one.
class processing_layer : layer {
public:
  explicit processing_layer(layer& l)
      : layer(l), kind_(*l.kind), of_(l), included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    kind_.process = &run;
    kind_.record = nullptr; // no shortcut: calls must go through `process`
    kind = &kind_;
    if (kind_.records) grad_mode = of_.grad_mode = this_thread_state.grad_mode;
    set_top(this_thread_state.transforms, this);
    this_thread_state.included |= dispatch_key::transform_back;
    // The layer's own keys are on even if the caller excluded them.
    this_thread_state.excluded = (excluded_ - kind_.keys) | passed_over(kind_.keys);
  }
  processing_layer(processing_layer const&) = delete;
  processing_layer& operator=(processing_layer const&) = delete;
  ~processing_layer() {
    set_top(this_thread_state.transforms, &of_);
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

  /// Returns the object that stands for a layer, or null if none does.
  static processing_layer const* of(layer const& l) {
    return l.kind->process == &run ? static_cast<processing_layer const*>(&l) : nullptr;
  }
  /// Returns the caller's keys, except those of stacks, which are included if the stacks have layers now.
  dispatch_key_set included() const {
    constexpr dispatch_key_set stacks{dispatch_key::transform, dispatch_key::dispatch_mode, dispatch_key::pre_dispatch,
                                      dispatch_key::function_mode};
    return (included_ - stacks) | (this_thread_state.included & stacks);
  }
  dispatch_key_set excluded() const { return excluded_; }
  layer& working_for() const { return of_; }
  /// Finishes a call, with the layer off the stack: does what the layer does without kernels, or only lowers if a
  /// kernel has taken its place.
  tensor finish(boxed_op const& op, boxed_args const& x, bool replaced) const;

private:
  static tensor run(layer& self, boxed_op const& op, boxed_args const& x) {
    auto const& here = static_cast<processing_layer const&>(self);
    return here.finish(op, x, this_thread_state.excluded.has_any(implementing(here.kind_.keys)));
  }
  layer_kind kind_; // the layer's kind, except for `process` and `record`
  layer& of_;
  dispatch_key_set included_, excluded_;
};
} // namespace detail

/// A scope without the top transform on the stack, and with the keys of the thread with which the transform received
/// the call. Both are restored on every exit.
class lowered {
public:
  lowered() : lowered(detail::processing_layer::of(*this_thread_state.transforms.top)) {}
  layer& top() const { return off_.top(); }

private:
  explicit lowered(detail::processing_layer const* p)
      : keys_(p ? p->included() : this_thread_state.included, p ? p->excluded() : this_thread_state.excluded),
        off_(this_thread_state.transforms) {}
  key_guard keys_;
  popped off_;
};

} // namespace varve
