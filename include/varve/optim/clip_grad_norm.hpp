// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/step.hpp>

namespace varve::optim {

/// Scales a tree of gradients down so that its total norm is at most `max_norm`, and returns the norm before scaling
/// (`torch.nn.utils.clip_grad_norm_`).
template <class G>
constexpr double clip_grad_norm(G& gradients, double max_norm) {
  double square = 0;
  tree_for_each(
      [&](auto const& g) {
        using X = std::remove_cvref_t<decltype(g)>;
        if constexpr (number<X>) square += static_cast<double>(g) * static_cast<double>(g);
        else if constexpr (std::is_same_v<X, tensor>) square += sum(g * g).item();
        else if constexpr (detail::is_parameter<X>) square += static_cast<double>(sum(g * g));
      },
      gradients);
  double const norm = varve::sqrt(square), scale = max_norm / (norm + 1e-6);
  if (scale < 1)
    detail::update([=](auto const& g, auto const&) { return std::tuple(g * scale); }, gradients, gradients);
  return norm;
}

} // namespace varve::optim

#pragma GCC diagnostic pop
