// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/kernel/angles.hpp>
#include <varve/kernel/math.hpp>

/// @file
/// Losses that grow slower than squares, so that a few wrong observations do not decide a fit.
namespace varve::optim {

/// What one residual r costs: scale^2 loss((r / scale)^2) / 2. `linear` is least squares; the others are those of
/// `scipy.optimize.least_squares`. Another one is a function of s = (r / scale)^2 with its slope, which has the value 0
/// and the slope 1 at 0.
struct robust_loss {
  /// A loss at s and its derivative there.
  struct value {
    double loss, slope;
  };
  value (*at)(double s) = nullptr; ///< nullptr: least squares
  double scale = 1;                ///< residuals well below it count as in least squares

  /// The loss of the square of a residual, or of the sum of several squares that count as one.
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
/// Squares up to the scale, absolute values beyond.
constexpr robust_loss huber(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        if (s <= 1) return {s, 1};
        double const root = kernel::sqrt(s);
        return {2 * root - 1, 1 / root};
      },
      scale);
}
/// A smooth `huber`: 2 (sqrt(1 + s) - 1).
constexpr robust_loss soft_l1(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        double const root = kernel::sqrt(1 + s);
        return {2 * s / (root + 1), 1 / root};
      },
      scale);
}
/// log(1 + s): residuals far beyond the scale hardly count.
constexpr robust_loss cauchy(double scale = 1) {
  return detail::loss_of([](double s) -> robust_loss::value { return {kernel::log1p(s), 1 / (1 + s)}; }, scale);
}
/// arctan(s): no residual costs more than scale^2 pi / 4.
constexpr robust_loss arctan(double scale = 1) {
  return detail::loss_of([](double s) -> robust_loss::value { return {kernel::atan(s), 1 / (1 + s * s)}; }, scale);
}
/// Tukey's biweight: residuals beyond the scale do not count.
constexpr robust_loss tukey(double scale = 1) {
  return detail::loss_of(
      [](double s) -> robust_loss::value {
        double const rest = s < 1 ? 1 - s : 0;
        return {(1 - rest * rest * rest) / 3, rest * rest};
      },
      scale);
}

} // namespace varve::optim
