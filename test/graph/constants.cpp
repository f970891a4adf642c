// SPDX-License-Identifier: BSL-1.0
// Static values beside values of a trace: constants of the graph, whatever transform they meet in.
#include "constants_test.hpp"

#include <varve_test.hpp>

using namespace constants_test;

TEST_CASE("constants: a number is stacked onto a traced value", "[fuse][constant]") {
  auto const g = vv::fuse([](auto p) {
    return vv::grad([](auto x) { return vv::sum(x * x); })(vv::stack(std::tuple{p, 1.0}, vv::axis<0>));
  })(3.0);
  same(g, std::vector{6.0, 2.0});
  auto const c =
      vv::fuse([](auto p) { return vv::cat(std::tuple{one_two, p, one_two * 2.0}, vv::axis<0>); })(array<double, 1>{5});
  same(c, std::vector{1.0, 2.0, 5.0, 2.0, 4.0});
  auto const both = vv::fuse([](auto p) {
    return vv::vmap([](auto e) { return vv::stack(std::tuple{e, 1.0, vv::sum(one_two)}, vv::axis<0>); })(p);
  })(one_two);
  same(both, std::vector{1.0, 1.0, 3.0, 2.0, 1.0, 3.0});
}

TEST_CASE("constants: vmap over an array, beside a traced value", "[fuse][constant]") {
  array<double, 3> const p{3, 4, 5};
  auto const r = vv::fuse([](auto q) {
    return vv::vmap([](auto e, auto v) { return e * v; }, vv::in_dims<0, vv::none>)(array<double, 2>{1, 2}, q);
  })(p);
  same(r, std::vector{3.0, 4.0, 5.0, 6.0, 8.0, 10.0});
  auto const captured =
      vv::fuse([](auto q) { return vv::vmap([&](auto e) { return vv::sum(e * q + vv::exp(e)); })(one_two); })(p);
  same(captured, std::vector{12 + 3 * std::exp(1.0), 24 + 3 * std::exp(2.0)});
  auto const matrix = vv::fuse([](auto q) {
    return vv::vmap([](auto row, auto v) { return vv::dot(row, v); }, vv::in_dims<0, vv::none>)(square, q);
  })(one_two);
  same(matrix, std::vector{5.0, 11.0});
}

TEST_CASE("constants: arrays in every operator", "[fuse][constant]") {
  array<float, 2, 2> const x{1, 2, 3, 4};
  same(vv::fuse([](auto v) { return vv::matmul(v, array<float, 2, 2>{1, 2, 3, 4}); })(x),
       std::vector{7.0, 10.0, 15.0, 22.0});
  same(vv::fuse([](auto v) { return vv::matmul(array<float, 2>{1, 2}, v); })(x), std::vector{7.0, 10.0});
  same(vv::fuse([](auto v) { return vv::where(array<bool, 2>{true, false}, v, array<float, 2, 1>{-1, -2}); })(x),
       std::vector{1.0, -1.0, 3.0, -2.0});
  same(vv::fuse([](auto v) { return vv::gather(v, vv::axis<1>, array<std::int64_t, 2, 1>{1, 0}); })(x),
       std::vector{2.0, 3.0});
  same(vv::fuse(vv::grad([](auto v) { return vv::sum(v * array<float, 2>{5, 7}); }))(x),
       std::vector{5.0, 7.0, 5.0, 7.0});
  same(vv::fuse(vv::vmap([](auto v) { return v + array<float, 2>{5, 7}; }))(x), std::vector{6.0, 9.0, 8.0, 11.0});
  same(std::get<1>(vv::fuse([](auto v) { return std::pair(v, array<double, 3>{3, 1, 2}); })(x)),
       std::vector{3.0, 1.0, 2.0});
  CHECK(vv::fuse([](auto v) { return v + array<std::int64_t, 2>{std::int64_t(1) << 53, 3}; })(
            array<std::int64_t, 1>{0})[0] == std::int64_t(1) << 53);
  CHECK(std::signbit(vv::fuse([](auto v) { return v * array<double, 2>{0.0, -0.0}; })(1.0)[1]));
}

