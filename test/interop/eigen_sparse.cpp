// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"
#if __has_include(<Eigen/SparseCholesky>)
#include <varve/interop/eigen_sparse.hpp>
#include <varve/varve.hpp>

#include <Eigen/SparseCholesky>

namespace vv = varve;
using vv::tensor;

namespace {
constexpr auto bowl = [](auto const& x) {
  auto const a = vv::slice(x, vv::axis<0>, vv::range<0, -1>), b = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>);
  return vv::sum(vv::square(b - a)) + vv::sum(vv::square(vv::square(x))) - vv::sum(x);
};
} // namespace

TEST_CASE("Eigen: Newton's method with a sparse Hessian", "[interop][eigen][sparse]") {
  auto const hessian = vv::sparse_hessian(bowl);
  auto const gradient = vv::grad(bowl);
  tensor x = vv::ones({20}, vv::dtype::float64) * 0.4;
  for (int k = 0; k < 12; ++k) {
    Eigen::SparseMatrix<double> const h = vv::to_eigen(hessian(x)); // by columns
    std::vector<double> g = gradient(x).to_vector<double>();
    Eigen::VectorXd const step = Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>>(h).solve(
        Eigen::Map<Eigen::VectorXd>(g.data(), static_cast<Eigen::Index>(g.size())));
    x = x - tensor::from_data(step.data(), {20});
  }
  CHECK(vv::sum(vv::square(gradient(x))).item<double>() < 1e-20);
}

TEST_CASE("Eigen: sparse matrices of arrays and of other numbers", "[interop][eigen][sparse]") {
  constexpr vv::array<float, 4> x{1, 2, 3, 4};
  auto const m = vv::sparse_hessian(bowl)(x);
  Eigen::SparseMatrix<float, Eigen::RowMajor> const h = vv::to_eigen(m);
  auto const d = vv::hessian(bowl)(x);
  CHECK(h.nonZeros() == 10);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k) CHECK(h.coeff(i, k) == Approx(d(i, k)));
  auto const t = vv::sparse_jacobian([](tensor const& v) { return v * v; })(tensor{1.0, 3.0});
  CHECK(vv::to_eigen<float>(t).coeff(1, 1) == 6.0f);
  CHECK(vv::to_eigen(t).isCompressed());
}
#else
TEST_CASE("Eigen: sparse matrices", "[interop][eigen][sparse]") { SUCCEED("no Eigen here"); }
#endif
