// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using numbers = std::vector<double>;

inline double sum_of_squares(numbers const& v) {
  double s = 0;
  for (double x : v) s += x * x;
  return s;
}

/// The x that minimizes |a x - y| by Householder reflections; `a` has rows of n numbers, at least n of them. Columns
/// are brought to one length first.
inline numbers solve_least_squares(numbers a, numbers y, std::size_t n) {
  std::size_t const m = y.size();
  numbers scale(n), x(n);
  for (std::size_t j = 0; j < n; ++j) {
    double length = 0;
    for (std::size_t i = 0; i < m; ++i) length = std::hypot(length, a[i * n + j]);
    scale[j] = length > 0 ? length : 1;
    for (std::size_t i = 0; i < m; ++i) a[i * n + j] /= scale[j];
  }
  for (std::size_t j = 0; j < n; ++j) {
    double square = 0;
    for (std::size_t i = j; i < m; ++i) square += a[i * n + j] * a[i * n + j];
    double const length = std::copysign(std::sqrt(square), -a[j * n + j]),
                 head = a[j * n + j] - length; // the mirror is (head, the column below)
    auto const reflect = [&](auto at) {
      double s = head * at(j);
      for (std::size_t i = j + 1; i < m; ++i) s += a[i * n + j] * at(i);
      s /= length * head;
      at(j) += s * head;
      for (std::size_t i = j + 1; i < m; ++i) at(i) += s * a[i * n + j];
    };
    for (std::size_t k = j + 1; k < n; ++k) reflect([&](std::size_t i) -> double& { return a[i * n + k]; });
    reflect([&](std::size_t i) -> double& { return y[i]; });
    a[j * n + j] = length;
  }
  for (std::size_t j = n; j-- > 0;) {
    double s = y[j];
    for (std::size_t k = j + 1; k < n; ++k) s -= a[j * n + k] * x[k];
    x[j] = s / a[j * n + j];
  }
  for (std::size_t j = 0; j < n; ++j) x[j] /= scale[j];
  return x;
}

/// The greatest element of a step, relative to where it begins.
inline double relative_size(numbers const& step, numbers const& b) {
  double r = 0;
  for (std::size_t k = 0; k < b.size(); ++k)
    r = std::max(r, std::abs(b[k]) > 0 ? std::abs(step[k] / b[k]) : std::abs(step[k]));
  return r;
}

/// Observations and a model of them with parameters b, of which derivatives are known.
struct least_squares {
  std::function<numbers(numbers const& b)> residual; // observed - model
  std::function<numbers(numbers const& b)> jacobian; // of the model: a row of b.size() numbers for each observation
  std::function<numbers(numbers const& b, numbers const& v)> curvature; // of the model: its second derivative along v
};

/// Minimizes |residual(b)|^2 from b on, which it replaces; gives the number of steps tried.
///
/// Levenberg and Marquardt's method: each step minimizes |J step - r|^2 + damping |scale step|^2, with the scales of
/// Moré (the longest column seen of each parameter) and the damping of Nielsen. The step then bends with the curvature
/// of the model along it (Transtrum and Sethna's geodesic acceleration), without which it would creep through narrow
/// curved valleys; one that would bend too much is not taken.
inline int levenberg_marquardt(least_squares const& problem, numbers& b, double tolerance = 1e-9, int limit = 5000) {
  numbers r = problem.residual(b);
  std::size_t const n = b.size(), m = r.size();
  numbers scale(n);
  double sum = sum_of_squares(r), damping = 1e-3, growth = 2;
  int steps = 0;
  for (bool done = false; !done && steps < limit;) {
    numbers const j = problem.jacobian(b);
    for (std::size_t c = 0; c < n; ++c) {
      double length = 0;
      for (std::size_t i = 0; i < m; ++i) length = std::hypot(length, j[i * n + c]);
      scale[c] = std::max(scale[c], length);
    }
    for (bool taken = false; !taken && !done && steps < limit; ++steps) {
      numbers a = j, y = r;
      a.resize((m + n) * n);
      y.resize(m + n);
      for (std::size_t c = 0; c < n; ++c) a[(m + c) * n + c] = std::sqrt(damping) * scale[c];
      numbers const step = solve_least_squares(a, y, n);
      y = problem.curvature(b, step);
      for (double& v : y) v *= -0.5;
      y.resize(m + n);
      numbers const bend = solve_least_squares(a, y, n);

      numbers next = b;
      double square = 0, bend_square = 0, expected = 0; // the decrease of the sum that a linear model would give
      for (std::size_t c = 0; c < n; ++c) {
        next[c] += step[c] + bend[c];
        square += std::pow(scale[c] * step[c], 2);
        bend_square += std::pow(scale[c] * bend[c], 2);
      }
      for (std::size_t i = 0; i < m; ++i) {
        double change = 0;
        for (std::size_t c = 0; c < n; ++c) change += j[i * n + c] * step[c];
        expected += change * change;
      }
      expected += 2 * damping * square;

      numbers const trial = problem.residual(next);
      double const trial_sum = sum_of_squares(trial), gain = (sum - trial_sum) / expected;
      done = relative_size(step, b) < tolerance || damping > 1e30;
      taken = bend_square < 0.14 * square && gain > 1e-4; // not where the sum is NaN
      if (taken) {
        b = next, r = trial, sum = trial_sum;
        damping *= std::max(1.0 / 3, 1 - std::pow(2 * gain - 1, 3));
        growth = 2;
      } else {
        damping *= growth;
        growth *= 2;
      }
    }
  }
  return steps;
}
