// SPDX-License-Identifier: BSL-1.0
#include <varve/linalg.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

TEST_CASE("logdet: -infinity of a singular matrix, NaN of a negative determinant", "[op][linalg]") {
  tensor const m({{2.0, 1.0}, {1.0, 3.0}});
  CHECK(std::abs(vv::logdet(m).item() - std::log(5.0)) < 1e-14);
  CHECK(vv::logdet(tensor({{1.0, 1.0}, {1.0, 1.0}})).item() == -INFINITY);
  CHECK(std::isnan(vv::logdet(tensor({{0.0, 1.0}, {1.0, 0.0}})).item()));
  CHECK(vv::allclose(vv::grad(vv::logdet)(m), vv::inverse(m).mT()));
  CHECK(vv::logdet(vv::stack({m, m * 2.0})).sizes() == vv::dims{2});
  CHECK(std::abs(vv::logdet(vv::array<double, 2, 2>{2, 1, 1, 3}) - std::log(5.0)) < 1e-14);
}

TEST_CASE("linalg has the names of torch.linalg", "[op][linalg]") {
  tensor const m({{2.0, 1.0}, {0.5, 3.0}}), b = {1.0, 2.0};
  CHECK(vv::equal(vv::linalg::solve(m, b), vv::solve(m, b)));
  CHECK(vv::equal(vv::linalg::inv(m), vv::inverse(m)));
  CHECK(vv::allclose(vv::linalg::det(m), tensor(5.5)));
  CHECK(vv::equal(vv::linalg::eigh(m + m.mT()).first, vv::eigvalsh(m + m.mT())));
}

TEST_CASE("mT exchanges rows and columns of matrices and batches of them", "[op][linalg]") {
  tensor const x = vv::arange(24).reshape({2, 3, 4});
  CHECK(x.mT().sizes() == vv::dims{2, 4, 3});
  CHECK(x.mT().shares_storage(x));
  CHECK(vv::equal(x.mT()[1], x[1].t()));
  CHECK_THROWS_WITH(vv::ones({2}).mT(), ContainsText("it is for matrices"));
}
