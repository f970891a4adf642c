// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/implicit.hpp>
#include <varve/varve.hpp>

#include <cmath>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::array;
using vv::tensor;

namespace {
/// Kepler's equation E = M + e sin E, whose derivative by M is 1 / (1 - e cos E).
constexpr auto step = [](auto const& anomaly, auto const& mean, auto const& e) { return mean + e * vv::sin(anomaly); };
template <class S>
void finds(S const& solver) {
  auto const f = implicit::fixed_point(step, solver);
  double const y = f(1.0, 1.0, 0.5);
  CHECK(y - 0.5 * std::sin(y) == Approx(1));
  CHECK(vv::grad<1>(f)(1.0, 1.0, 0.5) == Approx(1 / (1 - 0.5 * std::cos(y))));
  CHECK(vv::grad<2>(f)(1.0, 1.0, 0.5) == Approx(std::sin(y) / (1 - 0.5 * std::cos(y))));
  auto const slope = [&](auto m) { return vv::grad<1>(f)(1.0, m, 0.5); };
  CHECK(vv::grad(slope)(1.0) == Approx(-0.5 * std::sin(y) / std::pow(1 - 0.5 * std::cos(y), 3)));
  tensor const m{0.1, 1.0, 3.0};
  tensor const start = m, e = tensor(0.5);
  tensor const all = f(start, m, e);
  CHECK(vv::allclose(all - vv::sin(all) * 0.5, m));
  tensor const lanes = vv::vmap(f, vv::in_dims<0, 0, vv::none>)(start, m, e);
  CHECK(vv::allclose(lanes, all));
  CHECK(vv::allclose(vv::vmap(vv::grad<1>(f), vv::in_dims<0, 0, vv::none>)(start, m, e),
                     vv::reciprocal(1.0 - vv::cos(all) * 0.5)));
}
} // namespace

TEST_CASE("fixed_point: simple_iteration", "[implicit]") { finds(implicit::simple_iteration{}); }
TEST_CASE("fixed_point: anderson", "[implicit]") {
  finds(implicit::anderson{});
  finds(implicit::anderson<1>{});
}
TEST_CASE("fixed_point: newton", "[implicit]") { finds(implicit::newton{}); }

TEST_CASE("fixed_point: anderson needs fewer steps, and solves what a simple iteration does not", "[implicit]") {
  tensor const b{1.0, 2.0, -1.0};
  auto const g = [](tensor const& x, tensor const& v) { return vv::cos(x) * -1.5 + v; }; // no contraction
  CHECK_THROWS_AS(implicit::fixed_point(g)(vv::zeros_like(b), b), implicit::convergence_error);
  tensor const x = implicit::fixed_point(g, implicit::anderson<3>{})(vv::zeros_like(b), b);
  CHECK(vv::allclose(g(x, b), x));
}

TEST_CASE("fixed_point: trees and closures", "[implicit]") {
  auto const f = [](auto const& a) {
    auto const [x, y] = implicit::fixed_point(vv::closure(
        [](auto const& v, auto const& c) {
          auto const& [p, q] = v;
          return std::tuple(0.25 * q + c, 0.25 * p);
        },
        a))(std::tuple(a * 0.0, a * 0.0));
    return x + y; // x = a / (1 - 1/16), y = x / 4
  };
  CHECK(vv::grad(f)(2.0) == Approx(1.25 * 16 / 15));
  CHECK(vv::grad(f)(tensor(2.0)).item() == Approx(1.25 * 16 / 15));
}
