// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/linalg/inverse.hpp>
#include <varve/optim/flat.hpp>
#include <varve/optim/robust_loss.hpp>
#include <varve/optim/trust_region.hpp>
#include <varve/transform/jacobian.hpp>

#include <concepts>
#include <type_traits>

/// @file
/// Nonlinear least squares: finds parameters that minimize the sum of squared residuals, or of a robust loss of them.
/// The Jacobian is computed by forward mode, all columns at once. Residuals are a value of any shape, or a tree of
/// values.
namespace varve::optim {

/// Solves symmetric positive definite equations with varve's `solve`. Any object with the same call operator can
/// replace it, such as `eigen_ldlt` (`interop/eigen_solver.hpp`).
struct dense_solver {
  template <class A, class B>
  constexpr auto operator()(A const& a, B const& b) const {
    return solve(a, b, ints<0>{}); // singular equations yield infinities, which the methods reject
  }
};

namespace detail {
template <std::same_as<tensor> T>
VARVE_NOINLINE numbers elements_of(T const& v) {
  T const plain = contiguous(to(v, dtype::float64));
  double const* const first = static_cast<double const*>(plain.raw());
  return numbers(first, first + plain.numel());
}
template <class V>
constexpr numbers as_numbers(V const& v) {
  if constexpr (std::is_same_v<V, tensor>) return elements_of(v);
  else {
    numbers r;
    for (auto const& e : v) r.push_back(static_cast<double>(e));
    return r;
  }
}
/// Returns the relative rounding error of a dtype.
constexpr double rounding_of(dtype t) {
  return t == dtype::float64 ? 1e-16 : t == dtype::float32 ? 6e-8 : t == dtype::float16 ? 5e-4 : 4e-3;
}
/// Returns a vector with the element type of `like`. If it is a tensor the length may differ.
template <class V>
constexpr V vector_like(V const& like, numbers const& x) {
  if constexpr (std::is_same_v<V, tensor>)
    return to(tensor::from_data(x.data(), dims{static_cast<index_t>(x.size())}), like.dtype());
  else {
    V v = like;
    for (std::size_t k = 0; k < x.size(); ++k) v.data[k] = static_cast<std::remove_cvref_t<decltype(v.data[0])>>(x[k]);
    return v;
  }
}
/// Residuals of a parameter tree as a function of plain numbers. `V` is the type of the flattened parameters.
template <class F, class Tree, class V, class... X>
class residuals_of {
public:
  constexpr residuals_of(F const& f, Tree const& like, V const& start, robust_loss const& loss, X const&... data)
      : f_(f), like_(like), start_(start), loss_(loss), data_(data...) {}

protected:
  constexpr V vector(numbers const& x) const { return vector_like(start_, x); }
  constexpr auto residuals(V const& v) const {
    return std::apply([&](auto const&... d) { return flat(f_(unflat(v, like_), d...)); }, data_);
  }
  constexpr auto jacobian(V const& v) const {
    auto const r = [f = &f_, like = &like_](auto const& p, auto const&... d) {
      return flat((*f)(unflat(p, *like), d...));
    };
    return std::apply([&](auto const&... d) { return jacfwd(r)(v, d...); }, data_);
  }
  constexpr double cost_of(V const& v) const {
    double s = 0;
    for (double const r : as_numbers(residuals(v))) s += loss_.of_square(r * r).loss;
    return s / 2;
  }
  /// Returns the square roots of the slopes of the losses.
  constexpr numbers weights(numbers const& r) const {
    numbers w;
    for (std::size_t k = 0; k < r.size() && loss_.at; ++k)
      w.push_back(kernel::sqrt(loss_.of_square(r[k] * r[k]).slope));
    return w;
  }

private:
  F const& f_;
  Tree const& like_;
  V const& start_;
  robust_loss loss_;
  std::tuple<X const&...> data_;
};

/// Computes steps from Householder reflections of the Jacobian, which lose half as many digits as the normal equations.
template <class F, class Tree, class V, class... X>
class reflected_problem final : public least_squares_problem, residuals_of<F, Tree, V, X...> {
public:
  using residuals_of<F, Tree, V, X...>::residuals_of;
  constexpr ~reflected_problem() override {} // g++ 12 looks for the destructor before it generates it
  constexpr double cost(numbers const& x) override { return this->cost_of(this->vector(x)); }
  constexpr void linearize(numbers const& x) override {
    V const v = this->vector(x);
    numbers r = as_numbers(this->residuals(v)), j = as_numbers(this->jacobian(v));
    numbers const w = this->weights(r);
    std::size_t const n = x.size();
    for (std::size_t i = 0; i < w.size(); ++i) {
      r[i] *= w[i];
      for (std::size_t k = 0; k < n; ++k) j[i * n + k] *= w[i];
    }
    gradient.assign(n, 0), lengths.assign(n, 0);
    for (std::size_t i = 0; i < r.size(); ++i)
      for (std::size_t k = 0; k < n; ++k) {
        gradient[k] += j[i * n + k] * r[i];
        lengths[k] += j[i * n + k] * j[i * n + k];
      }
    for (double& l : lengths) l = kernel::sqrt(l);
    length_of_r = kernel::sqrt(dot(r, r));
    j_.reduce(std::move(j), std::move(r), lengths);
  }
  constexpr numbers damped_step(numbers const& damping) override { return j_.solved(damping); }
  constexpr numbers full_step(numbers const& fixed) override {
    determined = j_.has_full_rank();
    if (fixed.empty()) return j_.solved(); // no ?: here, whose result g++ 12 destroys too early in constant expressions
    return j_.solved(fixed);
  }
  constexpr double change(numbers const& p) override { return j_.change(p); }

private:
  reduced_jacobian j_{};
};

/// Computes steps from the normal equations with the user's solver.
template <class Solver, class F, class Tree, class V, class... X>
class normal_problem final : public least_squares_problem, residuals_of<F, Tree, V, X...> {
  using base = residuals_of<F, Tree, V, X...>;

public:
  constexpr normal_problem(Solver const& solver, F const& f, Tree const& like, V const& start, robust_loss const& loss,
                           X const&... data)
      : base(f, like, start, loss, data...), solver_(solver) {}
  constexpr ~normal_problem() override {}
  constexpr double cost(numbers const& x) override { return this->cost_of(this->vector(x)); }
  constexpr void linearize(numbers const& x) override {
    V const v = this->vector(x);
    auto r = this->residuals(v);
    auto j = this->jacobian(v);
    if (numbers const w = this->weights(as_numbers(r)); !w.empty()) {
      auto const weight = vector_like(r, w);
      r = r * weight;
      j = j * unsqueeze(weight, axis<1>);
    }
    auto const t = transpose(j);
    equations_ = matmul(t, j);
    gradient = as_numbers(matmul(t, r));
    entries_ = as_numbers(equations_);
    lengths.assign(x.size(), 0);
    for (std::size_t k = 0; k < x.size(); ++k) lengths[k] = kernel::sqrt(entries_[k * x.size() + k]);
    length_of_r = kernel::sqrt(as_number(sum(r * r)));
  }
  constexpr numbers damped_step(numbers const& damping) override {
    numbers right = gradient;
    for (double& g : right) g = -g;
    auto const unit = varve::detail::identity_like(equations_);
    return as_numbers(solver_(equations_ + unit * this->vector(damping), this->vector(right)));
  }
  constexpr numbers full_step(numbers const& fixed) override {
    numbers damping = fixed;
    damping.resize(gradient.size(), 0.0);
    numbers p = damped_step(damping);
    determined = is_finite(dot(p, p));
    if (determined) return p;
    for (std::size_t k = 0; k < damping.size(); ++k) damping[k] += 1e-12 * entries_[k * (damping.size() + 1)] + 1e-30;
    return damped_step(damping);
  }
  constexpr double change(numbers const& p) override {
    double s = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t k = 0; k < p.size(); ++k) s += p[i] * entries_[i * p.size() + k] * p[k];
    return s;
  }

private:
  Solver const& solver_;
  decltype(jacfwd([](auto const& v) { return v; })(std::declval<V const&>())) equations_{};
  numbers entries_{};
};

/// Fits a tree of parameters by the iterations of `run`, which works on plain numbers.
template <class Make, class Run, class P>
constexpr fit fitted(Make const& problem, Run const& run, P& parameters) {
  P const like = parameters;
  auto const start = flat_start(like);
  numbers x = as_numbers(start);
  auto p = problem(like, start);
  p.rounding = rounding_of(dtype_of(start));
  fit const result = run(p, x);
  parameters = as_tree(vector_like(start, x), like);
  return result;
}
template <class Run, class F, class P, class... X>
constexpr fit fitted_by_reflections(Run const& run, robust_loss const& loss, F const& f, P& parameters,
                                    X const&... data) {
  return fitted(
      [&](auto const& like, auto const& start) {
        using V = std::remove_cvref_t<decltype(start)>;
        return reflected_problem<F, P, V, X...>(f, like, start, loss, data...);
      },
      run, parameters);
}
template <class Run, class Solver, class F, class P, class... X>
constexpr fit fitted_by_solver(Run const& run, Solver const& solver, robust_loss const& loss, F const& f, P& parameters,
                               X const&... data) {
  return fitted(
      [&](auto const& like, auto const& start) {
        using V = std::remove_cvref_t<decltype(start)>;
        return normal_problem<Solver, F, P, V, X...>(solver, f, like, start, loss, data...);
      },
      run, parameters);
}
} // namespace detail

