// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/linalg/inverse.hpp>
#include <varve/optim/flat.hpp>
#include <varve/transform/jacobian.hpp>

/// @file
/// Nonlinear least squares: parameters for which the sum of the squares of residuals is least. The Jacobian is varve's
/// (forward mode, all columns at once); residuals are a value of any shape, or a tree of them.
namespace varve::optim {

/// What a solver of least squares says of its run; the parameters are where they were given.
struct fit {
  double cost = 0;        ///< half the sum of the squares of the residuals
  int iterations = 0;     ///< steps that were taken
  bool converged = false; ///< did a tolerance end it, and not the number of iterations?
};

/// The solution of symmetric, positive definite equations, by varve (`solve`); others that are called in the same way
/// take its place, as `eigen_ldlt` (`interop/eigen_solver.hpp`).
struct dense_solver {
  template <class A, class B>
  constexpr auto operator()(A const& a, B const& b) const {
    return solve(a, b, ints<0>{}); // singular: infinite, which the methods refuse
  }
};

namespace detail {
/// The residuals and their Jacobian at a vector of parameters, as normal equations.
template <class F, class Tree>
constexpr auto residuals_of(F const& f, Tree const& like) {
  return [&f, &like](auto const& v, auto const&... d) { return flat(f(unflat(v, like), d...)); };
}
template <class R, class V, class... X>
constexpr auto normal_equations(R const& residuals, V const& at, X const&... data) {
  auto const j = jacfwd(residuals)(at, data...);
  auto const t = transpose(j);
  return std::pair(matmul(t, j), matmul(t, residuals(at, data...)));
}
template <class R, class V, class... X>
constexpr double cost_of(R const& residuals, V const& at, X const&... data) {
  auto const r = residuals(at, data...);
  return dot(r, r) / 2;
}
constexpr bool is_finite(double v) { return v - v == 0; }
/// Is a step too short to matter for parameters of this size?
template <class V>
constexpr bool is_short(V const& step, V const& at, double tolerance) {
  double const s = dot(step, step), size = dot(at, at);
  return s <= tolerance * tolerance * (size + tolerance * tolerance);
}
/// The diagonal of a matrix as a matrix.
template <class M>
constexpr auto diagonal_part(M const& m) {
  auto const unit = varve::detail::identity_like(m);
  return m * unit;
}
} // namespace detail

/// Steps of the normal equations, each to the least of the linearized residuals: quadratic near a small minimum; far
/// from one it may diverge, or end at a point that costs more than one before. Then `converged` is false, and the
/// parameters are the best that it saw. `value_error` where the equations are singular: parameters that no residual
/// depends on.
struct gauss_newton {
  int iterations = 50;
  double tolerance = 1e-10; ///< of a step, relative to the parameters

  /// `gauss_newton{}.minimize(residuals, p, data...)` changes p; `residuals(p, data...)`.
  template <class F, class P, class... X>
  constexpr fit minimize(F const& residuals, P& parameters, X const&... data) const {
    return minimize_by(dense_solver{}, residuals, parameters, data...);
  }
  /// ... with a solver of linear equations.
  template <class Solver, class F, class P, class... X>
  constexpr fit minimize_by(Solver const& solver, F const& residuals, P& parameters, X const&... data) const {
    P const like = parameters;
    auto const r = detail::residuals_of(residuals, like);
    auto at = detail::flat_start(like);
    auto best = at;
    fit result{detail::cost_of(r, at, data...), 0, false};
    for (bool ended = false; result.iterations < iterations && !ended;) {
      auto const [a, b] = detail::normal_equations(r, at, data...);
      auto const step = solver(a, b);
      if (!detail::is_finite(detail::dot(step, step)))
        refuse::argument_is_invalid("gauss_newton", "the normal equations are singular, so that some parameters are "
                                                    "not determined; use levenberg_marquardt");
      at = at - step;
      ++result.iterations;
      double const cost = detail::cost_of(r, at, data...);
      if (!detail::is_finite(cost)) break;
      if (cost <= result.cost) best = at, result.cost = cost;
      ended = detail::is_short(step, at, tolerance);
      // Costs of the last points differ by rounding, so the best one lies near the end.
      result.converged = ended && detail::is_short(at - best, at, kernel::sqrt(tolerance));
    }
    parameters = detail::as_tree(best, like);
    return result;
  }
};

/// The damped method of Levenberg and Marquardt: between Gauss-Newton and short steps down the gradient, scaled by the
/// diagonal of the normal equations. The cost never grows. It also serves where some parameters are not determined.
struct levenberg_marquardt {
  int iterations = 100;
  double tolerance = 1e-10; ///< of a step, relative to the parameters
  double damping = 1e-3;    ///< at the start, relative to the diagonal
  double grow = 10;         ///< the factor after a step that was refused
  double shrink = 0.1;      ///< ... and after one that was taken

  /// `levenberg_marquardt{}.minimize(residuals, p, data...)` changes p; `residuals(p, data...)`.
  template <class F, class P, class... X>
  constexpr fit minimize(F const& residuals, P& parameters, X const&... data) const {
    return minimize_by(dense_solver{}, residuals, parameters, data...);
  }
  /// ... with a solver of linear equations.
  template <class Solver, class F, class P, class... X>
  constexpr fit minimize_by(Solver const& solver, F const& residuals, P& parameters, X const&... data) const {
    P const like = parameters;
    auto const r = detail::residuals_of(residuals, like);
    auto at = detail::flat_start(like);
    fit result{detail::cost_of(r, at, data...), 0, false};
    if (!detail::is_finite(result.cost))
      refuse::argument_is_invalid("levenberg_marquardt", "the residuals at the start are not finite");
    double lambda = damping;
    while (result.iterations < iterations && !result.converged) {
      ++result.iterations;
      auto const [a, b] = detail::normal_equations(r, at, data...);
      auto const scale = detail::diagonal_part(a);
      auto const least = varve::detail::identity_like(a) * 1e-30; // a parameter without influence stays
      for (bool taken = false; !taken && !result.converged; lambda *= taken ? shrink : grow) {
        auto const step = solver(a + scale * lambda + least, b);
        auto const next = at - step;
        double const cost = detail::cost_of(r, next, data...);
        taken = cost <= result.cost; // false where it is not finite
        if (detail::is_finite(detail::dot(step, step))) result.converged = detail::is_short(step, at, tolerance);
        if (taken) at = next, result.cost = cost;
        if (!taken && lambda > 1e30) result.converged = true; // nothing is lower in any direction
      }
    }
    parameters = detail::as_tree(at, like);
    return result;
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
