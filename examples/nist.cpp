// SPDX-License-Identifier: BSL-1.0
// Nonlinear least squares: the 27 regression problems of the NIST Statistical Reference Datasets, solved by
// `optim::levenberg_marquardt` with its defaults from both starting points. The table counts correct digits: -log10 of
// the relative error, the least over the parameters. Certified are 11 digits.
// output: Misra1a [|] 2 [|] [0-9]+ [|] [a-z]+ [|] 1[01][.]
// output: 5[2-4] of 54 fits to four digits or more, (9[.][4-9]|10[.][0-9]) digits in the mean
#include "support/nist.hpp"

#include <varve/optim.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>

namespace vv = varve;
using vv::tensor;

namespace {
/// A model: its value at all points x, for parameters b.
struct problem {
  char const* name;
  tensor (*model)(tensor const& b, tensor const& x);
};
tensor peak(tensor const& x, tensor const& height, tensor const& at, tensor const& width) {
  return height * vv::exp(-vv::square((x - at) / width));
}
tensor wave(tensor const& x, tensor const& cosine, tensor const& sine, tensor const& period) {
  tensor const t = 2 * M_PI / period * x;
  return cosine * vv::cos(t) + sine * vv::sin(t);
}
using in = tensor const&;
tensor lanczos(in b, in x) { return b[0] * vv::exp(-b[1] * x) + b[2] * vv::exp(-b[3] * x) + b[4] * vv::exp(-b[5] * x); }
tensor gauss(in b, in x) { return b[0] * vv::exp(-b[1] * x) + peak(x, b[2], b[3], b[4]) + peak(x, b[5], b[6], b[7]); }
tensor chwirut(in b, in x) { return vv::exp(-b[0] * x) / (b[1] + b[2] * x); }
tensor cubics(in b, in x) {
  return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1 + x * (b[4] + x * (b[5] + x * b[6])));
}
problem const problems[] = {
    {"Misra1a", [](in b, in x) -> tensor { return b[0] * (1 - vv::exp(-b[1] * x)); }},
    {"Chwirut2", chwirut},
    {"Chwirut1", chwirut},
    {"Lanczos3", lanczos},
    {"Gauss1", gauss},
    {"Gauss2", gauss},
    {"DanWood", [](in b, in x) -> tensor { return b[0] * vv::pow(x, b[1]); }},
    {"Misra1b", [](in b, in x) -> tensor { return b[0] * (1 - 1 / vv::square(1 + b[1] * x / 2)); }},
    {"Kirby2", [](in b, in x) -> tensor { return (b[0] + x * (b[1] + x * b[2])) / (1 + x * (b[3] + x * b[4])); }},
    {"Hahn1", cubics},
    {"Nelson",
     [](in b, in x) -> tensor { return b[0] - b[1] * vv::select(x, 1, 0) * vv::exp(-b[2] * vv::select(x, 1, 1)); }},
    {"MGH17", [](in b, in x) -> tensor { return b[0] + b[1] * vv::exp(-b[3] * x) + b[2] * vv::exp(-b[4] * x); }},
    {"Lanczos1", lanczos},
    {"Lanczos2", lanczos},
    {"Gauss3", gauss},
    {"Misra1c", [](in b, in x) -> tensor { return b[0] * (1 - 1 / vv::sqrt(1 + 2 * b[1] * x)); }},
    {"Misra1d", [](in b, in x) -> tensor { return b[0] * b[1] * x / (1 + b[1] * x); }},
    {"Roszman1", [](in b, in x) -> tensor { return b[0] - b[1] * x - vv::atan(b[2] / (x - b[3])) / M_PI; }},
    {"ENSO",
     [](in b, in x) -> tensor {
       return b[0] + wave(x, b[1], b[2], tensor(12.0)) + wave(x, b[4], b[5], b[3]) + wave(x, b[7], b[8], b[6]);
     }},
    {"MGH09", [](in b, in x) -> tensor { return b[0] * x * (x + b[1]) / (x * (x + b[2]) + b[3]); }},
    {"Thurber", cubics},
    {"BoxBOD", [](in b, in x) -> tensor { return b[0] * (1 - vv::exp(-b[1] * x)); }},
    {"Rat42", [](in b, in x) -> tensor { return b[0] / (1 + vv::exp(b[1] - b[2] * x)); }},
    {"MGH10", [](in b, in x) -> tensor { return b[0] * vv::exp(b[1] / (x + b[2])); }},
    {"Eckerle4", [](in b, in x) -> tensor { return b[0] / b[1] * vv::exp(-0.5 * vv::square((x - b[2]) / b[1])); }},
    {"Rat43", [](in b, in x) -> tensor { return b[0] / vv::pow(1 + vv::exp(b[1] - b[2] * x), 1 / b[3]); }},
    {"Bennett5", [](in b, in x) -> tensor { return b[0] * vv::pow(b[1] + x, -1 / b[2]); }},
};
double digits(double found, double certified) {
  double const error = std::abs(found - certified) / std::abs(certified);
  return error > 1e-11 ? -std::log10(error) : error <= 1e-11 ? 11 : 0; // 0: NaN
}
/// Solves a problem from both starts and prints its row; adds to the digits of all, and gives how many were solved.
int fit(problem const& p, double& digits_of_all) {
  nist_problem data = load_nist(std::string(VARVE_EXAMPLE_DATA "/") + p.name + ".dat");
  if (p.name == std::string("Nelson")) // it models log(y)
    for (double& y : data.y) y = std::log(y);
  auto const points = static_cast<vv::index_t>(data.size()), predictors = static_cast<vv::index_t>(data.predictors);
  tensor const x = predictors == 1 ? tensor(data.x) : vv::reshape(tensor(data.x), {points, predictors}), y(data.y);
  auto const residuals = [&](in b, in x, in y) { return p.model(b, x) - y; };
  std::printf("| %s | %zu |", p.name, data.certified.size());
  int solved = 0;
  for (auto const& start : data.start) {
    tensor b(start);
    auto const report = vv::optim::levenberg_marquardt{}.minimize(residuals, b, x, y);
    double least = 11;
    for (std::size_t k = 0; k < start.size(); ++k)
      least = std::min(least, digits(b[static_cast<vv::index_t>(k)].item(), data.certified[k]));
    std::printf(" %d | %s | %.1f |", report.iterations, to_string(report.why), std::floor(10 * least) / 10);
    digits_of_all += std::max(least, 0.0);
    solved += least >= 4 && report.converged;
    if (report.converged && least < 4) std::printf(" wrong |");
  }
  std::printf("\n");
  return solved;
}
} // namespace

int main() try {
  std::printf(
      "| problem | parameters | iterations from start 1 | ended by | digits | iterations from start 2 | ended by "
      "| digits |\n|---|---:|---:|---|---:|---:|---|---:|\n");
  int solved = 0;
  double digits_of_all = 0;
  for (problem const& p : problems) solved += fit(p, digits_of_all);
  double const mean = digits_of_all / (2 * std::size(problems));
  std::printf("\n%d of %zu fits to four digits or more, %.1f digits in the mean\n", solved, 2 * std::size(problems),
              mean);
  return solved >= 52 && mean > 9.4 ? 0 : 1;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
