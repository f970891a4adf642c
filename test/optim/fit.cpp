// SPDX-License-Identifier: BSL-1.0
#include "../../examples/support/nist.hpp"
#include "varve_test.hpp"

#include <varve/optim.hpp>
#include <varve/optim/schur.hpp>
#include <varve/random.hpp>
#include <varve/varve.hpp>

#if __has_include(<Eigen/Cholesky>) || __has_include(<eigen3/Eigen/Cholesky>)
#include <varve/interop/eigen_solver.hpp>
#endif
#if __has_include(<Eigen/SparseCholesky>) || __has_include(<eigen3/Eigen/SparseCholesky>)
#include <varve/interop/eigen_sparse_solver.hpp>
#endif

#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

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

TEST_CASE("fit: gauss_newton converges to stationary points, from anywhere", "[optim]") {
  auto const r = [](auto const& b) {
    return vv::stack(std::tuple(vv::sin(3 * b) + 0.3 * b - 0.5, 0.5 * vv::cos(2 * b) + 0.2 * b), vv::axis<0>);
  };
  auto const gradient = vv::grad([&](auto const& b) { return vv::sum(vv::square(r(b))) / 2; });
  int converged = 0;
  for (double start = -3; start < 3; start += 0.05) {
    array<double> b{start};
    auto const report = optim::gauss_newton{}.minimize(r, b);
    if (!report.converged) continue;
    ++converged;
    INFO(start << ": " << to_string(report.why));
    CHECK(std::abs(double(gradient(b))) < 1e-6);
  }
  CHECK(converged > 110);
}

TEST_CASE("fit: why it ended", "[optim]") {
  using optim::fit_end;
  CHECK(fitted(optim::levenberg_marquardt{}).second.why >= fit_end::gradient);
  std::ostringstream text;
  text << optim::fit{.cost = 0.5, .iterations = 3, .converged = true, .why = fit_end::step} << ", " << optim::fit{};
  CHECK(text.str() == "converged (step) after 3 iterations: cost 0.5, "
                      "not converged (iterations) after 0 iterations: cost 0");
  CHECK(fitted(optim::levenberg_marquardt{.iterations = 2}).second.why == fit_end::iterations);
  // Two parameters of which only the sum matters: stationary, where a step of the damped equations says nothing.
  std::pair<double, double> p{1, 2};
  auto const sum_is_five = [](auto const& p) { return p.first + p.second - 5.0; };
  auto const report = optim::levenberg_marquardt{}.minimize(sum_is_five, p);
  CHECK(report.converged);
  CHECK(p.first + p.second == Approx(5));
  // The residual is at right angles to its derivative from the start on.
  double x = 0;
  auto const parabola = [](auto const& x) { return x * x + 1.0; };
  CHECK(optim::levenberg_marquardt{}.minimize(parabola, x).why == fit_end::gradient);
  // A derivative that is wrong promises what no step keeps.
  x = 1;
  auto const wrong = [](auto const& x) { return vv::detach(x * -2.0) + x + 10.0; };
  auto const lost = optim::levenberg_marquardt{}.minimize(wrong, x);
  CHECK_FALSE(lost.converged);
  CHECK(lost.why == fit_end::no_descent);
  CHECK(x == 1);
  CHECK(to_string(fit_end::no_descent) == std::string("no_descent"));
}

