// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/kernel/angles.hpp>
#include <varve/kernel/math.hpp>

/// @file
/// Losses that grow more slowly than squares, so that a few outliers do not dominate a fit.
namespace varve::optim {

/// The cost of one residual r: scale^2 loss((r / scale)^2) / 2. `linear` is least squares; the others are those of
/// `scipy.optimize.least_squares`. To define another loss, set `at` to a function of s = (r / scale)^2 that returns the
/// loss and its slope. At s = 0 the loss must be 0 and its slope 1.
struct robust_loss {
  /// A loss at s and its derivative there.
  struct value {
    double loss, slope;
  };
  value (*at)(double s) = nullptr; ///< nullptr: least squares
  double scale = 1;                ///< residuals well below it count as in least squares

  /// Returns the loss of a squared residual, or of the sum of several squares that count as one.
  constexpr value of_square(double square) const {
    if (!at) return {square, 1};
    value const v = at(square / (scale * scale));
    return {scale * scale * v.loss, v.slope};
  }
};

namespace detail {
constexpr robust_loss loss_of(robust_loss::value (*at)(double s), double scale) {
  if (!(scale > 0)) refuse::argument_is_invalid("robust loss", "its scale is the size of usual residuals, more than 0");
  return {at, scale};
}
} // namespace detail

/// Least squares.
inline constexpr robust_loss linear{};
/// Returns Huber's loss: quadratic up to the scale, linear beyond.
constexpr robust_loss huber(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        if (s <= 1) return {s, 1};
        double const root = kernel::sqrt(s);
        return {2 * root - 1, 1 / root};
      },
      scale);
}
/// Returns a smooth variant of `huber`: 2 (sqrt(1 + s) - 1).
constexpr robust_loss soft_l1(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        double const root = kernel::sqrt(1 + s);
        return {2 * s / (root + 1), 1 / root};
      },
      scale);
}
/// Returns Cauchy's loss, log(1 + s): residuals far beyond the scale have little influence.
constexpr robust_loss cauchy(double scale = 1) {
  return detail::loss_of([](double s) -> robust_loss::value { return {kernel::log1p(s), 1 / (1 + s)}; }, scale);
}
/// Returns the loss arctan(s): no residual costs more than scale^2 pi / 4.
constexpr robust_loss arctan(double scale = 1) {
  return detail::loss_of([](double s) -> robust_loss::value { return {kernel::atan(s), 1 / (1 + s * s)}; }, scale);
}
/// Returns Tukey's biweight: residuals beyond the scale have no influence.
constexpr robust_loss tukey(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        double const rest = s < 1 ? 1 - s : 0;
        return {(1 - rest * rest * rest) / 3, rest * rest};
      },
      scale);
}

} // namespace varve::optim
