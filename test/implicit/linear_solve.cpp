// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/autograd/gradcheck.hpp>
#include <varve/implicit.hpp>
#include <varve/varve.hpp>

#include <cmath>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::array;
using vv::tensor;

namespace {
/// A positive definite matrix, an unsymmetric one and a right side.
tensor positive() {
  tensor const r = vv::reshape(vv::sin(vv::arange(36, vv::dtype::float64) * 1.7), vv::dims{6, 6});
  return vv::matmul(r, vv::transpose(r)) + vv::eye(6, vv::dtype::float64) * 2.0;
}
tensor general() { return positive() + vv::reshape(vv::cos(vv::arange(36, vv::dtype::float64)), vv::dims{6, 6}) * 0.5; }
tensor right() { return vv::cos(vv::arange(6, vv::dtype::float64) * 2.3); }
constexpr auto product = [](auto const& v, auto const& a) { return vv::matmul(a, v); };

template <class S>
void solves(S const& solver, tensor const& a) {
  // cg takes the matrix to be symmetric, also where derivatives are taken
  constexpr bool symmetric = std::is_same_v<S, implicit::cg>;
  auto const used = [](tensor const& m) { return symmetric ? (m + vv::transpose(m)) * 0.5 : m * 1.0; };
  auto const f = [&](tensor const& m, tensor const& b) {
    return implicit::linear_solve(vv::closure(product, used(m)), b, solver);
  };
  auto const exact = [&](tensor const& m, tensor const& b) { return vv::solve(used(m), b); };
  tensor const b = right();
  CHECK(vv::allclose(f(a, b), exact(a, b), 1e-8, 1e-10));
  auto const loss = [](auto const& of) {
    return [&of](tensor const& m, tensor const& v) { return vv::sum(vv::sin(of(m, v))); };
  };
  auto const [ga, gb] = vv::grad<0, 1>(loss(f))(a, b);
  auto const [ea, eb] = vv::grad<0, 1>(loss(exact))(a, b);
  CHECK(vv::allclose(gb, eb, 1e-7, 1e-9));
  CHECK(vv::allclose(ga, ea, 1e-7, 1e-9));
  auto const second = [&](auto const& of) {
    return vv::grad<0, 1>(
        [&](tensor const& m, tensor const& v) { return vv::sum(vv::square(vv::grad<1>(loss(of))(m, v))); })(a, b);
  };
  CHECK(vv::allclose(std::get<0>(second(f)), std::get<0>(second(exact)), 1e-6, 1e-8));
  CHECK(vv::allclose(std::get<1>(second(f)), std::get<1>(second(exact)), 1e-6, 1e-8));
  auto const along = [&](auto const& of) { return vv::jvp(of, std::tuple(a, b), std::tuple(a * 0.1, b * 0.2)).second; };
  CHECK(vv::allclose(along(f), along(exact), 1e-7, 1e-9));
  // lanes that need different numbers of steps
  tensor const many = vv::stack(std::vector<tensor>{b, b * 0.0, b * 1e6});
  auto const of_b = [&](tensor const& v) { return f(a, v); };
  tensor const y = vv::vmap(of_b)(many);
  for (int k = 0; k < 3; ++k) CHECK(vv::allclose(y[k], of_b(many[k]), 1e-7, 1e-9));
  CHECK(vv::allclose(vv::vmap(vv::grad([&](tensor const& v) { return vv::sum(vv::sin(of_b(v))); }))(many)[0], eb, 1e-7,
                     1e-9));
}
} // namespace

TEST_CASE("linear_solve: cg", "[implicit]") { solves(implicit::cg{.tolerance = 1e-12}, positive()); }
TEST_CASE("linear_solve: bicgstab", "[implicit]") { solves(implicit::bicgstab{.tolerance = 1e-12}, general()); }
TEST_CASE("linear_solve: gmres", "[implicit]") {
  solves(implicit::gmres<6>{.tolerance = 1e-12}, general());
  solves(implicit::gmres<3>{.tolerance = 1e-12}, positive());
}
TEST_CASE("linear_solve: dense", "[implicit]") { solves(implicit::dense{}, general()); }

