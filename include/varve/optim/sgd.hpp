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
  double lr = 1e-3;        ///< the learning rate: the length of a step
  double momentum = 0;     ///< the part of the last velocity that is kept
  double dampening = 0;    ///< a gradient changes the velocity by 1 minus this, except the first
  double weight_decay = 0; ///< this multiple of a parameter is added to its gradient
  bool nesterov = false;   ///< true to step along the velocity of the next step

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
  /// Makes one step: updates the parameters and the optimizer's state.
  template <class P, class G, class S>
  constexpr void step(P& parameters, G const& gradients, S& s) const {
    double const part = s.steps == 0 ? 1 : 1 - dampening; // the first velocity is the gradient
    ++s.steps;
    auto const decayed = [by = weight_decay](auto const& p, auto const& g) { return by == 0 ? g * 1.0 : g + p * by; };
    if (momentum == 0)
      return detail::update(
          [=, rate = lr](auto const& p, auto const& g) { return std::tuple(p - decayed(p, g) * rate); }, parameters,
          gradients);
    detail::update(
        [=, o = *this](auto const& p, auto const& g, auto const& before) {
          auto const d = decayed(p, g), v = before * o.momentum + d * part;
          return std::tuple(o.nesterov ? p - (d + v * o.momentum) * o.lr : p - v * o.lr, v);
        },
        parameters, gradients, s.velocity);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
