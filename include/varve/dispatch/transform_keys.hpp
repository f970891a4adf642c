// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/guards.hpp>

/// @file
/// A call with kernels of a library between `transform` and `transform_back` stops, at each layer, at those of the
/// layer's keys and at autocast; then the layer does the rest. A kernel at autograd takes the place of the level's own
/// gradient, as it does for eager tensors; those below it run inside of the level's record (`call_layer`), so that what
/// they do to a value does not change its gradient. While such a kernel runs, a `processing_layer` stands for the layer
/// and keeps the caller's keys, which `lowered` puts back. Other calls know nothing of it.
namespace varve {

/// The kinds of transform that a rule can be registered for (FS-16).
enum class transform_type : unsigned char { grad, jvp, vmap, functionalize };
constexpr char const* name(transform_type t) {
  constexpr char const* names[] = {"grad", "jvp", "vmap", "functionalize"};
  return names[static_cast<int>(t)];
}

/// The keys between `transform` and `transform_back` that implement a kind of transform: a kernel that a program
/// registers there is part of what the transform does, and sees each call at each such layer (FS-3). `vmap` has none:
/// its kernels are the `batch` rules. Functionalities only, whatever the backend. Constant time, usable in constant
/// expressions.
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
/// Keys that a call passes over while a layer processes it: all between `transform` and `transform_back` but the
/// layer's own, and autocast, which every layer leaves on.
constexpr dispatch_key_set passed_over(dispatch_key_set own) {
  return dispatch_key_set::full().below(dispatch_key::transform).above(dispatch_key::transform_back) - own -
         dispatch_key_set(dispatch_key::autocast);
}

namespace detail {
/// Of the keys of a layer the one whose kernel the layer itself is, unless a program registers another: autograd,
/// functionalize.
constexpr dispatch_key_set implementing(dispatch_key_set own) {
  return own - dispatch_key_set(dispatch_key::inplace_or_view);
}

/// Stands for a layer on the stack while a kernel that a program registered works for it, and keeps the keys that the
/// caller included and excluded: what the layer hands down meets these again (FS-4). Only calls that have such a kernel
/// make one.
class processing_layer : layer {
public:
  explicit processing_layer(layer& l)
      : layer(l), kind_(*l.kind), of_(l), included_(this_thread_state.included), excluded_(this_thread_state.excluded) {
    kind_.process = &run;
    kind_.record = nullptr; // calls go the long way
    kind = &kind_;
    if (kind_.records) grad_mode = of_.grad_mode = this_thread_state.grad_mode;
    set_top(this_thread_state.transforms, this);
    this_thread_state.included |= dispatch_key::transform_back;
    this_thread_state.excluded = (excluded_ - kind_.keys) |
                                 passed_over(kind_.keys); // its own are on even where the caller excluded them (FS-19)
  }
  processing_layer(processing_layer const&) = delete;
  processing_layer& operator=(processing_layer const&) = delete;
  ~processing_layer() {
    set_top(this_thread_state.transforms, &of_);
    this_thread_state.included = included_;
    this_thread_state.excluded = excluded_;
  }

  /// Null when none stands for the layer.
  static processing_layer const* of(layer const& l) {
    return l.kind->process == &run ? static_cast<processing_layer const*>(&l) : nullptr;
  }
  /// The caller's keys, but those of stacks, which are as full as they are now.
  dispatch_key_set included() const {
    constexpr dispatch_key_set stacks{dispatch_key::transform, dispatch_key::dispatch_mode, dispatch_key::pre_dispatch,
                                      dispatch_key::function_mode};
    return (included_ - stacks) | (this_thread_state.included & stacks);
  }
  dispatch_key_set excluded() const { return excluded_; }
  layer& working_for() const { return of_; }
  /// The rest of a call, with the layer off the stack: what it does without kernels, or, when one has taken the place
  /// of its own, nothing but lowering.
  tensor finish(boxed_op const& op, boxed_args const& x, bool replaced) const;

private:
  static tensor run(layer& self, boxed_op const& op, boxed_args const& x) {
    auto const& here = static_cast<processing_layer const&>(self);
    return here.finish(op, x, this_thread_state.excluded.has_any(implementing(here.kind_.keys)));
  }
  layer_kind kind_; // as that of the layer, but for what is done with operators
  layer& of_;
  dispatch_key_set included_, excluded_;
};
} // namespace detail

/// Takes the top transform off the stack, with the keys of the thread as they were when it was given the call (FS-4);
/// on every exit all is put back (FS-5).
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
