// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/tree.hpp>
#include <varve/op/all.hpp>

/// @file
/// What optimizers share. They are values that say how, and work on trees of parameters in both worlds: numbers, arrays
/// and structs of them, in constant expressions too, and tensors. What they keep between steps is a state beside the
/// parameters: `auto state = adam.init(p); ... adam.step(p, grad(loss)(p, x), state);`.
namespace varve::optim {

namespace detail {
template <class X>
inline constexpr bool is_parameter = [] {
  if constexpr (value<X>) return !std::is_integral_v<X>;
  else return false;
}();
/// `f` of the leaves of trees that are parameters and have a gradient; others stay.
template <class F, class P, class G, class... S>
constexpr auto updated(F const& f, P const& parameters, G const& gradients, S const&... state) {
  return tree_map(
      [&](auto const& p, auto const& g, auto const&... s) {
        if constexpr (is_parameter<std::remove_cvref_t<decltype(p)>> && !is_none<decltype(g)>) {
          varve::detail::needs_real("optim", p, g); // squares of gradients are meant for real ones
          return f(p, g, s...);
        } else return p;
      },
      parameters, gradients, state...);
}
/// A tree of zeros, like parameters.
template <class P>
constexpr auto zeros(P const& parameters) {
  return tree_map(
      [](auto const& p) {
        using X = std::remove_cvref_t<decltype(p)>;
        if constexpr (number<X> && is_parameter<X>) return X(0);
        else if constexpr (is_parameter<X>) return zeros_like(p);
        else return p;
      },
      parameters);
}
/// b^n, of numbers.
constexpr double power(double b, int n) {
  double r = 1;
  for (; n > 0; n /= 2, b *= b)
    if (n % 2) r *= b;
  return r;
}
} // namespace detail

} // namespace varve::optim

#pragma GCC diagnostic pop
