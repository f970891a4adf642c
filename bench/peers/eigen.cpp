// SPDX-License-Identifier: BSL-1.0
/// @file
/// Eigen's AutoDiffScalar: forward mode in all directions at once, where inputs are few. Needs libeigen3-dev.
#include "problems.hpp"

#include <Eigen/Core>
#include <unsupported/Eigen/AutoDiff>

namespace Eigen {
/// It has no `erf`.
template <class D>
AutoDiffScalar<D> normal_distribution(AutoDiffScalar<D> const& x) {
  using bench::normal_distribution, std::exp;
  using value = typename D::Scalar;
  value const u = x.value(), exponent = value(-0.5) * u * u, density = value(0.39894228040143267794) * exp(exponent);
  return AutoDiffScalar<D>(normal_distribution(u), D(x.derivatives() * density));
}
} // namespace Eigen

#include "peer.hpp"

namespace {
template <class P>
struct by_eigen {
  static void run(benchmark::State& state) {
    constexpr int n = P::inputs;
    bench::measure_points<P>(state, [&](double const* at, double* d) {
      if constexpr (P::kind == bench::wanted::greeks) {
        using along = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
        using number = Eigen::AutoDiffScalar<Eigen::Matrix<along, n, 1>>;
        number x[n], y;
        for (int k = 0; k < n; ++k) {
          x[k].value() = k ? along(at[k]) : along(at[k], 1, 0);
          x[k].derivatives().setConstant(along(0.0)), x[k].derivatives()[k] = along(1.0);
        }
        P::value(x, &y);
        double first[n];
        for (int k = 0; k < n; ++k) first[k] = y.derivatives()[k].value();
        bench::write_greeks(y.value().value(), first, y.derivatives()[0].derivatives()[0], d);
        return;
      }
      using number = Eigen::AutoDiffScalar<Eigen::Matrix<double, n, 1>>;
      number x[n], y[P::outputs];
      for (int k = 0; k < n; ++k) x[k] = number(at[k], n, k);
      P::value(x, y);
      for (int r = 0; r < P::outputs; ++r)
        for (int k = 0; k < n; ++k) d[r * n + k] = y[r].derivatives()[k];
    });
  }
};
} // namespace

int main(int argc, char** argv) {
  bench::add<by_eigen, bench::logistic_problem, bench::lorenz_problem, bench::greeks_problem, bench::bundle_problem,
             bench::arm_problem>("eigen");
  return bench::run_all(argc, argv);
}
