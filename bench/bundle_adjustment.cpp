// SPDX-License-Identifier: BSL-1.0
/// @file
/// Bundle adjustment from a first guess to convergence: `optim::sparse_least_squares` with `optim::schur`, beside a
/// program by hand on Eigen. Both start at the same parameters, compute in double precision, damp by Levenberg and
/// Marquardt, eliminate the points, and end when a step changes the cost by less than a millionth.
/// The problem is the excerpt in examples/data; the environment variable VARVE_BAL names a file with a greater one:
///
///     VARVE_BAL=problem-16-22106-pre.txt build/bench/bench/bench_bundle_adjustment
///
/// A row is the time of a whole fit, with its preparations. Counters are its iterations, the final cost (half the sum
/// of squares), and milliseconds of CPU time: derivatives, residuals alone, and the equations of steps. The last lines
/// are the ratios of the times. For the greater problem they were 18.4 on tensors and 3.3 fused (g++ 12.2, a shared
/// machine): 3505 and 620 ms beside 196 ms, all three ending at 1.80339e4 after 9, 9 and 7 iterations. The fused
/// derivatives take 0.65 of the time of those by hand; the 20 solutions of equations take 26 ms each, by hand 7 of 12.
#include "../examples/support/bal.hpp"
#include "../examples/support/snavely.hpp"

#include <varve/optim/schur.hpp>

#include <benchmark/benchmark.h>

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <vector>

namespace vv = varve;
namespace optim = varve::optim;
using vv::index_t, vv::tensor;

