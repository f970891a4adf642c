// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/autograd/gradcheck.hpp>
#include <varve/implicit.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <stdexcept>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::array;
using vv::tensor;

namespace {
constexpr auto square_root = implicit::root([](auto x, auto a) { return x * x - a; });
template <class T>
struct point {
  T x, y;
};
/// x^2 + y^2 = a, y = b x
constexpr auto on_a_circle = [](auto const& p, auto const& a, auto const& b) {
  return std::tuple(p.x * p.x + p.y * p.y - a, p.y - b * p.x);
};
tensor number(double v) { return tensor::from_number(v); }
} // namespace

TEST_CASE("root: of a number, in the compiler, with three derivatives", "[implicit]") {
  constexpr double y = square_root(1.0, 2.0);
  STATIC_REQUIRE((y > 1.41421356237309 && y < 1.41421356237310));
  constexpr double d = vv::grad<1>(square_root)(1.0, 2.0);
  CHECK(d == Approx(0.5 / std::sqrt(2.0)));
  auto const along = [](auto a) { return square_root(1.0, a); };
  CHECK(vv::grad(along)(2.0) == Approx(0.5 * std::pow(2.0, -0.5)));
  CHECK(vv::grad(vv::grad(along))(2.0) == Approx(-0.25 * std::pow(2.0, -1.5)));
  CHECK(vv::grad(vv::grad(vv::grad(along)))(2.0) == Approx(0.375 * std::pow(2.0, -2.5)));
  auto const [value, tangent] = vv::jvp(along, std::tuple(2.0), std::tuple(3.0));
  CHECK(value == Approx(std::sqrt(2.0)));
  CHECK(tangent == Approx(1.5 / std::sqrt(2.0)));
  CHECK(vv::jvp(vv::grad(along), std::tuple(2.0), std::tuple(1.0)).second == Approx(-0.25 * std::pow(2.0, -1.5)));
  CHECK(vv::grad(square_root)(1.0, 2.0) == 0); // the start has no derivative
}

TEST_CASE("root: of a struct of numbers", "[implicit]") {
  auto const f = implicit::root(on_a_circle);
  auto const of = [&](auto a, auto b) {
    auto const p = f(point<double>{1, 1}, a, b);
    return p.x * p.y;
  };
  // x = sqrt(a / (1 + b^2)), so that x y = a b / (1 + b^2)
  CHECK(of(5.0, 2.0) == Approx(2));
  auto const [da, db] = vv::grad<0, 1>(of)(5.0, 2.0);
  CHECK(da == Approx(0.4));
  CHECK(db == Approx(5 * (1 - 4) / 25.0));
  auto const second = vv::grad<1>([&](auto a, auto b) { return vv::grad(of)(a, b); })(5.0, 2.0);
  CHECK(second == Approx((1 - 4) / 25.0));
}

TEST_CASE("root: a solver of the user's", "[implicit]") {
  auto const halley = [](auto const& f, auto const& x0) { // any code; it is not differentiated
    auto x = x0;
    for (int k = 0; k < 60; ++k) x = x - f(x) * 0.2;
    return x;
  };
  auto const f = implicit::root([](auto const& x, auto const& a) { return x * x - a; }, halley);
  CHECK(f(1.0, 2.0) == Approx(std::sqrt(2.0)));
  CHECK(vv::grad<1>(f)(1.0, 2.0) == Approx(0.5 / std::sqrt(2.0)));
  tensor const a{2.0, 3.0};
  CHECK(vv::allclose(vv::grad([&](tensor const& v) { return vv::sum(f(vv::ones_like(v), v)); })(a),
                     vv::pow(a, -0.5) * 0.5));
}

TEST_CASE("root: bisection", "[implicit]") {
  auto const f =
      implicit::root([](auto const& x, auto const& a) { return vv::exp(x) - a; }, implicit::bisection{-10, 10});
  CHECK(f(0.0, 5.0) == Approx(std::log(5.0)));
  CHECK(vv::grad<1>(f)(0.0, 5.0) == Approx(0.2));
  CHECK(f(0.0, 1.0) == Approx(0).margin(1e-14));
  tensor const a{0.5, 5.0};
  CHECK(vv::allclose(vv::vmap(vv::grad([&](tensor const& v) { return f(number(0), v); }))(a), vv::reciprocal(a)));
  CHECK_THROWS_AS(f(0.0, 1e9), implicit::convergence_error); // no change of sign
  CHECK_THROWS_AS(f(tensor{0.0, 0.0}, tensor{1.0, 2.0}), vv::value_error);
  auto const pole = implicit::root([](auto const& x, auto const& a) { return a / x; }, implicit::bisection{-1, 2});
  CHECK_THROWS_AS(pole(0.0, 1.0), implicit::convergence_error); // the sign changes, but there is no root
  auto const nowhere =
      implicit::root([](auto const& x, auto const& a) { return vv::sqrt(x) - a; }, implicit::bisection{-1, 2});
  CHECK_THROWS_AS(nowhere(0.0, 1.0), implicit::convergence_error); // NaN at an end
}

TEST_CASE("root: bisection refuses intervals that it cannot halve", "[implicit]") {
  auto const line = [](auto const& x, auto const& a) { return x - a; };
  double const inf = std::numeric_limits<double>::infinity();
  for (auto const [low, high] : {std::pair(4.0, 1.0), {0.0, inf}, {-inf, 4.0}, {-inf, inf}, {0.0, inf - inf}}) {
    auto const f = implicit::root(line, implicit::bisection{low, high});
    CHECK_THROWS_WITH(f(1.0, 2.0), ContainsText("implicit::bisection: the interval must be finite"));
    CHECK_THROWS_AS(vv::vmap([&](tensor const& a) { return f(number(1), a); })(tensor{1.0, 2.0}), vv::value_error);
  }
  auto const wide = implicit::root(line, implicit::bisection{0, 1e39});
  CHECK_THROWS_AS(wide(1.0f, 2.0f), vv::value_error); // no number of float32
  auto const most = implicit::root(line, implicit::bisection{-1e308, 1.7e308, 90});
  for (double const root : {2.0, 0.0, -1e-300, 1.5e308, 1e30, -1e-40})
    CHECK(std::abs(most(1.0, root) - root) <= std::abs(root) * 1e-15 + 1e-307);
  CHECK(vv::vmap([&](tensor const& a) { return most(number(1), a); })(tensor{1e-200, -3.0})[0].item() ==
        Approx(1e-200));
  CHECK(implicit::root(line, implicit::bisection{1e308, 1.7e308})(1.0, 1.5e308) == Approx(1.5e308));
  CHECK(implicit::root(line, implicit::bisection{0, 3e38})(1.0f, 2e-30f) == Approx(2e-30f).epsilon(1e-6));
}
