// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/message.hpp>
#include <varve/optim/linear_least_squares.hpp>

/// @file
/// The iterations of nonlinear least squares on plain numbers: damped steps in a trust region, full steps with a line
/// search, and the tests for convergence. They do not depend on how residuals are computed. There are no templates
/// here, so that the code is compiled once.
namespace varve::optim {

/// The reason why a fit ended. The last three mean that the parameters are stationary within the tolerances.
enum class fit_end {
  iterations, ///< the limit on iterations was reached
  no_descent, ///< no step lowered the cost: the residuals are not smooth, or their derivatives are wrong
  gradient,   ///< the residuals are orthogonal to all their derivatives, or zero
  step,       ///< the full step is short relative to each parameter
  cost        ///< the decrease that the full step predicts is within the cost's tolerance or rounding error
};
constexpr char const* to_string(fit_end e) {
  constexpr char const* names[] = {"iterations", "no_descent", "gradient", "step", "cost"};
  return names[static_cast<int>(e)];
}

/// The result of a least-squares fit. The fitted parameters are returned in place.
struct fit {
  double cost = 0;        ///< half the sum of the squared residuals, or of their losses
  int iterations = 0;     ///< number of linearizations from which a step was sought
  int evaluations = 0;    ///< number of evaluations of the residuals alone
  bool converged = false; ///< true if the parameters are stationary; `why` names the test
  fit_end why = fit_end::iterations;
  double angle = 1; ///< the cosine of the angle between the residuals and the space of their derivatives

  /// Prints "converged (gradient) after 13 iterations: cost 62.277" or "not converged (iterations) after ...".
  template <class Stream>
    requires requires(Stream& s) { s << "" << 1 << 1.0; }
  friend Stream& operator<<(Stream& to, fit const& f) {
    to << (f.converged ? "converged (" : "not converged (") << to_string(f.why) << ") after " << f.iterations
       << " iterations: cost " << f.cost;
    return to;
  }
};

/// The tolerances that end a fit. Each test uses the full step, which is the undamped step to the minimum of the
/// linearized residuals.
struct fit_tolerances {
  double gradient = 1e-12; ///< bound on `fit::angle`
  double step = 1e-10;     ///< bound on the full step, relative to each parameter
  double cost = 1e-15;     ///< bound on the predicted decrease, relative to the cost
};

namespace detail {

/// The interface through which the iterations use a problem.
struct least_squares_problem {
  numbers gradient{};      ///< gradient of the cost, set by `linearize`
  numbers lengths{};       ///< lengths of the columns of the Jacobian, set by `linearize`
  double length_of_r = 0;  ///< norm of the residuals, weighted by the slopes of their losses, set by `linearize`
  double rounding = 1e-16; ///< rounding error of residuals, relative to the terms they are computed from
  double boundary = 0.1;   ///< bound on the distance of a step's length from the radius, relative to the radius
  bool determined = true;  ///< true if the last `full_step` found equations of full rank
  constexpr least_squares_problem() = default;
  least_squares_problem(least_squares_problem const&) = delete;
  constexpr virtual ~least_squares_problem() = default;