TEST_CASE("fit: hard problems from afar are solved, or said not to be", "[optim]") {
  auto const solve = [](char const* file, auto const& model, int start, auto const& method) {
    nist_problem const p = load_nist(VARVE_TEST_DIR "/../examples/data/" + std::string(file));
    tensor b(p.start[start]);
    auto const r = [&](tensor const& b, tensor const& x, tensor const& y) { return model(b, x) - y; };
    auto const report = method.minimize(r, b, tensor(p.x), tensor(p.y));
    return std::tuple(report, report.cost * 2 / p.residual);
  };
  auto const box = [](tensor const& b, tensor const& x) -> tensor { return b[0] * (1 - vv::exp(-b[1] * x)); };
  auto const exponentials = [](tensor const& b, tensor const& x) -> tensor {
    return b[0] + b[1] * vv::exp(-b[3] * x) + b[2] * vv::exp(-b[4] * x);
  };
  auto const [first, cost] = solve("BoxBOD.dat", box, 0, optim::levenberg_marquardt{});
  CHECK(first.converged);
  CHECK(cost == Approx(1));
  for (int const iterations : {20, 100, 1000}) {
    auto const [report, of_certified] =
        solve("MGH17.dat", exponentials, 0, optim::levenberg_marquardt{.iterations = iterations});
    CHECK(report.converged == (of_certified < 1 + 1e-6));
  }
}

TEST_CASE("fit: bounds", "[optim]") {
  decay<double> p{1.5, 0.4, 0.1};
  decay<double> const lower{0, 0, 0.4}, upper{10, 10, 10};
  optim::levenberg_marquardt const method{};
  auto const f = optim::within(method, lower, upper).minimize(residuals, p, times, heights);
  CHECK(f.converged);
  CHECK(p.floor == 0.4); // pushed against its bound by the others' fit
  auto const cost = [](auto const& p) { return vv::sum(vv::square(residuals(p, times, heights))) / 2; };
  auto const g = vv::grad(cost)(p);
  CHECK(std::abs(g.height) < 1e-6);
  CHECK(std::abs(g.rate) < 1e-6);
  CHECK(g.floor > 0);
  // Bounds that do not matter, and a start beyond them, on tensors.
  decay<tensor> t{number(-3), number(0.4), number(0.1)};
  CHECK(optim::within(method, decay<tensor>{number(0), number(0), number(0)},
                      decay<tensor>{number(10), number(10), number(INFINITY)})
            .minimize(residuals, t, tensor(times), tensor(heights))
            .converged);
  CHECK(t.height.item() == Approx(2));
  // What are no bounds of these parameters.
  p = {1.5, 0.4, 0.1};
  auto const refused = ContainsText("bounds are trees");
  CHECK_THROWS_WITH(optim::within(method, upper, lower).minimize(residuals, p, times, heights), refused);
  CHECK_THROWS_WITH(optim::within(method, decay<double>{NAN, 0, 0}, upper).minimize(residuals, p, times, heights),
                    refused);
  std::vector<tensor> both{tensor({1.0, 2.0}), tensor({3.0})}, one{tensor({0.0, 0.0})};
  auto const first = [](auto const& v) { return v[0] * 2.0; };
  CHECK_THROWS_WITH(optim::within(method, one, one).minimize(first, both), refused);
  CHECK(p.height == 1.5);
  // Where both are one, nothing moves.
  p = {1.5, 0.4, 0.1};
  CHECK(optim::within(optim::gauss_newton{}, decay<double>{0, 0.4, 0}, decay<double>{9, 0.4, 9})
            .minimize(residuals, p, times, heights)
            .converged);
  CHECK(p.rate == 0.4);
}

TEST_CASE("fit: robust losses", "[optim]") {
  auto wrong = heights;
  wrong.data[2] += 100;
  decay<double> p{1.5, 0.4, 0.1};
  CHECK(optim::levenberg_marquardt{}.minimize(residuals, p, times, wrong).cost > 1000);
  for (auto const& loss :
       {optim::huber(1e-3), optim::soft_l1(1e-3), optim::cauchy(1e-2), optim::arctan(0.1), optim::tukey(1)}) {
    p = {1.5, 0.4, 0.1};
    auto const f = optim::levenberg_marquardt{.loss = loss}.minimize(residuals, p, times, wrong);
    CHECK(f.converged);
    CHECK(p.rate == Approx(0.5).margin(0.01));
    // The cost is that of the loss, and its slope the derivative.
    double const h = 1e-6;
    for (double const s : {0.3, 0.9, 1.7, 40.0}) {
      auto const at = [&](double v) { return loss.of_square(v * loss.scale * loss.scale); };
      double const difference = (at(s + h).loss - at(s - h).loss) / (2 * h * loss.scale * loss.scale);
      CHECK(at(s).slope == Approx(difference).margin(1e-8));
    }
  }
  CHECK_THROWS_WITH(optim::huber(0), ContainsText("its scale"));
  STATIC_REQUIRE(optim::linear.of_square(4).loss == 4);
}

