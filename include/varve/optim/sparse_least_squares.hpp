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
/// Nonlinear least squares of many observations, each of which depends on a few rows of the parameters: bundle
/// adjustment, pose graphs, calibration.
namespace varve::optim {

/// Names a tensor of parameters of a `sparse_least_squares` problem. Each of its rows is a block.
struct parameter_rows {
  int at = -1;
};
/// The rows of parameters that observations depend on: observation k on row `row[k]`.
struct observed_rows {
  parameter_rows of;
  tensor row; // int64 [observations]
};

/// A problem of least squares on tensors whose Jacobian is sparse.
///
///     optim::sparse_least_squares problem;
///     auto const cameras = problem.add_parameters(camera_start), points = problem.add_parameters(point_start);
///     problem.add_residuals(reprojection_error, {{cameras, camera_of}, {points, point_of}}, seen);
///     auto const report = problem.minimize(optim::levenberg_marquardt{}, optim::schur{points});
///     tensor const best = problem.value(points);
class sparse_least_squares {
public:
  /// Parameters [rows, width] and where they start. `value_error` for other ranks.
  parameter_rows add_parameters(tensor const& start) {
    if (start.dim() != 2 || !is_floating(start.dtype()))
      refuse::argument_is_invalid("sparse_least_squares", "parameters are a floating tensor [rows, width]");
    values_.push_back(start.detach());
    bounds_.lower.resize(bounds_.lower.size() + static_cast<std::size_t>(start.numel()), -infinite);
    bounds_.upper.resize(bounds_.lower.size(), infinite);
    return {static_cast<int>(values_.size()) - 1};
  }
  /// Residuals of observations: `f(row..., data row...)`, a value of rank 0 or 1 for each. `of` tells the rows of
  /// parameters, `data` are tensors with a row for each observation. `vmap(f)` gives all of them and
  /// `vmap(jacrev<...>(f))` their derivatives, both compiled. Their `loss` can be set where they are added:
  /// `problem.add_residuals(f, {{points, of}}, seen).loss = huber(0.5)`; the squares of one observation count as one.
  template <class F, std::size_t K, class... X>
  detail::observations& add_residuals(F const& f, observed_rows const (&of)[K], X const&... data) {
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
    groups_.push_back(std::make_unique<detail::observed_by<F, K, X...>>(f, std::move(rows), data...));
    groups_.back()->of = std::move(named);
    groups_.back()->check();
    return *groups_.back();
  }
  /// Parameters stay within these bounds, tensors like them, which broadcast.
  void set_bounds(parameter_rows p, tensor const& lower, tensor const& upper) {
    set(bounds_.lower, p, lower);
    set(bounds_.upper, p, upper);
  }
  /// Rows of parameters stay as they are: the first camera, say, which fixes where the others are.
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
  /// The parameters as they are.
  tensor const& value(parameter_rows p) const { return values_.at(static_cast<std::size_t>(p.at)); }

  /// Changes the parameters by a method, `levenberg_marquardt` or `gauss_newton`; `solver` solves the equations of its
  /// steps: `schur{points}`, or `eigen_sparse_cholesky` (`interop/eigen_sparse_solver.hpp`). The residuals' own losses
  /// count, not that of the method.
  template <class Method, class Solver>
  fit minimize(Method const& method, Solver const& solver) {
    detail::block_problem problem(
        values_, groups_,
        [&](detail::block_equations const& e, detail::numbers const& damping) { return solver(e, damping); });
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