/// The Gauss-Newton method: full steps to the minimum of the linearized residuals, shortened until the cost decreases.
/// Converges quadratically if the residuals at the minimum are small. The resulting parameters are the best ones found.
/// Throws `value_error` if the equations are singular, for example if no residual depends on a parameter.
struct gauss_newton {
  int iterations = 200;        ///< bound on the iterations
  fit_tolerances tolerances{}; ///< when a fit has converged
  robust_loss loss{};          ///< the loss of each residual; by default its square

  /// Fits the parameters `p` in place: `gauss_newton{}.minimize(residuals, p, data...)`. Calls `residuals(p, data...)`.
  template <class F, class P, class... X>
  constexpr fit minimize(F const& residuals, P& parameters, X const&... data) const {
    return detail::fitted_by_reflections(*this, loss, residuals, parameters, data...);
  }
  /// Fits the parameters like `minimize`, but solves the normal equations with the given solver. Faster for many
  /// parameters, and less exact.
  template <class Solver, class F, class P, class... X>
  constexpr fit minimize_by(Solver const& solver, F const& residuals, P& parameters, X const&... data) const {
    return detail::fitted_by_solver(*this, solver, loss, residuals, parameters, data...);
  }
  /// Runs the iterations on a problem of plain numbers.
  constexpr fit operator()(detail::least_squares_problem& problem, detail::numbers& x,
                           detail::parameter_bounds const& bounds = {}) const {
    return detail::trust_region(problem, tolerances, iterations, x, bounds).searched();
  }
};