TEST_CASE("fit: parameters of float32 and of no influence", "[optim]") {
  std::pair<tensor, tensor> p{tensor({1.0f, 1.0f}), tensor({7.0f})};
  auto const r = [](auto const& p) { return vv::square(p.first) - 2.0; };
  auto const report = optim::levenberg_marquardt{}.minimize(r, p);
  CHECK(report.converged);
  CHECK(report.cost < 1e-12);
  CHECK(p.first.dtype() == vv::dtype::float32);
  CHECK(p.first[0].item<float>() == Approx(std::sqrt(2.0f)));
  CHECK(p.second[0].item<float>() == 7);
}

namespace {
/// Points on a line that pairs of them measure: x_j - x_i is seen, with the first point at 5.
struct chain {
  tensor truth, start, from, to, seen;
};
chain chain_of(vv::index_t n) {
  chain c;
  tensor const k = vv::to(vv::arange(n), vv::dtype::float64);
  c.truth = vv::stack(std::vector<tensor>{k * 2.0 + 5.0, vv::sin(k)}, 1);
  c.start = c.truth + vv::stack(std::vector<tensor>{0.5 * vv::cos(k * 3.0), k * 0.01}, 1);
  std::vector<std::int64_t> i, j;
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t const d : {1, 3})
      if (k + d < n) i.push_back(k), j.push_back(k + d);
  c.from = tensor(i), c.to = tensor(j);
  auto const at = [&](tensor const& rows) { return vv::index_select(c.truth, 0, rows); };
  c.seen = vv::square(at(c.to) - at(c.from)) + at(c.to);
  return c;
}
auto const measured = [](auto const& a, auto const& b, auto const& seen) { return vv::square(b - a) + b - seen; };
} // namespace

TEST_CASE("fit: sparse problems by a Schur complement, beside the dense ones", "[optim]") {
  // Three planes of 4 numbers see 20 points of 2; each observation is a number.
  vv::manual_seed(3);
  auto const seen_from = [](auto const& plane, auto const& point, auto const& seen) {
    return plane[0] * vv::sin(point[0] + plane[1]) + plane[2] * point[1] + vv::square(point[0]) * plane[3] - seen;
  };
  tensor const planes = vv::randn({3, 4}, vv::dtype::float64), points = vv::randn({20, 2}, vv::dtype::float64);
  std::vector<std::int64_t> plane_of, point_of;
  for (std::int64_t k = 0; k < 60; ++k)
    if (k != 7) plane_of.push_back(k % 3), point_of.push_back(k / 3);
  tensor const a(plane_of), b(point_of);
  tensor const seen = vv::vmap(seen_from)(vv::index_select(planes, 0, a), vv::index_select(points, 0, b),
                                          vv::zeros({59}, vv::dtype::float64)) +
                      0.01 * vv::randn({59}, vv::dtype::float64);
  auto const all = [&](auto const& p) {
    return vv::vmap(seen_from)(vv::index_select(p.first, 0, a), vv::index_select(p.second, 0, b), seen);
  };
  std::pair<tensor, tensor> dense{planes + 0.1, points};
  auto const right = optim::levenberg_marquardt{}.minimize(all, dense);
  CHECK(right.converged);
  auto const run = [&](auto const& use) {
    optim::sparse_least_squares problem;
    auto const of_planes = problem.add_parameters(planes + 0.1), of_points = problem.add_parameters(points);
    problem.add_residuals(seen_from, {{of_planes, a}, {of_points, b}}, seen);
    auto const report = use(problem, of_planes, of_points);
    CHECK(report.converged);
    CHECK(report.cost == Approx(right.cost).epsilon(1e-6));
    CHECK(vv::allclose(all(std::pair(problem.value(of_planes), problem.value(of_points))), all(dense), 1e-4, 1e-6));
  };
  optim::levenberg_marquardt const method{};
  run([&](auto& p, auto, auto points) { return p.minimize(method, optim::schur{points}); });
  run([&](auto& p, auto planes, auto) { return p.minimize(method, optim::schur{planes}); });
#if __has_include(<Eigen/SparseCholesky>) || __has_include(<eigen3/Eigen/SparseCholesky>)
  run([&](auto& p, auto, auto) { return p.minimize(method, optim::eigen_sparse_cholesky{}); });
#endif
}

