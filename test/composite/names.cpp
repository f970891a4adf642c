// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
using vv::tensor;

TEST_CASE("composites: einsum takes its operands one by one, in braces, as a vector", "[composite]") {
  tensor const a({{1.0, 2.0}, {3.0, 4.0}}), b({{0.0, 1.0}, {1.0, 0.0}});
  std::vector<double> const product{2, 1, 4, 3};
  CHECK(vv::einsum("ij,jk->ik", a, b).to_vector() == product);
  CHECK(vv::einsum("ij,jk->ik", {a, b}).to_vector() == product);
  CHECK(vv::einsum("ij,jk->ik", std::vector{a, b}).to_vector() == product);
  CHECK(vv::einsum("ij->j", a).to_vector() == std::vector<double>{4, 6});
  CHECK(vv::einsum("ij,jk,k->i", a, b, a[0]).to_vector() == std::vector<double>{4, 10});
}

TEST_CASE("composites: norm by PyTorch's name", "[composite]") {
  tensor const a({{3.0, 0.0}, {4.0, 5.0}});
  CHECK(vv::norm(a[1], 1).item() == 9);
  CHECK(vv::norm(a, 2, vv::axis<0>).to_vector() == std::vector<double>{5, 5});
  CHECK(vv::norm(vv::array<double, 2>{3, 4}) == 5);
}
