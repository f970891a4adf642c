// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"
#if __has_include(<Eigen/Dense>)
#include <varve/interop/eigen.hpp>
#include <varve/varve.hpp>

#include <Eigen/Dense>

namespace vv = varve;
using vv::array;

namespace {
/// log det and a solution, as an estimation by Eigen has them
auto const likelihood = [](auto const& x) {
  using T = std::remove_cvref_t<decltype(x[0] * 1.0)>;
  Eigen::Matrix<T, 2, 2> m;
  m << x[0], x[1], x[1], x[2];
  Eigen::Matrix<T, 2, 1> b;
  b << x[0] * x[2], x[1];
  Eigen::Matrix<T, 2, 1> const s = m.inverse() * b;
  using std::log;
  return log(m.determinant()) + s.dot(b) + b.norm();
};
template <class F>
void check_gradient(F const& f, array<double, 3> const& x) {
  auto const g = vv::grad(f)(x);
  for (vv::index_t k = 0; k < 3; ++k) {
    double const e = 1e-6;
    array<double, 3> a = x, b = x;
    a[k] += e, b[k] -= e;
    CHECK(g[k] == Approx((f(a) - f(b)) / (2 * e)).epsilon(1e-6));
  }
}
} // namespace

TEST_CASE("Eigen: matrices of values under grad, jvp and grad of grad", "[interop][eigen]") {
  array<double, 3> const x{2, 0.5, 3};
  check_gradient(likelihood, x);
  auto const directional = [&](auto const& v) {
    return vv::jvp(likelihood, std::tuple(v), std::tuple(array<double, 3>{1, 0, 2})).second;
  };
  CHECK(directional(x) == Approx(vv::dot(vv::grad(likelihood)(x), array<double, 3>{1, 0, 2})));
  check_gradient([&](auto const& v) { return vv::dot(vv::grad(likelihood)(v), array<double, 3>{1, 2, -1}); }, x);
}

TEST_CASE("Eigen: matrices of run-time sizes, and decompositions", "[interop][eigen]") {
  auto const f = [](auto const& x) {
    using T = std::remove_cvref_t<decltype(x[0] * 1.0)>;
    using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    matrix m(3, 3);
    m << x[0], x[1], x[2], x[1], x[2] * x[2] + 3.0, x[0], x[2], x[0], x[1] * x[1] + 5.0;
    matrix const a = m * m.transpose() + matrix::Identity(3, 3);
    Eigen::Matrix<T, Eigen::Dynamic, 1> b(3);
    b << x[0], x[1] * x[2], x[2];
    Eigen::Matrix<T, Eigen::Dynamic, 1> const s = a.ldlt().solve(b);
    Eigen::Matrix<T, Eigen::Dynamic, 1> const l = a.llt().solve(b);
    return T(s.squaredNorm() * 2.0 + l.sum() + a.trace());
  };
  check_gradient(f, array<double, 3>{1.5, -0.5, 0.7});
}
#endif
