// SPDX-License-Identifier: BSL-1.0
// Results written to a tensor that is there (`out=`).
#include "op_test.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace op_test;

TEST_CASE("out: the result is written to a tensor that is there", "[op]") {
  tensor const a = from({1, 2, 3}, {3}), b = from({2}, {1});
  tensor const y = from({0, 0, 0}, {3}), view = vv::select(vv::zeros({2, 3}, dtype::float64), 0, 1);
  CHECK(vv::out(y)(vv::mul, a, b).is(y));
  CHECK(elements(y) == std::vector<double>{2, 4, 6});
  CHECK(y.version() == 1);
  CHECK(elements(vv::out(view)(vv::add, a, 1)) == std::vector<double>{2, 3, 4});
  CHECK(elements(vv::out(y)(vv::mul, y, y)) == std::vector<double>{4, 16, 36}); // what is read may be what is written
  tensor const empty = vv::empty({0}, dtype::float32);
  CHECK(vv::out(empty)(vv::sum, vv::reshape(a, dims{3, 1}), dims{1}).sizes() == dims{3});
  CHECK(empty.dtype() == dtype::float32);
  tensor const apart = vv::empty({0}, dtype::float64);
  vv::add_(vv::out(apart)(vv::reshape, a, dims{3, 1}), 1); // memory of its own, though the operator gives a view
  CHECK(elements(a) == std::vector<double>{1, 2, 3});
  CHECK_THROWS_WITH(vv::out(vv::zeros({2}, dtype::float64))(vv::mul, a, b),
                    ContainsText("mul") && ContainsText("[2]") && ContainsText("[3]"));
  CHECK_THROWS_AS(vv::out(vv::zeros({3}, dtype::int64))(vv::mul, a, b), vv::dtype_error);
}

TEST_CASE("out: not where gradients are recorded", "[op][autograd][AG-S15]") { // AG-17
  tensor const a = from({1, 2}, {2}), b = from({3, 4}, {2});
  tensor const x = vv::clone(a).requires_grad_(), y = from({0, 0}, {2});
  CHECK_THROWS_AS(vv::out(y)(vv::mul, x, b), vv::autograd_error);
  CHECK_THROWS_WITH(vv::out(x)(vv::mul, a, b), ContainsText("out="));
  CHECK(elements(y) == std::vector<double>{0, 0});
  CHECK(elements(x) == std::vector<double>{1, 2});
  vv::no_grad const off;
  CHECK(elements(vv::out(y)(vv::mul, x, b)) == std::vector<double>{3, 8});
  CHECK(elements(vv::out(x)(vv::mul, a, b)) == std::vector<double>{3, 8});
}

TEST_CASE("out= of what reduces, contracts or gathers has the very dtype", "[op][out]") {
  tensor const x = of({1.0, 2.0, 3.0}), three = vv::zeros({3}, dtype::float32), one = vv::zeros({}, dtype::float32);
  auto const refused = ContainsText("cannot be written into float32");
  CHECK_THROWS_WITH(vv::out(three)(vv::gather, x, 0, vv::zeros({3}, dtype::int64)), refused);
  CHECK_THROWS_WITH(vv::out(one)(vv::mean, x), refused);
  CHECK_THROWS_WITH(vv::out(one)(vv::amax, x), refused);
  CHECK_THROWS_WITH(vv::out(vv::zeros({}, dtype::int32))(vv::argmax, x), ContainsText("argmax"));
  CHECK_THROWS_WITH(vv::out(three)(vv::softmax, x, vv::axis<0>), refused);
  CHECK_THROWS_WITH(
      vv::out(vv::zeros({1, 1}, dtype::float32))(vv::matmul, vv::reshape(x, dims{1, 3}), vv::reshape(x, dims{3, 1})),
      refused);
  CHECK(one.version() == 0);
  CHECK(three.version() == 0);
  CHECK(elements(vv::out(one)(vv::sum, x)) == doubles({6}));
  CHECK(elements(vv::out(three)(vv::add, x, x)) == doubles({2, 4, 6}));
  CHECK(vv::out(vv::zeros({}, dtype::float64))(vv::mean, x).item<double>() == 2);
}
