// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap_activation_checkpoint.hpp>
#include <varve/op/randn.hpp>

/// @file
/// `checkpoint` in programs that are traced at run time: a higher-order operator whose function is a region of the
/// graph. What the region computes is not saved but computed again, with the same random numbers.
namespace varve {

namespace detail {
/// Implements `checkpoint` inside a trace.
template <class F, class... X>
auto checkpoint_in_trace(F const& f, X const&... x) {
  auto const call = [](boxed_function const& region, boxed_args const& operands) {
    return checkpoint_operator<>()({region}, joined(boxed_args(get_rng_state()), operands), attributes(dims{0}));
  };
  return call_of_trees(call, f, x...);
}
} // namespace detail

} // namespace varve
