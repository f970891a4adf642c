// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/compile/compile.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/optim/least_squares.hpp>
#include <varve/optim/sparse_equations.hpp>

#include <array>
#include <memory>

/// @file
/// Nonlinear least squares with many observations, each of which depends on a few rows of the parameters: bundle
/// adjustment, pose graphs, calibration.
namespace varve::optim {

/// A handle of a parameter tensor in a `sparse_least_squares` problem. Each row of the tensor is a block.
struct parameter_rows {
  int at = -1;
};
/// The parameter rows that observations depend on: observation k depends on row `row[k]`.
struct observed_rows {
  parameter_rows of;
  tensor row; // int64 [observations]
};

namespace detail {
/// Returns the function that solves the equations of one fit: `solver.prepared()`, or the solver itself.
template <class Solver>
block_problem::solver prepared(Solver const& solver) {
  if constexpr (requires { solver.prepared(); }) return solver.prepared();
  else return [&solver](block_equations const& e, numbers const& damping) { return solver(e, damping); };
}
} // namespace detail

/// A least-squares problem on tensors whose Jacobian is sparse.
///
///     optim::sparse_least_squares problem;
///     auto const cameras = problem.add_parameters(camera_start), points = problem.add_parameters(point_start);
///     problem.add_residuals(reprojection_error, {{cameras, camera_of}, {points, point_of}}, seen);
///     auto const report = problem.minimize(optim::levenberg_marquardt{}, optim::schur{points});
///     tensor const best = problem.value(points);
class sparse_least_squares {
public:
  /// Adds parameters [rows, width] with their start values. Throws `value_error` for other ranks or integer dtypes.
  parameter_rows add_parameters(tensor const& start) {
    if (start.dim() != 2 || !is_floating(start.dtype()))
      refuse::argument_is_invalid("sparse_least_squares", "parameters are a floating tensor [rows, width]");
    values_.push_back(start.detach());
    bounds_.lower.resize(bounds_.lower.size() + static_cast<std::size_t>(start.numel()), -infinite);
    bounds_.upper.resize(bounds_.lower.size(), infinite);
    return {static_cast<int>(values_.size()) - 1};
  }
  /// Adds residuals of observations. `f(row..., data row...)` returns the residuals of one observation, a value of rank
  /// 0 or 1. `of` names the parameter rows; each tensor of `data` has one row per observation. All residuals are
  /// computed by `vmap(f)` and their derivatives by `vmap(jacrev<...>(f))`, both compiled. Set a robust loss on the
  /// result: `problem.add_residuals(f, {{points, of}}, seen).loss = huber(0.5)`. The loss applies to the sum of squared
  /// residuals of an observation.
  template <class F, std::size_t K, class... X>
  detail::observations& add_residuals(F const& f, observed_rows const (&of)[K], X const&... data) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> detail::observations& {
      return add_batched_residuals(compile(vmap(f)), compile(vmap(jacrev<static_cast<int>(I)...>(f))), of, data...);
    }(std::make_index_sequence<K>{});
  }
  /// Adds residuals of observations by functions of all of them at once, for example fused or written by hand.
  /// `residuals(rows..., data...)` is called with a tensor [observations, row width] for each of `of`, and returns a
  /// tensor [observations] or [observations, residuals]. `derivatives(rows..., data...)` returns a tuple with a tensor
  /// [observations, residuals, row width] for each of `of`, or the tensor if there is one. `minimize` throws
  /// `value_error` if there are too many or too few derivatives.
  ///
  ///     constexpr auto n = dim<"n">;
  ///     constexpr auto fused = [](auto f) { return fuse<spec<double, n, 9>, spec<double, n, 3>, spec<double, n,
  ///     2>>(f); }; problem.add_batched_residuals(fused(vmap(error)), fused(vmap(jacrev<0, 1>(error))),
  ///                                   {{cameras, camera_of}, {points, point_of}}, seen);
  template <class Residuals, class Derivatives, std::size_t K, class... X>
  detail::observations& add_batched_residuals(Residuals residuals, Derivatives derivatives,
                                              observed_rows const (&of)[K], X const&... data) {
    std::vector<tensor> rows;
    std::vector<detail::observations::named> named;
    for (observed_rows const& o : of) {
      if (o.of.at < 0 || o.of.at >= static_cast<int>(values_.size()) || o.row.dim() != 1)
        refuse::argument_is_invalid("sparse_least_squares", "observations name parameters of the same problem and a "
                                                            "vector of rows");
      rows.push_back(to(o.row, dtype::int64));
      tensor const& v = values_[static_cast<std::size_t>(o.of.at)];
      named.push_back({o.of.at, static_cast<std::size_t>(v.size(1)), detail::rows_in(rows.back(), v.size(0))});
    }
    groups_.push_back(std::make_unique<detail::observed_by<K, Residuals, Derivatives, X...>>(
        std::move(residuals), std::move(derivatives), std::move(rows), data...));
    groups_.back()->of = std::move(named);
    groups_.back()->check();
    return *groups_.back();
  }
  /// Bounds the parameters. `lower` and `upper` are tensors that broadcast to the shape of the parameters.
  void set_bounds(parameter_rows p, tensor const& lower, tensor const& upper) {
    set(bounds_.lower, p, lower);
    set(bounds_.upper, p, upper);
  }
  /// Fixes rows of the parameters at their present values, for example the first camera, which fixes the coordinates.
  void set_constant(parameter_rows p, std::vector<index_t> const& rows) {
    tensor const& v = value(p);
    detail::numbers const now = detail::elements_of(v);
    std::size_t const width = static_cast<std::size_t>(v.size(1)), first = start_of(p);
    for (index_t const r : rows) {
      if (r < 0 || r >= v.size(0)) refuse::argument_is_invalid("sparse_least_squares", "there is no such row");
      for (std::size_t k = 0; k < width; ++k) {
        std::size_t const at = static_cast<std::size_t>(r) * width + k;
        bounds_.lower[first + at] = bounds_.upper[first + at] = now[at];
      }
    }
  }
  /// Returns the present parameters.
  tensor const& value(parameter_rows p) const { return values_.at(static_cast<std::size_t>(p.at)); }

  /// Fits the parameters by `method`, a `levenberg_marquardt` or a `gauss_newton`. `solver` solves the equations of its
  /// steps: `schur{points}`, or `eigen_sparse_cholesky` (`interop/eigen_sparse_solver.hpp`). The losses of the
  /// residuals apply; the loss of the method is ignored.
  template <class Method, class Solver>
  fit minimize(Method const& method, Solver const& solver) {
    detail::block_problem problem(values_, groups_, detail::prepared(solver));
    detail::numbers x = problem.start();
    fit const result = method(problem, x, bounds_);
    values_ = problem.tensors(x);
    return result;
  }

private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  std::size_t start_of(parameter_rows p) const {
    std::size_t r = 0;
    for (int k = 0; k < p.at; ++k) r += static_cast<std::size_t>(values_[static_cast<std::size_t>(k)].numel());
    return r;
  }
  void set(detail::numbers& of_all, parameter_rows p, tensor const& to) {
    detail::numbers const elements = detail::elements_of(expand(to, value(p).sizes()));
    std::copy(elements.begin(), elements.end(), of_all.begin() + static_cast<std::ptrdiff_t>(start_of(p)));
  }
  std::vector<tensor> values_{};
  std::vector<std::unique_ptr<detail::observations>> groups_{};
  detail::parameter_bounds bounds_{};
};

} // namespace varve::optim

#pragma GCC diagnostic pop
