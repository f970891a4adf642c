// SPDX-License-Identifier: BSL-1.0
// A curve through noisy data by Levenberg and Marquardt: parameters are a struct, the Jacobian is varve's, and the text
// is that of the formula. The same solver runs in the compiler, on numbers, and on tensors.
// output: y = 2\.0[0-9]* exp\(-0\.(4[89]|50)[0-9]* t\) \+ 0\.[23][0-9]*, after [0-9]+ steps, converged: yes
// output: in the compiler: rate 0\.5000
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cstdio>
namespace vv = varve;

template <class T>
struct decay {
  T height, rate, floor;
};
constexpr auto curve = [](auto const& p, auto const& t) { return p.height * vv::exp(-p.rate * t) + p.floor; };
constexpr auto residuals = [](auto const& p, auto const& t, auto const& y) { return curve(p, t) - y; };

constexpr double rate_of_four_points() {
  vv::array<double, 4> const t{0, 1, 2, 3};
  decay<double> p{1, 1, 0};
  vv::optim::levenberg_marquardt{}.minimize(residuals, p, t, curve(decay<double>{2, 0.5, 0.3}, t));
  return p.rate;
}

int main() {
  vv::manual_seed(3);
  vv::tensor const t = vv::arange(200, vv::dtype::float64) * 0.04;
  vv::tensor const y = 2 * vv::exp(-0.5 * t) + 0.3 + 0.01 * vv::randn({200}, vv::dtype::float64);
  decay<vv::tensor> p{vv::tensor::from_number(1.0), vv::tensor::from_number(1.0), vv::tensor::from_number(0.0)};
  auto const fit = vv::optim::levenberg_marquardt{}.minimize(residuals, p, t, y);
  std::printf("y = %.3f exp(-%.3f t) + %.3f, after %d steps, converged: %s\n", p.height.item(), p.rate.item(),
              p.floor.item(), fit.iterations, fit.converged ? "yes" : "no");
  constexpr double rate = rate_of_four_points();
  std::printf("in the compiler: rate %.4f\n", rate);
}
