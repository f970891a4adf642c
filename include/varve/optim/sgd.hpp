// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/step.hpp>

namespace varve::optim {

/// Gradient descent with momentum (`torch.optim.SGD`).
struct sgd {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;

  template <class Tree>
  struct state {
    Tree velocity;
    int steps = 0;
  };
  template <class P>
  constexpr auto init(P const& parameters) const {
    auto v = detail::zeros(parameters);
    return state<decltype(v)>{v, 0};
  }
  /// One step: writes new parameters and what is kept of them.
  template <class P, class G, class S>
  constexpr void step(P& parameters, G const& gradients, S& s) const {
    auto const decayed = detail::updated(
        [&](auto const& p, auto const& g) { return weight_decay == 0 ? g * 1.0 : g + p * weight_decay; }, parameters,
        gradients);
    double const part = s.steps == 0 ? 1 : 1 - dampening; // the first velocity is the gradient
    ++s.steps;
    if (momentum == 0) {
      parameters = detail::updated([&](auto const& p, auto const& d) { return p - d * lr; }, parameters, decayed);
      return;
    }
    s.velocity =
        detail::updated([&](auto const& v, auto const& d) { return v * momentum + d * part; }, s.velocity, decayed);
    parameters = detail::updated([&](auto const& p, auto const& d,
                                     auto const& v) { return nesterov ? p - (d + v * momentum) * lr : p - v * lr; },
                                 parameters, decayed, s.velocity);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
