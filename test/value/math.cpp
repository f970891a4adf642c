// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace vv = varve;
using vv::array;
using vv::tensor;

namespace {
/// A text of C++'s mathematics, for numbers and values.
constexpr auto text = [](auto x, auto y) {
  using std::abs, std::cos, std::exp, std::log, std::max, std::min, std::pow, std::sin, std::sqrt, std::tanh;
  auto s = sin(x) * cos(y) + exp(x) / sqrt(y);
  s += pow(x, 2) - pow(y, 1.5) + log(abs(x * y));
  s -= tanh(min(x, y)) * max(x, 0.25);
  return s;
};
double by_hand(double x, double y) {
  return std::cos(x) * std::cos(y) + std::exp(x) / std::sqrt(y) + 2 * x + 1 / x -
         (x < y ? (1 - std::tanh(x) * std::tanh(x)) * std::max(x, 0.25) : 0) -
         std::tanh(std::min(x, y)) * (x > 0.25 ? 1 : 0);
}
} // namespace

TEST_CASE("using std::sin: one text for numbers, values of transforms, traces and tensors", "[value][math]") {
  for (auto [x, y] : {std::pair(0.5, 2.0), std::pair(0.1, 0.7), std::pair(1.5, 0.3)}) {
    double const d = by_hand(x, y);
    CHECK(vv::grad(text)(x, y) == Approx(d).epsilon(1e-12));
    CHECK(vv::jvp(text, std::tuple(x, y), std::tuple(1.0, 0.0)).second == Approx(d).epsilon(1e-12));
    CHECK(vv::fuse(vv::grad(text))(x, y) == Approx(d).epsilon(1e-9));
    CHECK(vv::grad(text)(tensor(array<double>{x}), tensor(array<double>{y})).item() == Approx(d).epsilon(1e-12));
    CHECK(vv::vmap(vv::grad(text), vv::in_dims<0, vv::none>)(array<double, 2>{x, x}, y)[1] == Approx(d).epsilon(1e-12));
    double const e = 1e-6;
    CHECK(vv::grad(vv::grad(text))(x, y) == Approx((by_hand(x + e, y) - by_hand(x - e, y)) / (2 * e)).epsilon(1e-6));
  }
  CHECK(text(0.5, 2.0) == Approx(text(tensor(array<double>{0.5}), tensor(array<double>{2.0})).item()));
  auto const more = [](auto x) {
    using std::asin, std::atan, std::atan2, std::cosh, std::erf, std::expm1, std::floor, std::hypot, std::log1p,
        std::tan;
    return asin(x) + atan(x) * tan(x) + atan2(x, 2.0) + cosh(x) + erf(x) * expm1(x) + floor(x) +
           hypot(x, 1.0) * log1p(x);
  };
  double const at = 0.4, e = 1e-6, slope = (more(at + e) - more(at - e)) / (2 * e);
  CHECK(vv::grad(more)(at) == Approx(slope).epsilon(1e-7));
  CHECK(vv::fuse(vv::grad(more))(at) == Approx(slope).epsilon(1e-7));
  CHECK(vv::grad(more)(tensor(array<double>{at})).item() == Approx(slope).epsilon(1e-7));
  auto const nan = [](auto x) {
    using std::isnan;
    return isnan(x);
  };
  CHECK(nan(tensor({1.0, NAN}))[1].item<bool>());
}

TEST_CASE("a number is a constant of the type of a value, as Ceres and Eigen write", "[value][math]") {
  auto const f = [](auto x) {
    using T = decltype(x);
    T s = 0;
    for (int k = 1; k < 4; ++k) s += T(k) * x * x;
    if (s < 0.0) s = 1;
    return s * T{0.5};
  };
  CHECK(f(2.0) == 12);
  CHECK(vv::grad(f)(2.0) == 12);
  CHECK(vv::grad(vv::grad(f))(2.0) == 6);
  CHECK(vv::jvp(f, std::tuple(2.0), std::tuple(1.0)).second == 12);
  auto const g = [](auto x) {
    using T = decltype(x);
    T s = 0;
    s += T(3) * x;
    return s * x;
  };
  CHECK(vv::fuse(g)(2.0) == 12);
  CHECK(vv::fuse(vv::grad(g))(2.0) == 12);
  CHECK(vv::vmap(g)(array<double, 2>{1, 2})[1] == 12);
  CHECK(vv::vmap(vv::grad(g))(array<double, 2>{1, 2})[1] == 12);
}

TEST_CASE("std::vector, std::array and algorithms of values under grad", "[value][math]") {
  auto const f = [](auto x) {
    std::vector<decltype(x)> powers(4, x);
    std::partial_sum(powers.begin(), powers.end(), powers.begin(), std::multiplies<>{}); // x, x^2, x^3, x^4
    std::array<decltype(x), 2> const ends{powers.front(), powers.back()};
    return std::accumulate(powers.begin(), powers.end(), 0 * x) + ends[0] * ends[1];
  };
  double const x = 1.3;
  CHECK(vv::grad(f)(x) == Approx(1 + 2 * x + 3 * x * x + 4 * x * x * x + 5 * x * x * x * x));
  auto const sorted = [](auto v) {
    auto e = vv::unbind(v);
    std::sort(e.begin(), e.end());
    auto const [low, high] = std::minmax_element(e.begin(), e.end());
    return *high * 10 - *low + std::inner_product(e.begin(), e.end(), e.begin(), 0 * e[0]) +
           (e[0] < e[1] ? e[1] : e[0]);
  };
  auto const g = vv::grad(sorted)(array<double, 3>{3, 1, 2});
  CHECK(vv::equal(g, array<double, 3>{6 + 10, 2 - 1, 4 + 1}));
}