#if __has_include(<Eigen/SparseCholesky>) || __has_include(<eigen3/Eigen/SparseCholesky>)
TEST_CASE("fit: sparse problems with constant rows, bounds and losses", "[optim]") {
  chain const c = chain_of(30);
  optim::sparse_least_squares problem;
  auto const points = problem.add_parameters(c.start);
  auto& pairs = problem.add_residuals(measured, {{points, c.from}, {points, c.to}}, c.seen);
  auto const report = problem.minimize(optim::levenberg_marquardt{}, optim::eigen_sparse_cholesky{});
  CHECK(report.converged);
  CHECK(report.cost < 1e-18);
  CHECK_THROWS_WITH(problem.minimize(optim::gauss_newton{}, optim::schur{points}), ContainsText("two rows"));
  // One observation that is wrong.
  tensor const wrong = vv::clone(c.seen);
  vv::add_(wrong[4], 50.0);
  optim::sparse_least_squares robust;
  auto const again = robust.add_parameters(c.start);
  robust.add_residuals(measured, {{again, c.from}, {again, c.to}}, wrong).loss = optim::cauchy(0.1);
  robust.set_constant(again, {0});
  robust.set_bounds(again, tensor({-100.0, -100.0}), tensor({100.0, 100.0}));
  robust.set_constant(again, {0});
  CHECK(robust.minimize(optim::levenberg_marquardt{}, optim::eigen_sparse_cholesky{}).converged);
  CHECK(vv::allclose(robust.value(again)[0], c.start[0]));
  CHECK(pairs.of.size() == 2);
}
#endif

TEST_CASE("fit: a sparse problem with functions of all observations at once", "[optim]") {
  tensor const height({{2.0}, {-1.0}}), slope({{0.5}, {1.5}, {-0.5}});
  tensor const of_height(std::vector<std::int64_t>{0, 0, 1, 1, 0, 1}),
      of_slope(std::vector<std::int64_t>{0, 1, 2, 0, 2, 1}), x({{0.5}, {1.0}, {1.5}, {-1.0}, {2.0}, {0.3}});
  auto const line = [](auto const& h, auto const& s, auto const& x) { return vv::exp(h * 0.3) + s * x - 1.0; };
  constexpr auto n = vv::dim<"n">;
  constexpr auto column = vv::spec<double, n, 1>;
  constexpr auto fused = vv::fuse<column, column, column>(vv::vmap(line));
  constexpr auto fused_derivatives = vv::fuse<column, column, column>(vv::vmap(vv::jacrev<0, 1>(line)));
  auto const run = [&](auto const& add) {
    optim::sparse_least_squares problem;
    auto const heights = problem.add_parameters(height), slopes = problem.add_parameters(slope);
    optim::observed_rows const of[] = {{heights, of_height}, {slopes, of_slope}};
    add(problem, of);
    auto const report = problem.minimize(optim::levenberg_marquardt{}, optim::schur{slopes});
    CHECK(report.converged);
    return std::pair(problem.value(heights), report.cost);
  };
  auto const [expected, cost] = run([&](auto& problem, auto& of) { problem.add_residuals(line, of, x); });
  auto const [found, same] =
      run([&](auto& problem, auto& of) { problem.add_batched_residuals(fused, fused_derivatives, of, x); });
  CHECK(same == Approx(cost).epsilon(1e-9));
  CHECK(vv::allclose(found, expected, 1e-6, 1e-9));
  auto const too_few = [](tensor const& h, tensor const& s, tensor const&) { return std::tuple(h, s); };
  auto const two = [](tensor const& h, tensor const&, tensor const&) -> tensor {
    return vv::cat(std::tuple{h, h}, vv::axis<1>);
  };
  CHECK_THROWS_WITH(run([&](auto& problem, auto& of) { problem.add_batched_residuals(two, too_few, of, x); }),
                    ContainsText("[observations, residuals, row width]"));
}

