// SPDX-License-Identifier: BSL-1.0
// Indices of every rank and size.
#include "op_test.hpp"

#include <varve_test.hpp>

using namespace op_test;

TEST_CASE("gather and scatter_add take rank 0 as rank 1, in lanes too", "[op][gather]") {
  tensor const x = of({1.0, 2.0, 3.0}), six = vv::sum(x), zero = vv::full({}, 0, dtype::int64),
               zeros = vv::zeros({3}, dtype::int64);
  auto const f = [&](tensor const& v) { return vv::gather(v, 0, zero) * 2.0; };
  CHECK(elements(f(six)) == doubles({12}));
  CHECK(elements(vv::vmap(f)(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::vmap([](tensor const& a, tensor const& i) { return vv::gather(a, 0, i); })(x, zeros)) ==
        doubles({1, 2, 3}));
  CHECK(elements(vv::vmap([&](tensor const& i) { return vv::gather(six, 0, i); })(zeros)) == doubles({6, 6, 6}));
  CHECK(elements(vv::grad(f)(six)) == doubles({2}));
  CHECK(elements(vv::jacrev(f)(six)) == doubles({2}));
  CHECK(elements(vv::jacfwd(f)(six)) == doubles({2}));
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({2, 2, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) == doubles({2, 2, 2}));
  CHECK(elements(vv::hessian([&](tensor const& v) { return f(v) * f(v); })(six)) == doubles({8}));
  CHECK(elements(vv::compile([&](tensor const& v) { return vv::vmap(f)(v); })(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::vmap([&](tensor const& v) { return vv::scatter_add(v, 0, zero, v); })(x)) == doubles({2, 4, 6}));
  CHECK(elements(vv::gather(six, 0, vv::zeros({2}, dtype::int64))) == doubles({6, 6}));
  CHECK(elements(vv::gather(x, 0, vv::full({}, 2, dtype::int64))) == doubles({3}));
  CHECK_THROWS_AS(vv::gather(six, 0, vv::full({}, 1, dtype::int64)), vv::index_error);
}

TEST_CASE("an index without elements is asked for neither dtype nor rank", "[op][gather]") {
  tensor const x = of({1.0, 2.0, 3.0});
  for (dtype type : {dtype::float32, dtype::int32, dtype::bool_, dtype::int64}) {
    tensor const flat = vv::zeros({0}, type), wide = vv::zeros({2, 0}, type);
    auto const f = [&](tensor const& v) { return vv::gather(v, 0, wide); };
    CHECK(vv::gather(x, 0, flat).sizes() == dims{0});
    CHECK(f(x).sizes() == dims{2, 0});
    CHECK(f(x).dtype() == dtype::float64);
    CHECK(f(vv::sum(x)).sizes() == dims{2, 0});
    CHECK(vv::vmap(f)(vv::reshape(x, dims{1, 3})).sizes() == dims{1, 2, 0});
    CHECK(vv::compile(f)(x).sizes() == dims{2, 0});
    CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(x)) == doubles({0, 0, 0}));
    CHECK(elements(vv::scatter_add(x, 0, wide, wide)) == doubles({1, 2, 3}));
    CHECK_THROWS_AS(vv::gather(x, 3, flat), vv::index_error);
  }
  CHECK_THROWS_AS(vv::gather(x, 0, vv::zeros({1}, dtype::int32)), vv::dtype_error);
  CHECK_FALSE(vv::scatter_add(x, 0, vv::zeros({0}, dtype::int64), x).shares_storage(x));
}

TEST_CASE("a source greater than the index has gradients of its own shape", "[op][gather]") {
  tensor const source = vv::reshape(of({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), dims{2, 3}),
               index = vv::reshape(of<std::int64_t>({0, 1, 1, 0}), dims{2, 2}), none = source * 0.0,
               right = of({1.0, 5.0, 0.0, 4.0, 2.0, 0.0});
  auto const f = [&](tensor const& s) { return vv::scatter_add(none, 0, index, s); };
  auto const weighted = [&](tensor const& s) { return vv::sum(f(s) * source); };
  CHECK(elements(f(source)) == elements(right));
  CHECK(elements(vv::compile(f)(source)) == elements(right));
  CHECK(elements(vv::vmap(f)(vv::reshape(source, dims{1, 2, 3}))) == elements(right));
  CHECK(elements(f(vv::permute(vv::contiguous(vv::permute(source, dims{1, 0})), dims{1, 0}))) == elements(right));
  CHECK(vv::grad(weighted)(source).sizes() == dims{2, 3});
  CHECK(elements(vv::grad(weighted)(source)) == doubles({1, 5, 0, 4, 2, 0}));
  CHECK(elements(vv::compile(vv::grad(weighted))(source)) == doubles({1, 5, 0, 4, 2, 0}));
  CHECK(elements(vv::vmap(vv::grad(weighted))(vv::reshape(source, dims{1, 2, 3}))) == doubles({1, 5, 0, 4, 2, 0}));
  tensor const x = of({1.0, 2.0, 3.0});
  CHECK(elements(vv::grad([](tensor const& v) {
          return vv::scatter_add(vv::sum(v), 0, vv::zeros({2}, dtype::int64), v);
        })(x)) == doubles({2, 2, 1}));
  auto const of_arrays = [](auto const& s) {
    return vv::sum(vv::scatter_add(s, vv::axis<0>, vv::array<std::int64_t, 2>{0, 2}, s * 2.0) * s);
  };
  constexpr vv::array<double, 3> y{1, 2, 3};
  auto const slope = vv::grad(of_arrays)(y);
  for (int k = 0; k < 3; ++k)
    CHECK(slope.data[k] == elements(vv::grad(of_arrays)(of({1.0, 2.0, 3.0})))[static_cast<std::size_t>(k)]);
  CHECK(slope.data[0] == 6); // y0^2 + 2 y0 y0 + y1^2 + y2^2 + 2 y1 y2
}
