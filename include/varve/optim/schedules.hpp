// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/op/sin.hpp>

/// @file
/// Factors for the learning rate as functions of the step: `opt.lr = rate * cosine(step, 1000)`
/// (`torch.optim.lr_scheduler`).
namespace varve::optim {

/// Returns a factor that falls from 1 to `last` along half a cosine wave over `steps` steps (`CosineAnnealingLR`), and
/// stays at `last`.
constexpr double cosine(int step, int steps, double last = 0) {
  double const at = step >= steps ? 1 : static_cast<double>(step) / steps;
  return last + (1 - last) * (1 + varve::cos(3.14159265358979323846 * at)) / 2;
}
/// Returns a factor that rises linearly from `first` to 1 over `steps` steps (`LinearLR`), and stays at 1.
constexpr double warmup(int step, int steps, double first = 0) {
  return step >= steps ? 1 : first + (1 - first) * step / steps;
}
/// Returns `gamma` to the power of `step / every`, rounded down (`StepLR`; with `every` = 1 `ExponentialLR`).
constexpr double decay(int step, int every, double gamma) {
  double r = 1;
  for (int k = 0; k < step / every; ++k) r *= gamma;
  return r;
}

} // namespace varve::optim

#pragma GCC diagnostic pop
