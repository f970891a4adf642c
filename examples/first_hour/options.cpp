// SPDX-License-Identifier: BSL-1.0
// Prices and Greeks of many options: the price in C++'s mathematics, its derivatives by grad, fused for any number.
// output: delta, vega, gamma agree with the formulas: yes
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>
#include <vector>
namespace vv = varve;

constexpr auto price = [](auto s, auto k, auto v, auto t) { // a call, without interest
  using std::erf, std::log, std::sqrt;
  auto d = (log(s / k) + v * v * t / 2) / (v * sqrt(t));
  auto normal = [](auto x) { return (1 + erf(x / 1.4142135623730951)) / 2; };
  return s * normal(d) - k * normal(d - v * sqrt(t));
};
constexpr auto greeks = vv::vmap(vv::grad<0, 2>(price), vv::in_dims<0, 0, 0, 0>);
constexpr auto gammas = vv::vmap(vv::grad(vv::grad(price)));
constexpr auto run = vv::fuse<vv::spec<double, vv::dim<"n">>, vv::spec<double, vv::dim<"n">>,
                              vv::spec<double, vv::dim<"n">>, vv::spec<double, vv::dim<"n">>>(greeks);

int main() {
  vv::index_t const n = 1000;
  vv::tensor const s = vv::arange(n, vv::dtype::float64) * 0.1 + 50.0, k = s * 0 + 100.0, v = s * 0 + 0.3,
                   t = s * 0 + 2;
  auto const [delta, vega] = run(s, k, v, t);
  auto const gamma = gammas(s, k, v, t);
  double worst = 0;
  for (vv::index_t i = 0; i < n; i += 37) {
    double const x = s[i].item(), d = (std::log(x / 100) + 0.09) / (0.3 * std::sqrt(2.0));
    double const density = std::exp(-d * d / 2) / std::sqrt(8 * std::atan(1.0));
    worst = std::fmax(worst, std::fabs(delta[i].item() - (1 + std::erf(d / std::sqrt(2.0))) / 2));
    worst = std::fmax(worst, std::fabs(vega[i].item() - x * density * std::sqrt(2.0)));
    worst = std::fmax(worst, std::fabs(gamma[i].item() - density / (x * 0.3 * std::sqrt(2.0))));
  }
  std::printf("delta, vega, gamma agree with the formulas: %s\n", worst < 1e-10 ? "yes" : "no");
}