namespace {
constexpr double tolerance = 1e-6;

/// What a fit did, and CPU seconds of its parts.
struct account {
  int iterations = 0, solves = 0;
  double cost = 0, whole = 1e300, derivatives = 0, residuals = 0, equations = 0;
};
/// Runs `f` and adds its CPU time to `seconds`.
template <class F>
decltype(auto) timed(double& seconds, F const& f) {
  struct clock {
    double& sum;
    std::clock_t const start = std::clock();
    ~clock() { sum += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }
  } const c{seconds};
  return f();
}

// ---- by varve
constexpr auto error_of = [](auto const& camera, auto const& point, auto const& seen) {
  return [&]<index_t... C, index_t... P>(std::integer_sequence<index_t, C...>, std::integer_sequence<index_t, P...>) {
    auto const [u, v] =
        reproject(vv::select(camera, vv::axis<0>, vv::axis<C>)..., vv::select(point, vv::axis<0>, vv::axis<P>)...);
    return vv::stack(std::tuple{u, v}, vv::axis<0>) - seen;
  }(std::make_integer_sequence<index_t, 9>{}, std::make_integer_sequence<index_t, 3>{});
};

/// A problem that counts the time of its parts.
struct timed_problem final : optim::detail::least_squares_problem {
  using numbers = optim::detail::numbers;
  timed_problem(optim::detail::least_squares_problem& of, account& a) : problem(of), parts(a) {
    rounding = of.rounding, boundary = of.boundary;
  }
  double cost(numbers const& x) override {
    return timed(parts.residuals, [&] { return problem.cost(x); });
  }
  void linearize(numbers const& x) override {
    timed(parts.derivatives, [&] { problem.linearize(x); });
    gradient = problem.gradient, lengths = problem.lengths, length_of_r = problem.length_of_r;
  }
  numbers damped_step(numbers const& damping) override {
    ++parts.solves;
    return timed(parts.equations, [&] { return problem.damped_step(damping); });
  }
  numbers full_step(numbers const& fixed) override {
    ++parts.solves;
    return timed(parts.equations, [&] { return problem.full_step(fixed); });
  }
  double change(numbers const& p) override {
    return timed(parts.equations, [&] { return problem.change(p); });
  }
  optim::detail::least_squares_problem& problem;
  account& parts;
};

tensor rows(std::vector<std::size_t> const& of) { return tensor(std::vector<std::int64_t>(of.begin(), of.end())); }
tensor matrix(std::vector<double> const& v, index_t columns) {
  return tensor::from_data(v.data(), {static_cast<index_t>(v.size()) / columns, columns});
}
/// Fits a problem to which `add` adds its residuals.
template <class Add>
account by_varve(bal_problem const& b, Add const& add) {
  account r;
  optim::sparse_least_squares problem;
  auto const cameras = problem.add_parameters(matrix(b.cameras, 9)),
             points = problem.add_parameters(matrix(b.points, 3));
  optim::observed_rows const of[] = {{cameras, rows(b.camera_of)}, {points, rows(b.point_of)}};
  add(problem, of, matrix(b.seen, 2));
  optim::levenberg_marquardt method;
  method.tolerances.cost = tolerance;
  auto const run = [&](optim::detail::least_squares_problem& p, auto& x, auto const& bounds) {
    timed_problem counted(p, r);
    return method(counted, x, bounds);
  };
  optim::fit const fit = problem.minimize(run, optim::schur{points});
  r.iterations = fit.iterations, r.cost = fit.cost;
  return r;
}
account on_tensors(bal_problem const& b) {
  return by_varve(b, [](auto& problem, auto& of, auto const& seen) { problem.add_residuals(error_of, of, seen); });
}
constexpr index_t n = vv::dim<"n">;
template <class F>
constexpr auto fused_for_rows(F const& f) {
  return vv::fuse<vv::spec<double, n, 9>, vv::spec<double, n, 3>, vv::spec<double, n, 2>>(f);
}
constexpr auto fused_errors = fused_for_rows(vv::vmap(error_of));
constexpr auto fused_derivatives = fused_for_rows(vv::vmap(vv::jacrev<0, 1>(error_of)));
account fused(bal_problem const& b) {
  return by_varve(b, [](auto& problem, auto& of, auto const& seen) {
    problem.add_batched_residuals(fused_errors, fused_derivatives, of, seen);
  });
}

// ---- by hand
template <int Rows, int Columns>
using block = Eigen::Matrix<double, Rows, Columns, Columns == 1 ? Eigen::ColMajor : Eigen::RowMajor>;

/// Observations by their points, with their derivatives. Normal equations have a block of 9 x 9 for each camera, one of
/// 3 x 3 for each point, and the coupling of 9 x 3 of each observation, which is cheaper to compute than to read.
class adjustment {
public:
  adjustment(bal_problem const& b, account& a)
      : parts_(a), cameras_(b.cameras), points_(b.points), seen_(b.size()), first_(b.points.size() / 3 + 1),
        u_(b.cameras.size() / 9), v_(b.points.size() / 3), by_camera_(u_.size()), by_point_(v_.size()),
        step_(u_.size()), point_step_(v_.size()) {
    std::vector<std::size_t> order(b.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t k) {
      return std::pair(b.point_of[i], b.camera_of[i]) < std::pair(b.point_of[k], b.camera_of[k]);
    });
    for (std::size_t k = 0; k < order.size(); ++k) {
      std::size_t const i = order[k];
      seen_[k].camera = b.camera_of[i], seen_[k].point = b.point_of[i];
      seen_[k].at = {b.seen[2 * i], b.seen[2 * i + 1]};
      ++first_[seen_[k].point + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::size_t most = 0;
    for (std::size_t p = 0; p < v_.size(); ++p) most = std::max(most, first_[p + 1] - first_[p]);
    w_.resize(most);
    s_.resize(static_cast<Eigen::Index>(b.cameras.size()), static_cast<Eigen::Index>(b.cameras.size()));
    right_.resize(s_.rows());
  }
  /// Levenberg-Marquardt with Nielsen's damping, which is relative to the diagonal of the normal equations.
  void minimize() {
    parts_.cost = timed(parts_.residuals, [&] { return cost(cameras_, points_); });
    timed(parts_.derivatives, [&] { linearize(); });
    double damping = 1e-4, growth = 2;
    while (parts_.iterations < 100) {
      ++parts_.iterations, ++parts_.solves;
      double const promised = timed(parts_.equations, [&] { return solve(damping); });
      std::vector<double> const cameras = moved(cameras_, step_), points = moved(points_, point_step_);
      double const now = timed(parts_.residuals, [&] { return cost(cameras, points); }), gained = parts_.cost - now;
      if (!(gained > 0)) {
        if (promised <= tolerance * parts_.cost) return;
        damping *= growth, growth *= 2;
        continue;
      }
      cameras_ = cameras, points_ = points, parts_.cost = now;
      if (gained <= tolerance * now) return;
      double const ratio = 2 * gained / promised - 1;
      damping *= std::max(1.0 / 3, 1 - ratio * ratio * ratio), growth = 2;
      timed(parts_.derivatives, [&] { linearize(); });
    }
  }

private:
  struct observation {
    std::size_t camera, point;
    block<2, 1> at, error;
    block<2, 12> j;
    auto by_camera() const { return j.leftCols<9>(); }
    auto by_point() const { return j.rightCols<3>(); }
  };
  /// The image of a point: the rotation of Rodrigues, as in `ceres::AngleAxisRotatePoint`.
  static block<2, 1> project(double const* c, double const* p) {
    Eigen::Map<Eigen::Vector3d const> const axis(c), shift(c + 3), x(p);
    double const square = axis.squaredNorm();
    Eigen::Vector3d q = x;
    if (square > 1e-12) {
      double const angle = std::sqrt(square), co = std::cos(angle), si = std::sin(angle);
      Eigen::Vector3d const k = axis / angle;
      q = x * co + k.cross(x) * si + k * (k.dot(x) * (1 - co));
    } else q += axis.cross(x);
    q += shift;
    double const u = -q[0] / q[2], v = -q[1] / q[2], n = u * u + v * v, zoom = c[6] * (1 + n * (c[7] + n * c[8]));
    return {zoom * u, zoom * v};
  }
  double cost(std::vector<double> const& cameras, std::vector<double> const& points) const {
    double sum = 0;
    for (observation const& o : seen_)
      sum += (project(&cameras[o.camera * 9], &points[o.point * 3]) - o.at).squaredNorm();
    return sum / 2;
  }
  void linearize() {
    for (auto& u : u_) u.setZero();
    for (auto& g : by_camera_) g.setZero();
    for (std::size_t p = 0; p < v_.size(); ++p) {
      v_[p].setZero(), by_point_[p].setZero();
      for (std::size_t k = first_[p]; k < first_[p + 1]; ++k) {
        observation& o = seen_[k];
        double x[12];
        std::copy_n(&cameras_[o.camera * 9], 9, x);
        std::copy_n(&points_[p * 3], 3, x + 9);
        reprojection_jacobian_by_hand<double>(x, o.j.data(), o.error.data());
        o.error -= o.at;
        u_[o.camera] += o.by_camera().transpose().lazyProduct(o.by_camera());
        v_[p] += o.by_point().transpose().lazyProduct(o.by_point());
        by_camera_[o.camera] += o.by_camera().transpose().lazyProduct(o.error);
        by_point_[p] += o.by_point().transpose().lazyProduct(o.error);
      }
    }
  }
  template <int N>
  static block<N, N> damped(block<N, N> m, double damping) {
    m.diagonal() += damping * m.diagonal().cwiseMax(1e-6).cwiseMin(1e32);
    return m;
  }
  /// Computes the step, and returns the decrease of the cost that it promises.
  double solve(double damping) {
    s_.setZero();
    for (std::size_t c = 0; c < u_.size(); ++c) {
      auto const at = static_cast<Eigen::Index>(9 * c);
      s_.block<9, 9>(at, at) = damped<9>(u_[c], damping);
      right_.segment<9>(at) = -by_camera_[c];
    }
    for (std::size_t p = 0; p < v_.size(); ++p) eliminate(p, damped<3>(v_[p], damping).inverse());
    Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> const factor(s_); // in place, of the lower triangle
    factor.solveInPlace(right_);
    double promised = 0; // half of step^T (damping D step - gradient)
    auto const add = [&](auto const& m, auto const& g, auto const& step) {
      auto const d = m.diagonal().cwiseMax(1e-6).cwiseMin(1e32);
      promised += 0.5 * (damping * step.cwiseAbs2().dot(d) - step.dot(g));
    };
    for (std::size_t c = 0; c < u_.size(); ++c) {
      step_[c] = right_.segment<9>(static_cast<Eigen::Index>(9 * c));
      add(u_[c], by_camera_[c], step_[c]);
    }
    for (std::size_t p = 0; p < v_.size(); ++p) {
      Eigen::Vector3d g = -by_point_[p];
      for (std::size_t k = first_[p]; k < first_[p + 1]; ++k) {
        block<2, 1> const along = seen_[k].by_camera().lazyProduct(step_[seen_[k].camera]);
        g -= seen_[k].by_point().transpose().lazyProduct(along);
      }
      point_step_[p] = damped<3>(v_[p], damping).inverse() * g;
      add(v_[p], by_point_[p], point_step_[p]);
    }
    return promised;
  }
  void eliminate(std::size_t p, block<3, 3> const& inverse) {
    std::size_t const n = first_[p + 1] - first_[p];
    observation const* const seen = &seen_[first_[p]];
    for (std::size_t i = 0; i < n; ++i) w_[i] = seen[i].by_camera().transpose().lazyProduct(seen[i].by_point());
    for (std::size_t i = 0; i < n; ++i) {
      Eigen::Matrix<double, 9, 3> const y = w_[i].lazyProduct(inverse);
      auto const row = static_cast<Eigen::Index>(9 * seen[i].camera);
      right_.segment<9>(row) += y.lazyProduct(by_point_[p]);
      for (std::size_t k = 0; k < n && seen[k].camera <= seen[i].camera; ++k)
        s_.block<9, 9>(row, static_cast<Eigen::Index>(9 * seen[k].camera)) -= y.lazyProduct(w_[k].transpose());
    }
  }
  template <class Steps>
  static std::vector<double> moved(std::vector<double> x, Steps const& steps) {
    auto const n = static_cast<std::size_t>(steps[0].size());
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += steps[k / n][static_cast<Eigen::Index>(k % n)];
    return x;
  }

  account& parts_;
  std::vector<double> cameras_, points_;
  std::vector<observation> seen_;
  std::vector<std::size_t> first_; // the first observation of each point
  std::vector<block<9, 9>> u_;
  std::vector<block<3, 3>> v_;
  std::vector<block<9, 1>> by_camera_; // gradients, and steps
  std::vector<block<3, 1>> by_point_;
  std::vector<block<9, 1>> step_;
  std::vector<block<3, 1>> point_step_;
  std::vector<Eigen::Matrix<double, 9, 3>> w_{}; // the couplings of one point
  Eigen::MatrixXd s_{};
  Eigen::VectorXd right_{};
};
account by_hand(bal_problem const& b) {
  account r;
  adjustment(b, r).minimize();
  return r;
}

// ---- both
account best_on_tensors, best_fused, best_by_hand;

void run(benchmark::State& state, bal_problem const& problem, account (*f)(bal_problem const&), account& best) {
  for (auto _ : state) {
    double seconds = 0;
    account a = timed(seconds, [&] { return f(problem); });
    a.whole = seconds;
    if (a.whole < best.whole) best = a;
  }
  state.counters["iterations"] = best.iterations;
  state.counters["solves"] = best.solves;
  state.counters["cost"] = best.cost;
  state.counters["derivatives_ms"] = best.derivatives * 1e3;
  state.counters["residuals_ms"] = best.residuals * 1e3;
  state.counters["equations_ms"] = best.equations * 1e3;
  for (account const* other : {&best_on_tensors, &best_fused, &best_by_hand})
    if (other->cost > 0 && std::fabs(other->cost - best.cost) > 1e-3 * best.cost)
      state.SkipWithError("the fits end at different costs");
}
} // namespace

int main(int argc, char** argv) try {
  char const* const path = std::getenv("VARVE_BAL");
  bal_problem const problem = load_bal(path ? path : VARVE_EXAMPLE_DATA "/problem-16-120-pre.txt");
  auto const add = [&](char const* name, account (*f)(bal_problem const&), account& best) {
    benchmark::RegisterBenchmark(name, [&problem, f, &best](benchmark::State& s) { run(s, problem, f, best); });
  };
  add("bundle_adjustment/tensors", on_tensors, best_on_tensors);
  add("bundle_adjustment/fused", fused, best_fused);
  add("bundle_adjustment/hand", by_hand, best_by_hand);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  for (account const* own : {&best_on_tensors, &best_fused})
    if (own->cost > 0 && best_by_hand.cost > 0)
      std::fprintf(stderr, "varve, %s: %.2f of the time of the program by hand\n",
                   own == &best_fused ? "fused" : "tensors", own->whole / best_by_hand.whole);
} catch (std::exception const& e) { // a file that VARVE_BAL names and that is missing or malformed
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
