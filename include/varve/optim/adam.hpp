// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/step.hpp>

namespace varve::optim {

namespace detail {
/// The state of Adam: running means of the gradients and of their squares.
template <class Tree>
struct moments {
  Tree first, second;
  int steps = 0;
};
} // namespace detail

/// The Adam optimizer (`torch.optim.Adam`). If `decoupled`, weight decay is applied directly to the parameters instead
/// of to the gradient (`torch.optim.AdamW`).
struct adam {
  double lr = 1e-3;        ///< the learning rate: the length of a step
  double beta1 = 0.9;      ///< the decay of the mean of gradients
  double beta2 = 0.999;    ///< the decay of the mean of squared gradients
  double eps = 1e-8;       ///< added to the root of the mean square
  double weight_decay = 0; ///< this multiple of a parameter is added to its gradient, or subtracted if `decoupled`
  bool decoupled = false;  ///< true for AdamW

  template <class P>
  constexpr auto init(P const& parameters) const {
    auto zeros = detail::zeros(parameters);
    return detail::moments<decltype(zeros)>{zeros, zeros, 0};
  }
  /// Makes one step: updates the parameters and the optimizer's state.
  template <class P, class G, class S>
  constexpr void step(P& parameters, G const& gradients, S& s) const {
    ++s.steps;
    double const by_loss = decoupled ? 0 : weight_decay, by_itself = decoupled ? 1 - lr * weight_decay : 1;
    double const rate = lr / (1 - detail::power(beta1, s.steps)), seen = 1 - detail::power(beta2, s.steps);
    detail::update(
        [=, o = *this](auto const& p, auto const& g, auto const& m, auto const& v) {
          auto const d = by_loss == 0 ? g * 1.0 : g + p * by_loss;
          auto const first = m * o.beta1 + d * (1 - o.beta1), second = v * o.beta2 + d * d * (1 - o.beta2);
          return std::tuple(p * by_itself - first * rate / (detail::root(second * (1 / seen)) + o.eps), first, second);
        },
        parameters, gradients, s.first, s.second);
  }
};
/// Returns an AdamW optimizer: `adamw(1e-3)`, `adamw(1e-3, 0.1)`.
constexpr adam adamw(double lr = 1e-3, double weight_decay = 1e-2) {
  adam a;
  a.lr = lr, a.weight_decay = weight_decay, a.decoupled = true;
  return a;
}

} // namespace varve::optim

#pragma GCC diagnostic pop
