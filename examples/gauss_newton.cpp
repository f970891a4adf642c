// SPDX-License-Identifier: BSL-1.0
// Nonlinear least squares with Jacobians by forward mode: two NIST problems, solved to the certified digits.
// output: Misra1a start 1: converged, 1[01] digits
// output: Misra1a start 2: converged, 1[01] digits
// output: Thurber start 1: converged, ([89]|1[01]) digits
// output: Thurber start 2: converged, ([89]|1[01]) digits
#include "support/nist.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <varve/varve.hpp>

namespace vv = varve;

// The models are written once, for one point; vmap makes them functions of all points, jacfwd differentiates them with respect to b.
constexpr auto misra1a = [](auto b, auto x) {
  auto const b1 = vv::select(b, vv::axis<0>, vv::axis<0>), b2 = vv::select(b, vv::axis<0>, vv::axis<1>);
  return b1 * (1 - vv::exp(-b2 * x));
};
constexpr auto thurber = [](auto b, auto x) {
  auto const at = [&]<int K>(std::integral_constant<int, K>) { return vv::select(b, vv::axis<0>, vv::axis<K>); };
  auto const b1 = at(std::integral_constant<int, 0>{}), b2 = at(std::integral_constant<int, 1>{}), b3 = at(std::integral_constant<int, 2>{}),
             b4 = at(std::integral_constant<int, 3>{}), b5 = at(std::integral_constant<int, 4>{}), b6 = at(std::integral_constant<int, 5>{}),
             b7 = at(std::integral_constant<int, 6>{});
  return (b1 + x * (b2 + x * (b3 + x * b4))) / (1 + x * (b5 + x * (b6 + x * b7)));
};

// Solves (A^T A + damping * diag) step = A^T r by Gaussian elimination with pivots.
template <std::size_t N>
std::array<double, N> solve_damped(std::vector<double> const& jacobian, std::vector<double> const& residual, double damping) {
  double m[N][N + 1]{};
  for (std::size_t k = 0; k < residual.size(); ++k)
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = 0; j < N; ++j) m[i][j] += jacobian[k * N + i] * jacobian[k * N + j];
      m[i][N] += jacobian[k * N + i] * residual[k];
    }
  for (std::size_t i = 0; i < N; ++i) m[i][i] *= 1 + damping;
  for (std::size_t c = 0; c < N; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < N; ++r)
      if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
    std::swap_ranges(m[c], m[c] + N + 1, m[pivot]);
    for (std::size_t r = 0; r < N; ++r) {
      if (r == c) continue;
      double const f = m[r][c] / m[c][c];
      for (std::size_t j = c; j <= N; ++j) m[r][j] -= f * m[c][j];
    }
  }
  std::array<double, N> step;
  for (std::size_t i = 0; i < N; ++i) step[i] = m[i][N] / m[i][i];
  return step;
}

// Levenberg and Marquardt's damping around Gauss and Newton's step.
template <std::size_t N, class Model>
bool fit(Model model, nist_problem const& p, char const* name, int start) {
  auto const all_points = [=](auto b, auto x) { return vv::vmap(model, vv::in_dims<vv::none, 0>)(b, x); };
  auto const points = static_cast<vv::index_t>(p.x.size());
  vv::tensor const x = vv::tensor::from_data(p.x.data(), {points});
  auto const evaluate = [&](std::array<double, N> const& b, std::vector<double>& residual) {
    vv::tensor const y = all_points(vv::tensor::from_data(b.data(), {static_cast<vv::index_t>(N)}), x);
    double sum = 0;
    for (std::size_t k = 0; k < p.y.size(); ++k) {
      residual[k] = p.y[k] - y.data<double>()[k];
      sum += residual[k] * residual[k];
    }
    return sum;
  };
  std::array<double, N> b;
  std::copy(p.start[start].begin(), p.start[start].end(), b.begin());
  std::vector<double> residual(p.y.size()), trial(p.y.size()), jacobian(p.y.size() * N);
  double sum = evaluate(b, residual), damping = 1e-3;
  int small_steps = 0, iterations = 0;
  for (; iterations < 1000 && small_steps < 3; ++iterations) {
    vv::tensor const j = vv::contiguous(vv::jacfwd(all_points)(vv::tensor::from_data(b.data(), {static_cast<vv::index_t>(N)}), x));
    std::copy(j.data<double>(), j.data<double>() + j.numel(), jacobian.begin());
    auto const step = solve_damped<N>(jacobian, residual, damping);
    auto next = b;
    double relative = 0;
    for (std::size_t i = 0; i < N; ++i) {
      next[i] += step[i];
      relative = std::max(relative, std::abs(step[i] / b[i]));
    }
    double const next_sum = evaluate(next, trial);
    small_steps = relative < 1e-13 ? small_steps + 1 : 0;
    if (next_sum <= sum || relative < 1e-9) { // near the solution the sum is flat to the last bit: take the step
      b = next;
      sum = next_sum;
      residual = trial;
      damping = damping > 1e-12 ? damping / 10 : 0;
    } else {
      damping = damping > 0 ? damping * 10 : 1e-8;
    }
  }
  double worst = 11;
  for (std::size_t i = 0; i < N; ++i) {
    double const error = std::abs(b[i] - p.certified[i]) / std::abs(p.certified[i]);
    worst = std::min(worst, error > 0 ? -std::log10(error) : 11.0);
  }
  bool const good = worst >= 8;
  std::printf("%s start %d: %s, %d digits of the certified parameters, %d iterations, sum of squares %.10e (certified %.10e)\n", name, start + 1,
              good ? "converged" : "failed", static_cast<int>(worst), iterations, sum, p.residual);
  return good;
}

int main() {
  std::string const data = VARVE_EXAMPLE_DATA;
  auto const a = load_nist(data + "/Misra1a.dat"), t = load_nist(data + "/Thurber.dat");
  bool good = true;
  for (int start : {0, 1}) good = fit<2>(misra1a, a, "Misra1a", start) && good;
  for (int start : {0, 1}) good = fit<7>(thurber, t, "Thurber", start) && good;
  return good ? 0 : 1;
}