TEST_CASE("linear_solve: static values, in the compiler", "[implicit]") {
  constexpr array<double, 2, 2> a{4, 1, 1, 3};
  constexpr array<double, 2> b{1, 2};
  constexpr auto f = [](auto const& m, auto const& v) {
    return implicit::linear_solve(vv::closure(product, m), v, implicit::cg{.tolerance = 1e-12});
  };
  constexpr auto x = f(a, b);
  STATIC_REQUIRE((x.data[0] > 0.0909090 && x.data[0] < 0.0909091));
  auto const g = vv::grad([&](auto const& m) { return vv::sum(f(m, b)); })(a);
  auto const e = vv::grad([&](auto const& m) { return vv::sum(vv::solve(m, b)); })(a);
  CHECK(vv::allclose(g, e));
  auto const second = vv::grad([&](auto const& v) {
    return vv::sum(vv::square(vv::grad([&](auto const& w) { return vv::sum(vv::exp(f(a, w))); })(v)));
  })(b);
  auto const second_e = vv::grad([&](auto const& v) {
    return vv::sum(vv::square(vv::grad([&](auto const& w) { return vv::sum(vv::exp(vv::solve(a, w))); })(v)));
  })(b);
  CHECK(vv::allclose(second, second_e));
  auto const h = [](auto const& m, auto const& v) {
    return implicit::linear_solve(vv::closure(product, m), v, implicit::gmres<2>{.tolerance = 1e-12});
  };
  CHECK(vv::allclose(h(a, b), vv::solve(a, b)));
  auto const k = [](auto const& m, auto const& v) {
    return implicit::linear_solve(vv::closure(product, m), v, implicit::bicgstab{.tolerance = 1e-12});
  };
  CHECK(vv::allclose(vv::vmap(k, vv::in_dims<vv::none, 0>)(a, array<double, 3, 2>{1, 2, 0, 0, 300, 1}),
                     vv::vmap([](auto const& m, auto const& v) { return vv::solve(m, v); },
                              vv::in_dims<vv::none, 0>)(a, array<double, 3, 2>{1, 2, 0, 0, 300, 1})));
}

TEST_CASE("linear_solve: trees", "[implicit]") {
  auto const f = [](auto const& a, auto const& b) { // x + a y = b, y - x = 1
    auto const [x, y] = implicit::linear_solve(vv::closure(
                                                   [](auto const& v, auto const& c) {
                                                     auto const& [p, q] = v;
                                                     return std::tuple(p + c * q, q - p);
                                                   },
                                                   a),
                                               std::tuple(b, b * 0.0 + 1.0), implicit::gmres<2>{});
    return x * y;
  };
  // x = (b - a) / (1 + a), y = x + 1
  CHECK(f(2.0, 5.0) == Approx(2));
  CHECK(vv::grad(f)(2.0, 5.0) == Approx(-(6.0 / 9) * 3));
  CHECK(vv::grad(f)(tensor(2.0), tensor(5.0)).item() == Approx(-2));
}

TEST_CASE("linear_solve: right sides whose squares overflow or underflow", "[implicit]") {
  auto const twice = [](tensor const& v) { return v * 2.0; };
  auto const check = [&](auto const& solver) {
    for (double const size : {1e200, 1e-200, 1e-310, 0.0})
      CHECK(
          vv::allclose(implicit::linear_solve(twice, tensor{size, 2 * size}, solver), tensor{size / 2, size}, 1e-9, 0));
    for (float const size : {1e30f, 1e-30f})
      CHECK(
          vv::allclose(implicit::linear_solve(twice, tensor{size, 2 * size}, solver), tensor{size / 2, size}, 1e-5, 0));
    double const inf = std::numeric_limits<double>::infinity();
    for (double const bad : {inf, inf - inf})
      CHECK_THROWS_AS(implicit::linear_solve(twice, tensor{bad, 1.0}, solver), implicit::convergence_error);
  };
  check(implicit::cg{});
  check(implicit::bicgstab{});
  check(implicit::gmres<2>{});
}

TEST_CASE("linear_solve: failures", "[implicit]") {
  tensor const a = general() * tensor{1.0, -1.0, 1.0, 1.0, -1.0, 1.0}, b = right();
  CHECK_THROWS_AS(implicit::linear_solve(vv::closure(product, a), b, implicit::cg{}), implicit::convergence_error);
  tensor const singular = vv::zeros_like(a);
  CHECK_THROWS_AS(implicit::linear_solve(vv::closure(product, singular), b, implicit::bicgstab{}),
                  implicit::convergence_error);
  CHECK_THROWS_AS(implicit::linear_solve(vv::closure(product, singular), b, implicit::gmres<3>{}),
                  implicit::convergence_error);
  CHECK_THROWS_AS(implicit::linear_solve(vv::closure(product, singular), b), vv::value_error);
  tensor const leaf = a.clone().requires_grad_();
  CHECK_THROWS_AS(implicit::linear_solve([&](tensor const& v) { return vv::matmul(leaf, v); }, b), vv::value_error);
}
