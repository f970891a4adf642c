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
  double lr = 1e-2;        ///< the learning rate: the length of a step
  double alpha = 0.99;     ///< the decay of the mean of squared gradients
  double eps = 1e-8;       ///< added to the root of the mean square
  double weight_decay = 0; ///< this multiple of a parameter is added to its gradient
  double momentum = 0;     ///< the part of the last step that is repeated

  template <class Tree>
  struct state {
    Tree squares, velocity;
  };
  template <class P>
  constexpr auto init(P const& parameters) const {
    auto zeros = detail::zeros(parameters);
    return state<decltype(zeros)>{zeros, zeros};
  }
  /// Makes one step: updates the parameters and the optimizer's state.
  template <class P, class G, class S>
  constexpr void step(P& parameters, G const& gradients, S& s) const {
    detail::update(
        [o = *this](auto const& p, auto const& g, auto const& squares, auto const& velocity) {
          auto const d = o.weight_decay == 0 ? g * 1.0 : g + p * o.weight_decay;
          auto const v = squares * o.alpha + d * d * (1 - o.alpha);
          auto const b = velocity * o.momentum + d / (detail::root(v) + o.eps);
          return std::tuple(p - b * o.lr, v, b);
        },
        parameters, gradients, s.squares, s.velocity);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
