// SPDX-License-Identifier: BSL-1.0
// What closures of branches capture, on static values and in fused programs.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor number(double v) { return from({v}, {}); }
/// Both branches capture: of a the one above 1, of a and b the other.
constexpr auto capturing_branches = [](auto const& x, auto const& a, auto const& b) {
  return vv::cond(x > 1.0, vv::closure([](auto const& v, auto const& c) { return v * c; }, a),
                  vv::closure([](auto const& v, auto const& c, auto const& d) { return c - v * d; }, a, b), x);
};
} // namespace

TEST_CASE("cond: what closures of its branches capture is differentiated, mapped and traced like operands",
          "[hop][cond][fuse]") {
  constexpr auto plain = vv::grad<0, 1, 2>(capturing_branches);
  constexpr auto fused = vv::fuse(plain);
  for (double const x : {2.0, 0.5}) {
    CHECK(fused(x, 0.5, 3.0) == plain(x, 0.5, 3.0));
    CHECK(plain(x, 0.5, 3.0) == (x > 1 ? std::tuple{0.5, x, 0.0} : std::tuple{-3.0, 1.0, -x}));
  }
  vv::array<double, 2> const xs{2, 0.5}, as{0.5, 4};
  auto const mapped = vv::fuse(vv::vmap(plain, vv::in_dims<0, 0, vv::none>))(xs, as, 3.0);
  CHECK(std::get<0>(mapped)[0] == 0.5);
  CHECK(std::get<0>(mapped)[1] == -3);
  CHECK(std::get<1>(mapped)[0] == 2);
  CHECK(std::get<2>(mapped)[1] == -0.5);
  constexpr auto tangent = [](auto const& x, auto const& a) {
    return vv::jvp([](auto const& u, auto const& v) { return capturing_branches(u, v, 3.0); }, std::tuple(x, a),
                   std::tuple(1.0, 10.0))
        .second;
  };
  CHECK(vv::fuse(tangent)(2.0, 0.5) == 20.5);
  CHECK(vv::fuse(tangent)(0.5, 0.5) == 7);
  CHECK(vv::fuse(vv::grad<1>(vv::grad<0>(capturing_branches)))(2.0, 0.5, 3.0) == 1);
}

TEST_CASE("cond: what one branch alone captures may be all that is differentiated or mapped", "[hop][cond][fuse]") {
  constexpr auto f = [](auto const& w, auto const& x) {
    return vv::cond(
        x > 0.0, vv::closure([](auto const& a, auto const& c) { return a * c * c; }, w),
        [](auto const& a) { return a * 2.0; }, x);
  };
  STATIC_REQUIRE(vv::grad(f)(3.0, 2.0) == 12);
  STATIC_REQUIRE(vv::grad(f)(3.0, -2.0) == 0);
  STATIC_REQUIRE(vv::grad(vv::grad(f))(3.0, 2.0) == 4);
  STATIC_REQUIRE(vv::jvp([f](auto const& w) { return f(w, 2.0); }, std::tuple(3.0), std::tuple(1.0)).second == 12);
  auto const mapped = vv::vmap(f, vv::in_dims<0, vv::none>)(vv::array<double, 2>{1, 2}, 3.0);
  CHECK(mapped[0] == 3);
  CHECK(mapped[1] == 12);
  for (double const x : {2.0, -2.0}) {
    CHECK(vv::fuse(vv::grad(f))(3.0, x) == vv::grad(f)(3.0, x));
    CHECK(vv::grad(f)(number(3), number(x)).item<double>() == vv::grad(f)(3.0, x));
  }
  constexpr auto two = [](auto const& w, auto const& b, auto const& x) {
    return vv::cond(x > 0.0, vv::closure([](auto const& a, auto const& c) { return a * c; }, w),
                    vv::closure([](auto const& a, auto const& c) { return a + c; }, b), x);
  };
  STATIC_REQUIRE(vv::grad(two)(3.0, 4.0, 2.0) == 2);
  STATIC_REQUIRE(vv::grad<1>(two)(3.0, 4.0, 2.0) == 0);
  STATIC_REQUIRE(vv::grad<1>(two)(3.0, 4.0, -2.0) == 1);
}

TEST_CASE("cond: closures of its branches may capture trees", "[hop][cond][fuse]") {
  constexpr auto f = [](auto const& w, auto const& b, auto const& x) {
    return vv::cond(
        x * w > 0.0,
        vv::closure([](auto const& a, auto const& p) { return a * std::get<0>(p) + std::get<1>(p); }, std::tuple(w, b)),
        [](auto const& a) { return a * 1.0; }, x);
  };
  STATIC_REQUIRE(vv::grad<0, 1>(f)(1.0, 2.0, 3.0) == std::tuple(3.0, 1.0));
  constexpr auto fused = vv::fuse(vv::grad<0, 1, 2>(f));
  CHECK(fused(1.0, 2.0, 3.0) == std::tuple(3.0, 1.0, 1.0));
  CHECK(fused(1.0, 2.0, -3.0) == std::tuple(0.0, 0.0, 1.0));
  auto const mapped =
      vv::fuse(vv::vmap(f, vv::in_dims<0, vv::none, 0>))(vv::array<double, 2>{1, 2}, 5.0, vv::array<double, 2>{3, -3});
  CHECK(mapped[0] == 8);
  CHECK(mapped[1] == -3);
}
