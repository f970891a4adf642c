// SPDX-License-Identifier: BSL-1.0
#include "../../examples/support/nist.hpp"
#include "varve_test.hpp"

#include <varve/optim.hpp>
#include <varve/varve.hpp>

#if __has_include(<Eigen/Cholesky>) || __has_include(<eigen3/Eigen/Cholesky>)
#include <varve/interop/eigen_solver.hpp>
#endif

#include <cmath>
#include <limits>

namespace vv = varve;
namespace optim = varve::optim;
using vv::array;
using vv::tensor;

namespace {
template <class T>
struct decay {
  T height, rate, floor;
};
constexpr auto residuals = [](auto const& p, auto const& t, auto const& y) {
  return p.height * vv::exp(-p.rate * t) + p.floor - y;
};
constexpr array<double, 6> times{0, 1, 2, 3, 4, 5};
constexpr auto heights = 2.0 * vv::exp(-0.5 * times) + 0.3;
template <class Method>
constexpr auto fitted(Method const& m) {
  decay<double> p{1.5, 0.4, 0.1};
  auto const f = m.minimize(residuals, p, times, heights);
  return std::pair(p, f);
}
constexpr auto rosenbrock = [](auto const& p) {
  auto const& [x, y] = p;
  return vv::sum((1.0 - x) * (1.0 - x) + 100.0 * (y - x * x) * (y - x * x));
};
tensor number(double v) { return tensor::from_number(v); }

/// A NIST problem whose parameters are two numbers, from both of its starts, in either world.
template <class Model, class Method>
void to_certified(char const* file, Model const& model, Method const& method, double digits) {
  nist_problem const p = load_nist(VARVE_TEST_DIR "/../examples/data/" + std::string(file));
  tensor const x(p.x), y(p.y);
  for (auto const& start : p.start) {
    std::pair<tensor, tensor> b{number(start[0]), number(start[1])};
    auto const r =
        method.minimize([&](auto const& b, auto const& x, auto const& y) { return model(b, x) - y; }, b, x, y);
    INFO(file << ": " << r.iterations << " steps");
    CHECK(r.converged);
    CHECK(b.first.item() == Approx(p.certified[0]).epsilon(digits));
    CHECK(b.second.item() == Approx(p.certified[1]).epsilon(digits));
    CHECK(2 * r.cost == Approx(p.residual).epsilon(1e-9));
  }
}
} // namespace

TEST_CASE("fit: least squares of numbers, in the compiler", "[optim]") {
  constexpr auto a = fitted(optim::levenberg_marquardt{});
  STATIC_REQUIRE(a.second.converged);
  CHECK(a.first.height == Approx(2));
  CHECK(a.first.rate == Approx(0.5));
  CHECK(a.first.floor == Approx(0.3));
  CHECK(a.second.cost < 1e-25);
  auto const b = fitted(optim::gauss_newton{});
  CHECK(b.second.converged);
  CHECK(b.first.rate == Approx(0.5));
  CHECK(b.second.iterations < 10);
}

TEST_CASE("fit: least squares of tensors and of arrays take the same steps", "[optim]") {
  decay<tensor> t{number(1.5), number(0.4), number(0.1)};
  decay<array<double>> s{array<double>{1.5}, array<double>{0.4}, array<double>{0.1}};
  optim::levenberg_marquardt const m{.iterations = 2};
  auto const of_tensors = m.minimize(residuals, t, tensor(times), tensor(heights));
  auto const of_arrays = m.minimize(residuals, s, times, heights);
  CHECK_FALSE(of_tensors.converged);
  CHECK(of_tensors.iterations == 2);
  CHECK(of_tensors.cost == Approx(of_arrays.cost));
  CHECK(t.rate.item() == Approx(double(s.rate)));
  CHECK(t.rate.dim() == 0);
}

TEST_CASE("fit: NIST's certified values", "[optim]") {
  auto const misra1a = [](auto const& b, auto const& x) { return b.first * (1.0 - vv::exp(-b.second * x)); };
  auto const danwood = [](auto const& b, auto const& x) { return b.first * vv::pow(x, b.second); };
  to_certified("Misra1a.dat", misra1a, optim::levenberg_marquardt{}, 1e-8);
  to_certified("DanWood.dat", danwood, optim::levenberg_marquardt{}, 1e-8);
  to_certified("DanWood.dat", danwood, optim::gauss_newton{}, 1e-8);
}

TEST_CASE("fit: residuals that are a tree, parameters with leaves that are none", "[optim]") {
  auto p = std::tuple(array<double, 2>{5, 5}, 3, 1.0); // the int is a constant
  auto const r = [](auto const& p) {
    auto const& [v, n, x] = p;
    return std::tuple(v - 1.0 * n, x * x - 4.0);
  };
  CHECK(optim::levenberg_marquardt{}.minimize(r, p).converged);
  CHECK(std::get<0>(p)[1] == Approx(3));
  CHECK(std::get<1>(p) == 3);
  CHECK(std::get<2>(p) == Approx(2));
  std::vector<tensor> q{tensor({5.0, 6.0}), tensor({1.0, 2.0, 3.0})};
  auto const of_vector = [](auto const& q) { return std::vector<tensor>{q[0] - 1.0, q[1] * q[1] - 9.0}; };
  CHECK(optim::gauss_newton{}.minimize(of_vector, q).cost < 1e-20);
  CHECK(q[0].to_vector() == std::vector<double>{1, 1});
  CHECK(q[1][2].item() == Approx(3));
}

