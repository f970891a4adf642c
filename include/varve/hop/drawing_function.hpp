// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap_activation_checkpoint.hpp>

/// @file
/// Functions of higher-order operators that draw random numbers, when a gradient of the call is taken. The state of the
/// generator becomes a value of the program: the first operand, and the first result. So loops carry it from step to
/// step and keep it for every step, and the pullback of a step draws what the step drew.
namespace varve::detail {

/// A function with the state of the generator in front of its operands and of its results.
struct drawing_fn {
  boxed_function f;
  template <class P>
  P operator()(P const& x) const {
    boxed_function const region = [f = f](P const& v) {
      P const y = f(v);
      return joined(P(get_rng_state()), y);
    };
    return checkpoint_operator<>()({region}, x, attributes(dims{0}));
  }
};
/// ... and its pullback: (state, operands..., cotangents of the state and of the results) to the cotangents of the
/// state, which are none, and of the operands.
struct drawing_pull_fn {
  boxed_function f;
  int operands; // of f
  used_results used{};
  template <class P>
  P operator()(P const& x) const {
    P const given = joined(part(x, 0, 1 + operands), part(x, 2 + operands, x.size()));
    P const g = checkpoint_operator<>()({boxed_pull_fn{f, operands, used.without_first()}}, given, attributes(dims{1}));
    return joined(P(constant_zeros(x[0])), g);
  }
};

} // namespace varve::detail
