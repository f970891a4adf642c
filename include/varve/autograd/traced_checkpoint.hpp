// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap_activation_checkpoint.hpp>
#include <varve/op/randn.hpp>

/// @file
/// `checkpoint` in programs that are traced at run time: a higher-order operator whose function is a region of the
/// graph, so that what it computes is not kept beside it but computed again, with the same random numbers (CK-8, the
/// form that keeps the region).
namespace varve {

namespace detail {
/// `checkpoint` inside of a trace.
template <class F, class... X>
auto checkpoint_in_trace(F const& f, X const&... x) {
  using Y = decltype(f(x...));
  auto const is_operand = [](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return v.defined();
    else return false;
  };
  Y last{}; // the structure of the results: of a vector the function alone knows it
  boxed_function const region = [&](boxed_args const& a) {
    int k = 0;
    auto const take = [&](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return is_operand(v) ? a[k++] : v;
      else return v;
    };
    std::tuple const in{tree_map(take, x)...};
    last = call_with(f, in);
    return flatten(last);
  };
  boxed_args operands(get_rng_state());
  tree_for_each(
      [&](auto const& v) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>)
          if (is_operand(v)) operands.push_back(v);
      },
      std::tuple<X const&...>(x...));
  boxed_args const y = checkpoint_operator<>()({region}, operands, attributes(dims{0}));
  int k = 0;
  return tree_map([&](auto const&) { return y[k++]; }, last);
}
} // namespace detail

} // namespace varve