TEST_CASE("fit: what cannot be fitted", "[optim]") {
  std::pair<double, double> p{1, 1};
  auto const without_second = [](auto const& p) { return std::tuple(p.first - 2.0, p.first * 2.0 - 4.0); };
  CHECK_THROWS_WITH(optim::gauss_newton{}.minimize(without_second, p), ContainsText("levenberg_marquardt"));
  CHECK(p.first == 1); // as it was
  CHECK(optim::levenberg_marquardt{}.minimize(without_second, p).converged);
  CHECK(p.first == Approx(2));
  CHECK(p.second == 1); // without influence: it stays
  double x = -1;
  auto const not_finite = [](auto const& x) { return vv::log(x); };
  CHECK_THROWS_WITH(optim::levenberg_marquardt{}.minimize(not_finite, x), ContainsText("not finite"));
  // A step into where the residuals are no numbers is a step too long.
  x = 30;
  CHECK(optim::levenberg_marquardt{}.minimize(not_finite, x).converged);
  CHECK(x == Approx(1));
}

#if __has_include(<Eigen/Cholesky>) || __has_include(<eigen3/Eigen/Cholesky>)
TEST_CASE("fit: Eigen solves the equations", "[optim]") {
  decay<double> p{1.5, 0.4, 0.1};
  CHECK(optim::levenberg_marquardt{}.minimize_by(vv::eigen_ldlt{}, residuals, p, times, heights).converged);
  CHECK(p.rate == Approx(0.5));
  decay<tensor> t{number(1.5), number(0.4), number(0.1)};
  CHECK(optim::gauss_newton{}.minimize_by(vv::eigen_ldlt{}, residuals, t, tensor(times), tensor(heights)).converged);
  CHECK(t.floor.item() == Approx(0.3));
  CHECK_THROWS_AS(vv::eigen_ldlt{}(vv::zeros({2, 3}), vv::zeros({2})), vv::shape_error);
}
#endif

TEST_CASE("fit: lbfgs", "[optim]") {
  std::pair<double, double> p{-1.2, 1};
  CHECK(optim::lbfgs{}.minimize(rosenbrock, p) < 1e-12);
  CHECK(p.first == Approx(1));
  CHECK(p.second == Approx(1));
  std::pair<tensor, tensor> t{tensor({-1.2, 3.0}), tensor({1.0, 2.0})};
  optim::lbfgs const method{.history = 5};
  auto state = method.init(t);
  double last = std::numeric_limits<double>::infinity();
  int steps = 0;
  for (; method.step(t, rosenbrock, state); ++steps) {
    CHECK(state.loss <= last); // never worse
    last = state.loss;
    CHECK(state.pairs.size() <= 5);
  }
  CHECK(t.first[1].item() == Approx(1));
  CHECK(steps < 100);
  CHECK(state.evaluations < 2 * steps + 30); // most first lengths do
  // Data; parameters that require gradients do not gather a history.
  tensor w = vv::zeros({3}, vv::dtype::float64);
  w.requires_grad_();
  auto const loss = [](auto const& w, auto const& x) { return vv::sum((w - x) * (w - x)); };
  CHECK(optim::lbfgs{}.minimize(loss, w, tensor({1.0, 2.0, 3.0})) < 1e-20);
  CHECK(w[2].item() == Approx(3));
  CHECK_FALSE(w.requires_grad());
  // A minimum to begin with: nothing is left.
  double x = 0;
  CHECK(optim::lbfgs{}.minimize([](auto const& x) { return x * x; }, x) == 0);
  // Where the loss ends, the step is shortened.
  x = 1;
  CHECK(optim::lbfgs{.lr = 100}.minimize([](auto const& x) { return x - vv::log(x); }, x) == 1);
  x = 4;
  CHECK(optim::lbfgs{.lr = 100}.minimize([](auto const& x) { return x - vv::log(x); }, x) == Approx(1));
}

TEST_CASE("fit: gauss_newton that ends at a point which costs more has not converged", "[optim]") {
  auto const r = [](auto const& b) {
    return vv::stack(std::tuple(vv::sin(3 * b) + 0.3 * b - 0.5, 0.5 * vv::cos(2 * b) + 0.2 * b), vv::axis<0>);
  };
  auto const gradient = vv::grad([&](auto const& b) { return vv::sum(vv::square(r(b))) / 2; });
  int converged = 0;
  for (double start = -3; start < 3; start += 0.05) {
    array<double> b{start};
    if (!optim::gauss_newton{}.minimize(r, b).converged) continue;
    ++converged;
    INFO(start);
    CHECK(std::abs(double(gradient(b))) < 1e-6);
  }
  CHECK(converged > 60);
  array<double> b{1.545};
  CHECK_FALSE(optim::gauss_newton{}.minimize(r, b).converged);
}
