// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/op/all.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// Product of matrices [m, k] and [k, n] by the definition.
tensor product(tensor const& a, tensor const& b) {
  index_t const m = a.size(0), k = a.size(1), n = b.size(1);
  tensor c = blank({m, n}, a.dtype());
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      double s = 0;
      for (index_t z = 0; z < k; ++z) s += element(a, i * k + z) * element(b, z * n + j);
      set(c, i * n + j, s);
    }
  return c;
}
} // namespace

TEST_CASE("matmul: sizes around the blocks of the kernel, in any layout", "[op][matmul]") {
  std::uint64_t seed = 1;
  for (auto t : {dtype::int32, dtype::int64, dtype::float32, dtype::float64})
    for (index_t m : {0, 1, 2, 13, 33})
      for (index_t k : {0, 1, 7, 40})
        for (index_t n : {1, 5, 32, 65}) {
          numbers draw(++seed);
          tensor const a = uniform({m, k}, draw, -3, 3, t, static_cast<memory>(seed % 3)),
                       b = uniform({k, n}, draw, -3, 3, t, static_cast<memory>(seed / 3 % 3));
          INFO(vv::name(t) << " " << m << "x" << k << "x" << n);
          CHECK(difference(vv::matmul(a, b), product(a, b), t == dtype::float32 ? 1e-4 : 1e-12) == "");
        }
}

TEST_CASE("matmul: vectors and broadcast batches", "[op][matmul]") {
  numbers draw(5);
  tensor const v = uniform({3}, draw), a = uniform({2, 3}, draw), b = uniform({4, 1, 2, 3}, draw),
               c = uniform({5, 3, 2}, draw);
  CHECK(difference(vv::matmul(v, v), vv::dot(v, v), 1e-14) == "");
  CHECK(difference(vv::matmul(a, v), vv::reshape(product(a, vv::reshape(v, dims{3, 1})), dims{2}), 1e-14) == "");
  CHECK(difference(vv::matmul(v, vv::transpose(a)), vv::matmul(a, v), 1e-14) == "");
  tensor const y = vv::matmul(b, c);
  REQUIRE(y.sizes() == dims{4, 5, 2, 2});
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 5; ++j)
      CHECK(difference(slice_of(slice_of(y, 0, i), 0, j), product(slice_of(slice_of(b, 0, i), 0, 0), slice_of(c, 0, j)),
                       1e-14) == "");
  CHECK(vv::matmul(c, v.numel() == 3 ? uniform({2}, draw) : v).sizes() == dims{5, 3});
}

TEST_CASE("matmul: what does not fit is refused", "[op][matmul]") {
  numbers draw(5);
  tensor const a = uniform({2, 3}, draw), v = uniform({3}, draw), s = uniform({}, draw),
               f = uniform({3, 2}, draw, 0, 1, dtype::float32);
  CHECK_THROWS_AS(vv::matmul(a, a), vv::shape_error);
  CHECK_THROWS_AS(vv::matmul(s, a), vv::shape_error);
  CHECK_THROWS_AS(vv::matmul(a, s), vv::shape_error);
  CHECK_THROWS_AS(vv::matmul(a, f), vv::dtype_error);
  CHECK_THROWS_AS(vv::dot(a, a), vv::shape_error);
  CHECK_THROWS_AS(vv::matmul(uniform({2, 2, 3}, draw), uniform({3, 3, 1}, draw)), vv::shape_error);
  CHECK_THROWS_WITH(vv::matmul(a, a), ContainsText("[2, 3]"));
}
