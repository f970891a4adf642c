// SPDX-License-Identifier: BSL-1.0
// Where is a planet? Kepler's equation E - e sin E = M has no solution in closed form: Newton's iteration goes on until
// it is exact. One text, differentiated, mapped and fused by the compiler, and run on tensors: every orbit takes the
// steps it needs, and the gradient goes back through as many.
// output: fused: 8 orbits, error of E below 1e-13: yes, of dE/de below 1e-12: yes
// output: tensors agree: yes
// output: a bound of 2 steps: varve: while_loop is not done after the 2 steps that bound it
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>

namespace vv = varve;

template <vv::index_t Steps>
constexpr auto anomaly = [](auto e, auto m) { // of an orbit of eccentricity e at the mean anomaly m
  return vv::while_loop<Steps>(
      [](auto x, auto e, auto m) { return vv::abs(x - e * vv::sin(x) - m) > 1e-14; },
      [](auto x, auto e, auto m) { return x - (x - e * vv::sin(x) - m) / (1.0 - e * vv::cos(x)); }, m + e * vv::sin(m),
      e, m);
};

int main() {
  constexpr vv::array<double, 8> e{0, 0.0068, 0.0167, 0.0934, 0.2056, 0.5, 0.7, 0.9},
      m{0.3, 1, 3, 0.1, 2, 1.5, 2.5, 1.2};
  constexpr auto solve = vv::fuse(vv::vmap(anomaly<0>));
  constexpr auto slopes = vv::fuse(vv::vmap(vv::grad(anomaly<30>))); // reverse mode makes room for 30 steps
  auto const x = solve(e, m), dx = slopes(e, m);
  double error = 0, slope_error = 0;
  for (int k = 0; k < 8; ++k) {
    error = std::fmax(error, std::fabs(x[k] - e[k] * std::sin(x[k]) - m[k]));
    slope_error = std::fmax(
        slope_error,
        std::fabs(dx[k] - std::sin(x[k]) / (1 - e[k] * std::cos(x[k])))); // by differentiating the equation itself
    std::printf("e = %.4f  M = %.1f  E = %.12f  dE/de = %.12f\n", e[k], m[k], x[k], dx[k]);
  }
  std::printf("fused: 8 orbits, error of E below 1e-13: %s, of dE/de below 1e-12: %s\n", error < 1e-13 ? "yes" : "no",
              slope_error < 1e-12 ? "yes" : "no");

  vv::tensor const te = vv::tensor::from_data(e.data, {8}), tm = vv::tensor::from_data(m.data, {8});
  vv::tensor const tx = vv::vmap(anomaly<0>)(te, tm),
                   tdx = vv::vmap(vv::grad(anomaly<0>))(te, tm); // tensors keep as many steps as there are
  bool agree = true;
  for (int k = 0; k < 8; ++k)
    agree = agree && std::fabs(tx.data<double>()[k] - x[k]) < 1e-13 && std::fabs(tdx.data<double>()[k] - dx[k]) < 1e-12;
  std::printf("tensors agree: %s\n", agree ? "yes" : "no");

  try {
    vv::fuse(anomaly<2>)(0.9, 1.2);
  } catch (vv::step_limit_error const& refused) { std::printf("a bound of 2 steps: %s\n", refused.what()); }
}
