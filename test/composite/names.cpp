// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/mode/memory_tracker_mode.hpp>
#include <varve/nn.hpp>
#include <varve/varve.hpp>

namespace vv = varve;
using vv::index_t, vv::tensor;

TEST_CASE("composites: einsum takes its operands one by one, in braces, as a vector", "[composite]") {
  tensor const a({{1.0, 2.0}, {3.0, 4.0}}), b({{0.0, 1.0}, {1.0, 0.0}});
  std::vector<double> const product{2, 1, 4, 3};
  CHECK(vv::einsum("ij,jk->ik", a, b).to_vector() == product);
  CHECK(vv::einsum("ij,jk->ik", {a, b}).to_vector() == product);
  CHECK(vv::einsum("ij,jk->ik", std::vector{a, b}).to_vector() == product);
  CHECK(vv::einsum("ij->j", a).to_vector() == std::vector<double>{4, 6});
  CHECK(vv::einsum("ij,jk,k->i", a, b, a[0]).to_vector() == std::vector<double>{4, 10});
}

TEST_CASE("composites: einsum multiplies matrices instead of summing what is larger", "[composite]") {
  tensor const a({{{1.0, 2.0, 3.0}}, {{4.0, 5.0, 6.0}}}),
      b({{{1.0, 0.0}, {2.0, 1.0}, {0.0, 3.0}}}); // [2, 1, 3], [1, 3, 2]
  auto const same = [](tensor const& x, tensor const& y) {
    CHECK(x.sizes() == y.sizes());
    CHECK(x.to_vector() == y.to_vector());
  };
  tensor const product = vv::matmul(a, b); // [2, 1, 2]
  same(vv::einsum("...ij,...jk->...ik", a, b), product);
  same(vv::einsum("...ij,...jk->k...i", a, b), vv::permute(product, vv::axis<2, 0, 1>));
  same(vv::einsum("aij,bjk->ki", a, b), vv::sum(vv::transpose(product, vv::axis<1>, vv::axis<2>), vv::axis<0>));
  same(vv::einsum("aij,bjk", a, b), vv::reshape(product, vv::shape<2, 1, 1, 2>));
  same(vv::grad([&](tensor const& v) { return vv::sum(vv::einsum("aij,bjk->aik", v, b)); })(a),
       vv::expand(vv::reshape(vv::sum(b, vv::axis<2>), vv::shape<1, 1, 3>), vv::shape<2, 1, 3>));
  tensor const i = vv::to(a[0], vv::dtype::int64);
  same(vv::einsum("ij,kj->ik", i, i), vv::full({1, 1}, std::int64_t(14)));
  index_t const n = 100;
  tensor const ones = vv::ones({n, n});
  vv::memory_tracker_mode memory; // the products alone would be n * n * n floats
  {
    vv::mode_guard const on{memory};
    CHECK(vv::einsum("ij,jk->ik", ones, ones)[3].to_vector<float>()[7] == n);
  }
  CHECK(memory.max_memory_allocated() < 10 * n * n * sizeof(float));
  CHECK_THROWS_AS(vv::einsum("ij,kj->ik", ones, a[0]), vv::shape_error);
}
TEST_CASE("composites: sums of halves are those of floats, rounded once", "[composite]") {
  tensor const h = vv::to(tensor({300.0, 300.0}), vv::dtype::float16), g = vv::mul(h, tensor({1.0f, -1.0f}));
  tensor const other = vv::to(g, vv::dtype::float16);
  tensor const y = vv::einsum("i,i->", h, other);
  CHECK(y.dtype() == vv::dtype::float16);
  CHECK(vv::to(y, vv::dtype::float64).item() == 0); // 90000 is infinite
  tensor const mean = vv::avg_pool1d(vv::to(vv::full({1, 1, 4}, 60000.0), vv::dtype::float16), vv::dims{2});
  CHECK(mean.dtype() == vv::dtype::float16);
  CHECK(vv::to(mean, vv::dtype::float64).to_vector() == std::vector<double>{60000, 60000});
}

TEST_CASE("composites: norm by PyTorch's name", "[composite]") {
  tensor const a({{3.0, 0.0}, {4.0, 5.0}});
  CHECK(vv::norm(a[1], 1).item() == 9);
  CHECK(vv::norm(a, 2, vv::axis<0>).to_vector() == std::vector<double>{5, 5});
  CHECK(vv::norm(vv::array<double, 2>{3, 4}) == 5);
}
