// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("transforms of tensors: wrong uses are named and leave the thread quiet", "[transform][TR-S01]") {
  tensor const x = from({1, 2, 3}, {3}), i = from({1, 2, 3}, {3}, dtype::int64), s = from({1}, {});
  auto square = [](auto const& v) { return v * v; };
  auto total = [](auto const& v) { return vv::sum(v * v); };
  CHECK_THROWS_AS(vv::grad(square)(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::grad(square)(x), ContainsText("must return a scalar") && ContainsText("[3]"));
  CHECK_THROWS_AS(vv::grad(total)(i), vv::dtype_error);
  CHECK_THROWS_AS(vv::grad([](auto const& v) { return vv::argmax(v); })(x), vv::error); // an integer has no gradient
  CHECK_THROWS_AS(vv::jvp(square, std::tuple(x), std::tuple(s)), vv::shape_error);
  CHECK_THROWS_AS(vv::jvp(square, std::tuple(i), std::tuple(i)), vv::dtype_error);
  CHECK_THROWS_AS(vv::vmap(square)(s), vv::index_error);
  CHECK_THROWS_AS((vv::vmap(square, vv::in_dims<1>)(x)), vv::index_error);
  CHECK_THROWS_AS((vv::vmap(square, vv::out_dims<2>)(x)), vv::index_error);
  CHECK_THROWS_AS((vv::vmap([](auto const& a, auto const& b) { return a + b; })(x, from({1, 2}, {2}))),
                  vv::transform_error);
  CHECK_THROWS_AS((vv::vmap(square, vv::out_dims<vv::none>)(x)), vv::transform_error);
  auto [y, pull] = vv::vjp(square, x);
  CHECK_THROWS_AS(pull(s), vv::shape_error);
  CHECK(difference(std::get<0>(pull(vv::ones_like(y))), from({2, 4, 6}, {3})) == ""); // still usable
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("grad of tensors: argnums, trees, auxiliary numbers, unrelated arguments", "[transform][grad]") {
  tensor const a = from({1, 2}, {2}), b = from({3, 4}, {2});
  auto f = [](auto const& x, auto const& y) { return vv::sum(x * x * y); };
  CHECK(elements(vv::grad<1>(f)(a, b)) == std::vector<double>{1, 4});
  auto const [ga, gb] = vv::grad(f, vv::argnums<0, 1>)(a, b);
  CHECK(elements(ga) == std::vector<double>{6, 16});
  CHECK(elements(gb) == std::vector<double>{1, 4});
  auto const [v, g] = vv::value_and_grad(f)(a, b);
  CHECK(v.item<double>() == 19);
  CHECK_FALSE(v.is_wrapped());
  CHECK(elements(g) == std::vector<double>{6, 16});
  auto of_tree = [](auto const& t) { return vv::sum(std::get<0>(t) * t[1]); };
  auto const gt = vv::grad(of_tree)(std::array{a, b});
  CHECK(elements(gt[0]) == std::vector<double>{3, 4});
  CHECK(elements(vv::grad([](auto const&, auto const& y) { return vv::sum(y); }, vv::argnums<0>)(a, b)) ==
        std::vector<double>{0, 0});
  // plain numbers promote, float stays float
  tensor const h = from({1, 2}, {2}, dtype::float32);
  CHECK(vv::grad([](auto const& x) { return vv::sum(0.5 * x * x); })(h).dtype() == dtype::float32);
  CHECK(vv::grad(f)(h, b).dtype() == dtype::float32); // the gradient has the dtype of its argument
}

TEST_CASE("jacobians of tensors agree with each other and with static ones", "[transform][jacobian]") {
  auto f = [](auto const& x) { return vv::sin(x) * vv::sum(x * x); };
  constexpr vv::array<double, 3> s{0.5, -1, 2};
  tensor const x = from({0.5, -1, 2}, {3});
  tensor const forward = vv::jacfwd(f)(x), reverse = vv::jacrev(f)(x);
  CHECK(difference(forward, reverse, 1e-14) == "");
  auto const fixed = vv::jacfwd(f)(s);
  for (index_t k = 0; k < 9; ++k) CHECK(element(forward, k) == Approx(fixed.data[k]));
  tensor const h = vv::hessian([](auto const& v) { return vv::sum(v * v * v); })(x);
  CHECK(difference(h, from({3, 0, 0, 0, -6, 0, 0, 0, 12}, {3, 3}), 1e-14) == "");
  auto g = [](auto const& m, auto const& v) { return vv::matmul(m, v); };
  tensor const m = from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(vv::jacrev(g)(m, x).sizes() == dims{2, 2, 3});
  CHECK(difference(vv::jacrev(g)(m, x), vv::jacfwd(g)(m, x)) == "");
}

TEST_CASE("jacobians: by several arguments, and by another than the first", "[transform][jacobian]") {
  constexpr auto f = [](auto const& x, auto const& y, auto c) { return x * y * y * c; };
  constexpr varve::array<double, 2> x{1, 2}, y{3, 4};
  constexpr auto by_both = varve::jacfwd<0, 1>(f)(x, y, 2.0);
  static_assert(varve::equal(std::get<0>(by_both), varve::array<double, 2, 2>{18, 0, 0, 32}));
  static_assert(varve::equal(std::get<1>(by_both), varve::array<double, 2, 2>{12, 0, 0, 32}));
  static_assert(varve::equal(varve::jacrev<-1>(f)(x, y, 2.0), varve::array<double, 2>{9, 32}));
  auto const [of_x, of_y] = varve::jacrev<0, 1>(f)(varve::tensor(x), varve::tensor(y), 2.0);
  CHECK(of_x.to_vector() == std::vector<double>{18, 0, 0, 32});
  CHECK(of_y.to_vector() == std::vector<double>{12, 0, 0, 32});
  CHECK(varve::jacfwd<1>(f)(varve::tensor(x), varve::tensor(y), 2.0).to_vector() == of_y.to_vector());
  // the other arguments carry derivatives of a transform around it
  constexpr auto around = [](auto t) {
    constexpr varve::array<double, 2> k{1, 2};
    return varve::sum(varve::jacfwd<1>([](auto const& p, auto const& q) { return p * q * q; })(k, k * t));
  };
  static_assert(varve::grad(around)(3.0) == 10.0);
  static_assert(varve::grad([](auto t) {
                  constexpr varve::array<double, 2> k{1, 2};
                  return varve::sum(varve::jacrev<0>([](auto const& p, auto const& q) { return p * q * q; })(k, k * t));
                })(3.0) == 30.0);
}
