// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/step.hpp>

namespace varve::optim {

/// RMSprop (`torch.optim.RMSprop`).
struct rmsprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;

  template <class Tree>
  struct state {
    Tree squares, velocity;
  };
  template <class P>
  constexpr auto init(P const& parameters) const {
    auto zeros = detail::zeros(parameters);
    return state<decltype(zeros)>{zeros, zeros};
  }
  /// One step: writes new parameters and what is kept of them.
  template <class P, class G, class S>
  constexpr void step(P& parameters, G const& gradients, S& s) const {
    auto const d = detail::updated(
        [&](auto const& p, auto const& g) { return weight_decay == 0 ? g * 1.0 : g + p * weight_decay; }, parameters,
        gradients);
    s.squares =
        detail::updated([&](auto const& v, auto const& g) { return v * alpha + g * g * (1 - alpha); }, s.squares, d);
    s.velocity = detail::updated(
        [&](auto const& b, auto const& g, auto const& v) { return b * momentum + g / (varve::sqrt(v) + eps); },
        s.velocity, d, s.squares);
    parameters = detail::updated([&](auto const& p, auto const& b) { return p - b * lr; }, parameters, s.velocity);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