TEST_CASE("constants: arange stays a count", "[fuse][constant]") {
  constexpr auto f = [](auto x) { return x + vv::arange<double, 100000>; };
  constexpr auto g = vv::trace(f, vv::spec<double>);
  STATIC_REQUIRE(g.count(vv::arange_op) == 1);
  STATIC_REQUIRE(g.sizes.constants == 0);
  auto const y = std::make_unique<array<double, 100000>>();
  vv::fuse(f).into (*y)(0.5);
  CHECK((*y)[99999] == 99999.5);
}

TEST_CASE("constants: as many elements as one likes", "[fuse][constant]") {
  static constexpr auto squares = [] {
    array<double, 700> r{};
    for (index_t k = 0; k < 700; ++k) r.data[k] = static_cast<double>(k * k);
    return r;
  }();
  constexpr auto f = [](auto x) { return vv::sum(vv::tanh(x * squares)); };
  double expected = 0, derivative = 0;
  for (double s : squares)
    expected += std::tanh(1e-5 * s), derivative += s * (1 - std::tanh(1e-5 * s) * std::tanh(1e-5 * s));
  CHECK(vv::fuse(f)(1e-5) == Approx(expected));
  CHECK(vv::fuse(vv::grad(f))(1e-5) == Approx(derivative));
}

TEST_CASE("constants: inside of cond", "[fuse][constant][cond]") {
  constexpr auto f = [](auto p) {
    return vv::cond(
        p > 0.0, [](auto x, auto c) { return vv::sum(x * c * array<double, 2>{3, 5}); },
        [](auto x, auto c) { return vv::sum(c) - x; }, p, one_two);
  };
  CHECK(vv::fuse(f)(2.0) == Approx(26));
  CHECK(vv::fuse(f)(-2.0) == Approx(5));
  CHECK(vv::fuse(vv::grad(f))(2.0) == Approx(13));
  CHECK(vv::fuse([](auto p) {
          return vv::vmap(
              [](auto e, auto q) {
                return vv::cond(q > 0.0, [](auto a) { return a * 2.0; }, [](auto a) { return -a; }, e);
              },
              vv::in_dims<0, vv::none>)(one_two, p);
        })(2.0)[1] == Approx(4));
}

TEST_CASE("constants: a graph with array constants runs on tensors", "[graph][constant]") {
  constexpr auto g = vv::trace(
      [](auto x) {
        return x * array<float, 3>{1, -2, 4} +
               vv::where(array<bool, 3>{true, false, true}, x, array<float, 3>{5, 6, 7});
      },
      vv::spec<float, 2, 3>);
  vv::graph const h = g.thaw();
  vv::tensor const x{{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}};
  vv::boxed_args const y = vv::interpret(h, vv::boxed_args(x));
  vv::tensor const c{{1.0f, -2.0f, 4.0f}}, d{{5.0f, 6.0f, 7.0f}}, p{{true, false, true}};
  vv::tensor const expected = x * c + vv::where(p, x, d);
  for (int k = 0; k < 6; ++k) CHECK(y[0].data<float>()[k] == expected.data<float>()[k]);
  vv::tensor const i =
      vv::interpret(vv::trace([](auto v) { return v + array<std::int64_t, 2>{7, 3}; }, vv::spec<std::int64_t>).thaw(),
                    vv::boxed_args(vv::full({}, 1)))[0];
  CHECK(i.dtype() == vv::dtype::int64);
  CHECK(i.data<std::int64_t>()[0] == 8);
}

TEST_CASE("constants: walked through, carried and put out by scan", "[fuse][constant][scan]") {
  constexpr auto f = [](auto p) {
    return vv::sum(vv::scan([](auto c, auto x) { return std::pair(c * x, vv::none); }, p, one_two).first);
  };
  CHECK(vv::fuse(f)(3.0) == Approx(6));
  CHECK(vv::fuse(vv::grad(f))(3.0) == Approx(2));
  // the polynomial (p x + 1) x + 1 at x = 2, in the first element
  same(vv::fuse(horner)(array<double, 2>{3, 5}), std::vector{15.0, 20.0});
  same(vv::fuse(vv::grad([](auto p) { return vv::sum(horner(p)); }))(array<double, 2>{3, 5}), std::vector{4.0, 4.0});
  CHECK(vv::fuse([](auto p) {
          return vv::sum(vv::scan([](auto c, auto x) { return std::pair(c + x, x); }, 0.0, p).first);
        })(array<double, 3>{1, 2, 3}) == Approx(6));
}
