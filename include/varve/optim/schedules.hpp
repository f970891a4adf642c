// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/op/sin.hpp>

/// @file
/// Factors of the learning rate over steps: `opt.lr = rate * cosine(step, 1000)` (`torch.optim.lr_scheduler`).
namespace varve::optim {

/// From 1 down to `last` along half a wave (`CosineAnnealingLR`); `last` beyond `steps`.
constexpr double cosine(int step, int steps, double last = 0) {
  double const at = step >= steps ? 1 : static_cast<double>(step) / steps;
  return last + (1 - last) * (1 + varve::cos(3.14159265358979323846 * at)) / 2;
}
/// From `first` up to 1, then 1 (`LinearLR`).
constexpr double warmup(int step, int steps, double first = 0) {
  return step >= steps ? 1 : first + (1 - first) * step / steps;
}
/// `gamma` to the power of how often `every` steps have passed (`StepLR`; every 1: `ExponentialLR`).
constexpr double decay(int step, int every, double gamma) {
  double r = 1;
  for (int k = 0; k < step / every; ++k) r *= gamma;
  return r;
}

} // namespace varve::optim

#pragma GCC diagnostic pop
