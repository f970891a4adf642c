// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/autograd/gradcheck.hpp>
#include <varve/implicit.hpp>
#include <varve/optim.hpp>
#include <varve/varve.hpp>

#include <cmath>

namespace vv = varve;
namespace implicit = varve::implicit;
namespace optim = varve::optim;
using vv::array;
using vv::tensor;

namespace {
constexpr auto rosenbrock = [](auto const& p, auto const& a) {
  auto const& [x, y] = p;
  return (a - x) * (a - x) + 100.0 * (y - x * x) * (y - x * x); // the minimum is (a, a^2)
};
constexpr auto ridge_residuals = [](auto const& w, auto const& x, auto const& y, auto const& strength) {
  return std::tuple(vv::matmul(x, w) - y, w * vv::sqrt(strength));
};
} // namespace

TEST_CASE("minimize: derivatives of a minimum by the data of the loss", "[implicit]") {
  auto const f = implicit::minimize(rosenbrock);
  auto const of = [&](auto const& a) {
    auto const [x, y] = f(std::tuple(a * 0.0 + 0.5, a * 0.0 + 0.5), a);
    return x * y; // a^3
  };
  CHECK(of(1.5) == Approx(3.375));
  CHECK(vv::grad(of)(1.5) == Approx(6.75));
  CHECK(vv::grad(vv::grad(of))(1.5) == Approx(9));
  tensor const a(1.5);
  CHECK(of(a).item() == Approx(3.375));
  CHECK(vv::grad(of)(a).item() == Approx(6.75));
  CHECK(vv::grad(vv::grad(of))(a).item() == Approx(9));
  CHECK(vv::jvp(of, std::tuple(a), std::tuple(a)).second.item() == Approx(10.125));
  tensor const leaf = tensor(1.5).requires_grad_();
  of(leaf).backward();
  CHECK(leaf.grad().item() == Approx(6.75));
}

TEST_CASE("minimize: lanes of tensors, one after another", "[implicit]") {
  auto const f = implicit::minimize(rosenbrock);
  auto const of = [&](tensor const& a) {
    auto const [x, y] = f(std::tuple(tensor(0.5), tensor(0.5)), a);
    return x * y;
  };
  tensor const a{0.5, 1.0, 1.5};
  CHECK(vv::allclose(vv::vmap(of)(a), a * a * a));
  CHECK(vv::allclose(vv::vmap(vv::grad(of))(a), a * a * 3.0));
  CHECK(vv::allclose(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(of)(v)); })(a), a * a * 3.0));
}

TEST_CASE("minimize: in the compiler", "[implicit]") {
  constexpr auto f = implicit::minimize([](auto x, auto a) { return (x - a) * (x - a) * (x - a) * (x - a) + x * x; });
  constexpr double x = f(0.0, 1.0); // 2 (x - 1)^3 + x = 0
  STATIC_REQUIRE((x > 0.4102454 && x < 0.4102456));
  CHECK(vv::grad<1>(f)(0.0, 1.0) == Approx(12 * std::pow(1 - x, 2) / (12 * std::pow(1 - x, 2) + 2)));
}

TEST_CASE("least_squares: ridge regression against its closed form", "[implicit]") {
  tensor const x = vv::reshape(vv::sin(vv::arange(15, vv::dtype::float64) * 1.3), vv::dims{5, 3}),
               y = vv::cos(vv::arange(5, vv::dtype::float64));
  auto const closed = [&](tensor const& s, tensor const& data) {
    tensor const t = vv::transpose(data);
    return vv::solve(vv::matmul(t, data) + vv::eye(3, vv::dtype::float64) * s, vv::matmul(t, y));
  };
  auto const loss = [](auto const& w) { return vv::sum(vv::exp(w)); };
  auto const both = [&](auto const& method, auto const& linear) {
    auto const fit = implicit::least_squares(ridge_residuals, method, linear);
    auto const found = [&](tensor const& s, tensor const& data) {
      return fit(vv::zeros_like(y[vv::slice(0, 3)]), data, y, s);
    };
    tensor const s(0.3);
    CHECK(vv::allclose(found(s, x), closed(s, x)));
    auto const [gs, gx] = vv::grad<0, 1>([&](tensor const& a, tensor const& b) { return loss(found(a, b)); })(s, x);
    auto const [es, ex] = vv::grad<0, 1>([&](tensor const& a, tensor const& b) { return loss(closed(a, b)); })(s, x);
    CHECK(gs.item() == Approx(es.item()));
    CHECK(vv::allclose(gx, ex, 1e-6, 1e-9));
    auto const second = [&](auto const& of) {
      return vv::grad(vv::grad([&](tensor const& a) { return loss(of(a, x)); }))(s).item();
    };
    CHECK(second(found) == Approx(second(closed)));
  };
  both(optim::levenberg_marquardt{}, implicit::dense{});
  both(optim::gauss_newton{}, implicit::cg{.tolerance = 1e-12});
}

TEST_CASE("minimize: what is refused", "[implicit]") {
  // flat along y: there is a minimum, but the second derivatives are singular
  auto const flat = implicit::minimize([](auto const& p, auto const& a) {
    auto const& [x, y] = p;
    return (x - a) * (x - a) + y * 0.0;
  });
  CHECK(std::get<0>(flat(std::tuple(0.0, 0.0), 1.0)) == Approx(1));
  CHECK_THROWS_AS(vv::grad([&](auto a) { return std::get<0>(flat(std::tuple(0.0, 0.0), a)); })(1.0), vv::value_error);
  // unbounded
  auto const falls = implicit::minimize([](auto const& x, auto const& a) { return x * a; });
  CHECK_THROWS_AS(falls(tensor(0.0), tensor(1.0)), implicit::convergence_error);
  optim::levenberg_marquardt robust;
  robust.loss = optim::huber(1.0);
  CHECK_THROWS_AS(implicit::least_squares(ridge_residuals, robust), vv::value_error);
}
