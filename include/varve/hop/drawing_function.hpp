// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap_activation_checkpoint.hpp>

/// @file
/// Functions of higher-order operators that draw random numbers, for calls whose gradient is computed. The generator
/// state becomes a value of the program: the first operand and the first result. Loops then carry and store it for
/// every step, and the pullback of a step draws the same numbers as the step.
namespace varve::detail {

/// A function with the generator state as its first operand and its first result.
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
/// The pullback of `drawing_fn`. It maps (state, operands..., cotangents of the state and of the results) to the
/// cotangents of the state, which are zeros, and of the operands.
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