  constexpr virtual double cost(numbers const& x) = 0;
  constexpr virtual void linearize(numbers const& x) = 0;
  /// Returns the p that minimizes |r + J p|^2 + sum(damping p^2). `full_step` damps only the parameters that are
  /// `fixed`, if any.
  constexpr virtual numbers damped_step(numbers const& damping) = 0;
  constexpr virtual numbers full_step(numbers const& fixed) = 0;
  /// Returns |J p|^2.
  constexpr virtual double change(numbers const& p) = 0;
};
/// The lower and upper bounds of the parameters; empty if there are none.
struct parameter_bounds {
  numbers lower{}, upper{};
};

/// The iterations, which start at `x` and end at the parameters of least cost found.
class trust_region {
public:
  constexpr trust_region(least_squares_problem& problem, fit_tolerances const& tolerances, int iterations, numbers& x,
                         parameter_bounds const& bounds = {})
      : problem_(problem), tolerances_(tolerances), limit_(iterations), x_(x), bounds_(bounds), scale_(x.size(), 0.0) {
    check_bounds();
    x_ = within(x_);
    result_.cost = cost(x_);
    if (!is_finite(result_.cost))
      refuse::argument_is_invalid("least squares", "the residuals at the start are not finite");
  }
  /// Runs Levenberg-Marquardt as MINPACK does. Steps have at most the length of a radius, which follows the ratio of
  /// actual to predicted decrease. Parameters are scaled by the longest Jacobian columns found so far. `radius` is
  /// relative to the start.
  constexpr fit damped(double radius) {
    relative_radius_ = radius;
    return iterate(false);
  }
  /// Runs Gauss-Newton: the full step, shortened until the cost decreases in proportion to its slope.
  constexpr fit searched() { return iterate(true); }

private:
  constexpr void check_bounds() const {
    if (bounds_.lower.empty() && bounds_.upper.empty()) return;
    bool fit = bounds_.lower.size() == x_.size() && bounds_.upper.size() == x_.size();
    for (std::size_t k = 0; fit && k < x_.size(); ++k) fit = bounds_.lower[k] <= bounds_.upper[k];
    if (!fit)
      refuse::argument_is_invalid("least squares",
                                  "bounds are trees with an element for each of the parameters, and no "
                                  "lower one lies above its upper one or is NaN");
  }
  constexpr fit iterate(bool searches) {
    for (;;) {
      linearize();
      if (result_.iterations == 0) radius_ = relative_radius_ * (size(x_) > 0 ? size(x_) : 1);
      numbers const full = problem_.full_step(fixed_);
      if (is_stationary(full)) return polished(full);
      if (result_.iterations == limit_) return ended(fit_end::iterations);
      ++result_.iterations;
      if (searches && !problem_.determined)
        refuse::argument_is_invalid("gauss_newton", "the normal equations are singular, so that some parameters are "
                                                    "not determined; use levenberg_marquardt");
      if (!(searches ? search(full) : descend(full))) return ended(fit_end::no_descent);
    }
  }
  constexpr fit ended(fit_end why) {
    result_.why = why;
    result_.converged = why >= fit_end::gradient;
    return result_;
  }
  constexpr double cost(numbers const& x) {
    ++result_.evaluations;
    return problem_.cost(x);
  }
  constexpr numbers within(numbers x) const {
    for (std::size_t k = 0; k < x.size() && !bounds_.lower.empty(); ++k) {
      if (x[k] < bounds_.lower[k]) x[k] = bounds_.lower[k];
      if (x[k] > bounds_.upper[k]) x[k] = bounds_.upper[k];
    }
    return x;
  }
  /// Linearizes the problem at the present parameters. Parameters at a bound stay fixed for this iteration if the cost
  /// would decrease beyond the bound.
  constexpr void linearize() {
    problem_.linearize(x_);
    fixed_.clear();
    for (std::size_t k = 0; k < x_.size(); ++k) {
      double const length = problem_.lengths[k];
      if (length > scale_[k]) scale_[k] = length;
      bool const is_fixed = !bounds_.lower.empty() && ((x_[k] <= bounds_.lower[k] && problem_.gradient[k] > 0) ||
                                                       (x_[k] >= bounds_.upper[k] && problem_.gradient[k] < 0));
      if (is_fixed) fixed_.resize(x_.size(), 0.0);
      if (is_fixed) fixed_[k] = 1e40 * (1 + length * length);
    }
  }
  constexpr numbers moved(numbers const& p, double t = 1) const {
    numbers r = x_;
    for (std::size_t k = 0; k < r.size(); ++k)
      if (fixed_.empty() || fixed_[k] == 0) r[k] += t * p[k];
    return within(r);
  }
  constexpr bool is_short(numbers const& p) const {
    double const all = size(x_);
    for (std::size_t k = 0; k < x_.size(); ++k) {
      double const of_all = scale_[k] > 0 ? tolerances_.step * all / scale_[k] : 0, own = magnitude(x_[k]);
      if (!(magnitude(p[k]) <= tolerances_.step * (own > of_all ? own : of_all))) return false;
    }
    return true;
  }
  /// True if the cost is stationary according to the full step.
  constexpr bool is_stationary(numbers const& full) {
    double const promised = problem_.change(full), r = problem_.length_of_r;
    result_.angle = r > 0 ? kernel::sqrt(promised) / r : 0;
    bool const gradient = !(result_.angle > tolerances_.gradient), step = is_short(full);
    if (!gradient && !step && !(promised / 2 <= tolerances_.cost * result_.cost + problem_.rounding * r * size(x_)))
      return false;
    ended(gradient ? fit_end::gradient : step ? fit_end::step : fit_end::cost);
    return true;
  }
  /// True if a tolerance is greater than its default.
  constexpr bool is_coarse() const {
    constexpr fit_tolerances usual{};
    return tolerances_.gradient > usual.gradient || tolerances_.step > usual.step || tolerances_.cost > usual.cost;
  }
  /// Makes full steps while they become shorter. Near the end the cost is flat, so that the length of steps is the
  /// better indicator. If tolerances are coarse, one step ends the fit.
  constexpr fit polished(numbers full) {
    double last = size(full);
    for (int k = 0; k < 50 && last > 0; ++k) {
      numbers const next = moved(full);
      double const c = cost(next);
      if (!(c <= result_.cost * (1 + 1e3 * problem_.rounding))) break;
      bool const was_short = is_short(full);
      x_ = next;
      result_.cost = c;
      if (was_short || is_coarse()) break;
      linearize();
      full = problem_.full_step(fixed_);
      double const now = size(full);
      if (!(now < 0.9 * last)) break;
      last = now;
    }
    return result_;
  }
  constexpr double size(numbers const& p) const {
    double square = 0;
    for (std::size_t k = 0; k < p.size(); ++k) square += scale_[k] * scale_[k] * p[k] * p[k];
    return kernel::sqrt(square);
  }
  /// Returns the damped step whose length is about the radius, or the full step if that is shorter. The
  /// reciprocal of the length is nearly linear in the damping, so a few secant steps find it.
  constexpr numbers step_within_radius(numbers const& full) {
    double const whole = size(full);
    if (whole <= (1 + problem_.boundary) * radius_) return damping_ = 0, full;
    double square = 0;
    for (std::size_t k = 0; k < full.size(); ++k)
      if (fixed_.empty() || fixed_[k] == 0) square += problem_.gradient[k] * problem_.gradient[k] / weight(k);
    double low = 0, high = kernel::sqrt(square) / radius_, other = 0, length_there = whole;
    if (!(damping_ > low && damping_ < high)) damping_ = 1e-3 * high;
    for (int k = 0;; ++k) {
      numbers d(full.size(), 0.0);
      for (std::size_t j = 0; j < d.size(); ++j)
        d[j] = fixed_.empty() || fixed_[j] == 0 ? damping_ * weight(j) : fixed_[j] * (1 + damping_);
      numbers const p = problem_.damped_step(d);
      double const length = size(p);
      if (k == 10 || magnitude(length - radius_) <= problem_.boundary * radius_) return p;
      (length > radius_ ? low : high) = damping_;
      double const slope = (1 / length - 1 / length_there) / (damping_ - other),
                   next = damping_ + (1 / radius_ - 1 / length) / slope;
      other = damping_, length_there = length;
      if (next > low && next < high) damping_ = next;
      else damping_ = low > 1e-3 * high ? kernel::sqrt(low * high) : 1e-3 * high + low;
    }
  }
  constexpr double weight(std::size_t k) const { return scale_[k] > 0 ? scale_[k] * scale_[k] : 1; }
  /// Makes one step that lowers the cost, and shrinks the region after each failure. Returns false if there is none.
  constexpr bool descend(numbers const& full) {
    while (radius_ > 0) {
      numbers const next = moved(step_within_radius(full));
      numbers p = next;
      for (std::size_t k = 0; k < p.size(); ++k) p[k] -= x_[k];
      double const slope = dot(problem_.gradient, p), promised = -(slope + problem_.change(p) / 2), length = size(p);
      if (length == 0) return false;
      if (result_.iterations == 1 && length < radius_) radius_ = length;
      double const c = cost(next), gained = is_finite(c) ? result_.cost - c : -1e300,
                   gain = promised > 0 ? gained / promised : -1;
      if (gain <= 0.25) {
        double part = gained >= 0 ? 0.5 : 0.5 * slope / (slope + gained); // the minimum of the parabola
        if (!(part >= 0.1)) part = 0.1;
        radius_ = part * (radius_ < 10 * length ? radius_ : 10 * length);
        damping_ /= part;
      } else if (damping_ == 0 || gain >= 0.75) radius_ = 2 * length, damping_ /= 2;
      if (!(gain > 1e-4)) continue;
      x_ = next;
      result_.cost = c;
      return true;
    }
    return false;
  }
  constexpr bool search(numbers const& full) {
    double const slope = dot(problem_.gradient, full);
    for (double t = 1; t > 1e-12;) {
      numbers const next = moved(full, t);
      double const c = cost(next), linear = result_.cost + t * slope;
      if (is_finite(c) && c <= result_.cost + 1e-4 * t * slope && c < result_.cost) {
        x_ = next;
        result_.cost = c;
        return true;
      }
      double const least = -slope * t / (2 * (c - linear)); // of the parabola through the known values
      t *= is_finite(least) && least > 0.1 ? (least < 0.5 ? least : 0.5) : 0.1;
    }
    return false;
  }

  least_squares_problem& problem_;
  fit_tolerances tolerances_;
  int limit_;
  numbers& x_;
  parameter_bounds bounds_;
  // scale_: the longest columns; fixed_: the damping of parameters at a bound, else 0 or empty
  numbers scale_, fixed_{};
  double relative_radius_ = 0, radius_ = 0, damping_ = 0;
  fit result_{};
};

} // namespace detail
} // namespace varve::optim

#pragma GCC diagnostic pop
