// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("tensor: construction, access, and what is refused", "[value][tensor]") {
  tensor const t({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  CHECK(t.dtype() == dtype::float32);
  CHECK(t.dim() == 2);
  CHECK(t.size(-1) == 2);
  CHECK(t.data<float>()[3] == 4);
  CHECK(t.is_contiguous());
  CHECK_THROWS_AS(t.data<double>(), vv::dtype_error);
  CHECK_THROWS_AS(t.item<float>(), vv::value_error);
  CHECK_THROWS_AS(t.size(2), vv::index_error);
  CHECK_THROWS_AS((tensor({1, 2, 3}, {2, 2})), vv::shape_error);
  CHECK(tensor::from_number(2.5).is_number());
  CHECK(tensor({7}, {}).item<double>() == 7);
  CHECK_FALSE(tensor().defined());
}

TEST_CASE("tensor: handles share, memory is freed once", "[value][tensor]") {
  for (index_t n : {1, 8, 9, 1000}) { // data within the block and outside
    tensor a = vv::full({n}, 3.0);
    tensor b = a, c = vv::reshape(a, dims{n, 1});
    CHECK(b.is(a));
    CHECK(c.shares_storage(a));
    a = tensor();
    CHECK(element(c, n - 1) == 3);
    b = c;
    c = vv::ones({2});
    CHECK(b.sizes() == dims{n, 1});
    b = std::move(c);
    CHECK(element(b, 1) == 1);
    tensor& self = b;
    b = self;
    CHECK(element(b, 1) == 1);
  }
  tensor v = vv::ones({3});
  for (int k = 0; k < 1000; ++k)
    v = vv::slice(vv::unsqueeze(v, 0), 0, 0, 1), v = vv::squeeze(v, 0); // long chains of views
  CHECK(elements(v) == std::vector<double>{1, 1, 1});
}

TEST_CASE("tensor: a long chain of operators under grad is released without recursion", "[value][tensor]") {
  auto f = [](auto const& x) {
    auto y = x;
    for (int k = 0; k < 20000; ++k) y = y * 1.0001;
    return y;
  };
  CHECK(vv::grad(f)(vv::ones({}, dtype::float64)).item<double>() == Approx(std::pow(1.0001, 20000)));
}

TEST_CASE("tensor: of one number, of rank 0 or a vector of one", "[tensor]") {
  varve::tensor const a(0.5), b(3), c(true), d({2.5f});
  CHECK((a.dim() == 0 && a.dtype() == varve::dtype::float64 && a.item() == 0.5 && !a.is_number()));
  CHECK((b.dim() == 0 && b.dtype() == varve::dtype::int32 && c.dtype() == varve::dtype::bool_));
  CHECK((d.sizes() == varve::dims{1} && d.dtype() == varve::dtype::float32));
  static_assert(!std::is_convertible_v<double, varve::tensor>); // a plain number stays one
}

TEST_CASE("tensor: braces make a vector, of one number as of two", "[tensor]") {
  varve::tensor const braced{1.5}, listed({1.5}), nested{{1.5}}, assigned = {1.5}, two{1.5, 2.5};
  for (varve::tensor const& t : {braced, listed, nested, assigned}) {
    CHECK(t.sizes() == varve::dims{1});
    CHECK(t.dtype() == varve::dtype::float64);
    CHECK(t.item() == 1.5);
  }
  CHECK(two.sizes() == varve::dims{2});
  CHECK(varve::tensor{true}.dtype() == varve::dtype::bool_);
  CHECK(varve::tensor{7}.sizes() == varve::dims{1});
  CHECK(varve::tensor{1.5f}.dtype() == varve::dtype::float32);
  CHECK((varve::tensor{1.5, 2}.sizes() == varve::dims{2})); // numbers of two types
  CHECK_FALSE(varve::tensor{}.defined());
  CHECK(varve::tensor{braced}.is(braced)); // a copy, no list
  varve::tensor t;
  t = {2.0, 3.0};
  CHECK(t.sizes() == varve::dims{2});
  t = {2.0};
  CHECK(t.sizes() == varve::dims{1});
  CHECK(varve::tensor(1.5).dim() == 0);
}

TEST_CASE("item: the message has the shape", "[tensor][exception]") {
  CHECK_THROWS_WITH(varve::ones({2, 3}).item(), ContainsText("exactly one element, not shape [2, 3]"));
  CHECK_THROWS_WITH(varve::ones({0}).item(), ContainsText("exactly one element, not shape [0]"));
  CHECK(varve::ones({1, 1}).item() == 1);
}
