// SPDX-License-Identifier: BSL-1.0
// Bundle adjustment: 16 cameras and 120 points of a file, by sparse least squares; the points are eliminated.
// output: converged \(cost\) after [0-9]+ iterations, half the sum of squares 1[.]60e\+02
#include <varve/optim/schur.hpp>
#include <varve/varve.hpp>

#include <fstream>
#include <iostream>

namespace vv = varve;
using vv::tensor;
auto const seen = [](auto const& c, auto const& x) { // camera: axis times angle, shift, focal length, distortion
  auto angle = vv::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]), co = vv::cos(angle), si = vv::sin(angle);
  auto k0 = c[0] / angle, k1 = c[1] / angle, k2 = c[2] / angle, along = k0 * x[0] + k1 * x[1] + k2 * x[2];
  auto turned = [&](auto k, auto p, auto cross) { return p * co + cross * si + k * along * (1 - co); };
  auto z = turned(k2, x[2], k0 * x[1] - k1 * x[0]) + c[5], u = turned(k0, x[0], k1 * x[2] - k2 * x[1]) + c[3];
  auto v = turned(k1, x[1], k2 * x[0] - k0 * x[2]) + c[4], r = (u * u + v * v) / (z * z);
  return vv::stack(std::tuple{u, v}) * (c[6] * (1 + r * (c[7] + c[8] * r)) / -z);
};
int main() {
  std::ifstream in(VARVE_EXAMPLE_DATA "/problem-16-120-pre.txt");
  vv::index_t cameras = 0, points = 0, observations = 0;
  in >> cameras >> points >> observations;
  std::vector<std::int64_t> camera_of(observations), point_of(observations);
  std::vector<double> at(2 * observations), of_cameras(9 * cameras), of_points(3 * points);
  for (std::size_t k = 0; k < camera_of.size(); ++k) in >> camera_of[k] >> point_of[k] >> at[2 * k] >> at[2 * k + 1];
  for (auto* numbers : {&of_cameras, &of_points})
    for (double& v : *numbers) in >> v;
  vv::optim::sparse_least_squares problem;
  auto c = problem.add_parameters(vv::reshape(tensor(of_cameras), {-1, 9}));
  auto x = problem.add_parameters(vv::reshape(tensor(of_points), {-1, 3}));
  auto error = [](auto const& c, auto const& x, auto const& at) { return seen(c, x) - at; };
  problem.add_residuals(error, {{c, tensor(camera_of)}, {x, tensor(point_of)}}, vv::reshape(tensor(at), {-1, 2}));
  auto report = problem.minimize(vv::optim::levenberg_marquardt{}, vv::optim::schur{x});
  std::printf("%s (%s) after %d iterations, half the sum of squares %.2e\n", report.converged ? "converged" : "not yet",
              to_string(report.why), report.iterations, report.cost);
}