/// The damped method of Levenberg and Marquardt. It interpolates between full steps and short steps down the gradient.
/// The size of the trust region follows the ratio of actual to predicted decrease. The cost never increases. Parameters
/// that no residual depends on are left unchanged, so the method also serves underdetermined problems.
struct levenberg_marquardt {
  int iterations = 1000;       ///< bound on the iterations
  fit_tolerances tolerances{}; ///< when a fit has converged
  double radius = 10;          ///< radius of the first step, relative to the parameters
  robust_loss loss{};          ///< the loss of each residual; by default its square

  /// Fits the parameters `p` in place: `levenberg_marquardt{}.minimize(residuals, p, data...)`. Calls
  /// `residuals(p, data...)`.
  template <class F, class P, class... X>
  constexpr fit minimize(F const& residuals, P& parameters, X const&... data) const {
    return detail::fitted_by_reflections(*this, loss, residuals, parameters, data...);
  }
  /// Fits the parameters like `minimize`, but solves the normal equations with the given solver. Faster for many
  /// parameters, and less exact.
  template <class Solver, class F, class P, class... X>
  constexpr fit minimize_by(Solver const& solver, F const& residuals, P& parameters, X const&... data) const {
    return detail::fitted_by_solver(*this, solver, loss, residuals, parameters, data...);
  }
  /// Runs the iterations on a problem of plain numbers.
  constexpr fit operator()(detail::least_squares_problem& problem, detail::numbers& x,
                           detail::parameter_bounds const& bounds = {}) const {
    return detail::trust_region(problem, tolerances, iterations, x, bounds).damped(radius);
  }
};

/// A method with bounds on the parameters:
/// `within(levenberg_marquardt{}, lower, upper).minimize(residuals, p, data...)`. Bounds are trees like the parameters;
/// an infinite bound means no bound. A start outside the bounds is moved to the nearest bound. `fit::converged` then
/// means that no step inside the bounds lowers the cost.
template <class Method, class P>
struct within {
  Method method;
  P lower, upper;

  constexpr within(Method const& m, P const& l, P const& u) : method(m), lower(l), upper(u) {}
  template <class F, class... X>
  constexpr fit minimize(F const& residuals, P& parameters, X const&... data) const {
    detail::parameter_bounds const bounds{detail::as_numbers(detail::flat_start(lower)),
                                          detail::as_numbers(detail::flat_start(upper))};
    return detail::fitted_by_reflections(
        [&](detail::least_squares_problem& problem, detail::numbers& x) { return method(problem, x, bounds); },
        method.loss, residuals, parameters, data...);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
