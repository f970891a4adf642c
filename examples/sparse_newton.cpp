// SPDX-License-Identifier: BSL-1.0
/// @file
/// Newton's method with a sparse Jacobian: the Bratu problem, u_xx + u_yy + 6 e^u = 0 on a square with u = 0 around it.
/// The Jacobian of 30 x 30 unknowns has five entries in each row. Its pattern is found once and colored; each step
/// takes a few passes through the equation instead of 900.
#include <varve/sparse.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace vv = varve;
using vv::tensor;

namespace {
constexpr int n = 30;
constexpr double h2 = 1.0 / ((n + 1) * (n + 1)); // the square of the distance of two points

tensor equation(tensor const& u) {
  tensor const p = vv::pad(u, vv::dims{1, 1, 1, 1});
  auto const neighbors = [&](int i, int j) { return vv::slice(vv::slice(p, 0, i, i + n), 1, j, j + n); };
  return neighbors(0, 1) + neighbors(2, 1) + neighbors(1, 0) + neighbors(1, 2) - 4.0 * u + 6.0 * h2 * vv::exp(u);
}

/// Solves m x = b by conjugate gradients, for a symmetric matrix in compressed rows.
std::vector<double> solve(vv::pattern_view const& m, std::vector<double> const& values, std::vector<double> const& b) {
  auto const times = [&](std::vector<double> const& x) {
    std::vector<double> y(x.size(), 0.0);
    for (int r = 0; r < m.rows; ++r)
      for (int k = m.row_start[r]; k < m.row_start[r + 1]; ++k) y[r] += values[k] * x[m.column[k]];
    return y;
  };
  auto const dot = [](std::vector<double> const& a, std::vector<double> const& c) {
    double s = 0;
    for (std::size_t k = 0; k < a.size(); ++k) s += a[k] * c[k];
    return s;
  };
  std::vector<double> x(b.size(), 0.0), r = b, d = b;
  double now = dot(r, r);
  for (double const first = now; now > 1e-24 * first;) {
    std::vector<double> const md = times(d);
    double const step = now / dot(d, md), before = now;
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += step * d[k], r[k] -= step * md[k];
    now = dot(r, r);
    for (std::size_t k = 0; k < x.size(); ++k) d[k] = r[k] + now / before * d[k];
  }
  return x;
}
} // namespace

int main() {
  auto const jacobian = vv::sparse_jacobian(equation);
  tensor u = vv::zeros({n, n}, vv::dtype::float64);
  std::printf("%d entries, %d passes\n", jacobian.pattern(u).count(), jacobian.passes(u));
  // output: 4380 entries
  for (int step = 0; step < 6; ++step) {
    tensor const f = equation(u);
    std::printf("residual %.1e\n", std::sqrt(vv::sum(vv::square(f)).item<double>()));
    auto const j = jacobian(u);
    std::vector<double> const change =
        solve(j.pattern(), j.values.to_vector<double>(), vv::reshape(f, {n * n}).to_vector<double>());
    u = u - vv::reshape(tensor::from_data(change.data(), {n * n}), {n, n});
  }
  // output: residual [0-9.]+e-1[0-9]
  std::printf("greatest value %.4f\n", vv::amax(u).item<double>());
  // output: greatest value 0.7952
}