TEST_CASE("fit: coarse tolerances end a fit after one more step", "[optim]") {
  auto const noisy = heights + 0.05 * vv::cos(5.0 * times);
  auto const run = [&](double tolerance) {
    decay<double> p{1.5, 0.4, 0.1};
    optim::levenberg_marquardt method;
    method.tolerances.cost = tolerance;
    return method.minimize(residuals, p, times, noisy);
  };
  optim::fit const exact = run(1e-15), coarse = run(1e-3);
  CHECK(coarse.converged);
  CHECK(coarse.why == optim::fit_end::cost);
  CHECK(coarse.evaluations < exact.evaluations);
  CHECK(coarse.cost == Approx(exact.cost).epsilon(1e-3));
}

TEST_CASE("fit: a sparse problem without some observations, and where residuals throw", "[optim]") {
  tensor const start({{1.0, 2.0}, {3.0, 4.0}}), none = vv::zeros({0}, vv::dtype::int64);
  auto const to_five = [](auto const& row, auto const& seen) { return row - seen; };
  optim::sparse_least_squares problem;
  auto const rows = problem.add_parameters(start);
  problem.add_residuals(to_five, {{rows, none}}, vv::zeros({0, 2}, vv::dtype::float64));
  problem.add_residuals(to_five, {{rows, tensor(std::vector<std::int64_t>{1, 1})}},
                        vv::full({2, 2}, 5.0, vv::dtype::float64));
  CHECK(problem.minimize(optim::levenberg_marquardt{}, optim::schur{rows}).converged);
  CHECK(vv::allclose(problem.value(rows), tensor({{1.0, 2.0}, {5.0, 5.0}})));
  auto const throws = [](auto const& row) {
    if (row.dim() == 1) throw std::runtime_error("mine");
    return row;
  };
  problem.add_residuals(throws, {{rows, tensor(std::vector<std::int64_t>{0, 1})}});
  CHECK_THROWS_WITH(problem.minimize(optim::levenberg_marquardt{}, optim::schur{rows}), "mine");
  CHECK(vv::allclose(problem.value(rows), tensor({{1.0, 2.0}, {5.0, 5.0}})));
}

TEST_CASE("fit: what a sparse problem refuses", "[optim]") {
  chain const c = chain_of(5);
  optim::sparse_least_squares problem;
  CHECK_THROWS_WITH(problem.add_parameters(c.start[0]), ContainsText("[rows, width]"));
  auto const points = problem.add_parameters(c.start);
  CHECK_THROWS_WITH(problem.add_residuals(measured, {{points, c.from + 4}, {points, c.to}}, c.seen),
                    ContainsText("names a row"));
  CHECK_THROWS_WITH(problem.add_residuals(measured, {{points, c.from}, {points, vv::slice(c.to, 0, 0, 2)}}, c.seen),
                    ContainsText("one length"));
  CHECK_THROWS_WITH(problem.set_constant(points, {5}), ContainsText("no such row"));
}
