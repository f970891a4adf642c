// SPDX-License-Identifier: BSL-1.0
// Comparisons and clamps with numbers that the dtype does not hold.
#include "op_test.hpp"

#include <varve/by_name/all.hpp>

#include <varve_test.hpp>

using namespace op_test;

TEST_CASE("integers are compared with numbers of any size", "[op][integer]") {
  dtype const truth = dtype::bool_, byte = dtype::uint8;
  check_bytes([](auto const& x) { return x < 300; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return 300 > x; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x >= -1; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x == 384; }, truth, doubles({0, 0, 0})); // 128 + 256
  check_bytes([](auto const& x) { return -128 != x; }, truth, doubles({1, 1, 1}));
  check_bytes([](auto const& x) { return x <= 128; }, truth, doubles({1, 1, 0}));
  check_bytes([](auto const& x) { return vv::clamp(x, -1000, 1000); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 100, vv::none); }, byte, doubles({100, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 400); }, byte, doubles({255, 255, 255}));
  check_bytes([](auto const& x) { return vv::maximum(x, -5); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return vv::maximum(300, x); }, byte, doubles({255, 255, 255}));
  check_bytes([](auto const& x) { return vv::minimum(x, 300); }, byte, doubles({0, 128, 255}));
  check_bytes([](auto const& x) { return x + 300; }, byte, doubles({44, 172, 43})); // arithmetic wraps

  tensor const w = of<std::int32_t>({-5, 7});
  CHECK(elements(w < 3000000000) == doubles({1, 1}));
  CHECK(elements(w < 3000000000u) == doubles({1, 1}));
  CHECK(elements(w >= -3000000000) == doubles({1, 1}));
  CHECK(elements(vv::clamp(w, -3000000000, 3000000000)) == doubles({-5, 7}));
  CHECK_THROWS_WITH(w < ~0ull, ContainsText("lt: the number is greater than int64 holds"));
  STATIC_REQUIRE(vv::equal(vv::array<int, 2>{-5, 7} < 3000000000, vv::array<bool, 2>{true, true}));
  STATIC_REQUIRE(vv::equal(vv::array<std::uint8_t, 2>{0, 44} == 300, vv::array<bool, 2>{false, false}));
  STATIC_REQUIRE(vv::equal(vv::clamp(vv::array<std::uint8_t, 2>{0, 44}, -1, 300), vv::array<std::uint8_t, 2>{0, 44}));
}

TEST_CASE("integers of rank 0 are limited by and compared with numbers of any size, by name too", "[op][integer]") {
  for (dims const& sizes : {dims{}, dims{2}}) {
    tensor const x = vv::zeros(sizes, dtype::int8);
    auto const called = [&](char const* name, auto... n) {
      return elements(vv::ops::call(name, {x, std::int64_t{n}...})[0].template as<tensor>()).at(0);
    };
    CHECK(called("clamp", 3000000000, 128) == 127);
    CHECK(called("clamp", -3000000000, -129) == -128);
    CHECK(called("clamp", 300) == 127);
    CHECK(called("lt", 256) == 1);
    CHECK(called("eq", 256) == 0);
    CHECK(elements(vv::clamp(x, 300, 400)).at(0) == 127);
  }
}

TEST_CASE("clamp takes bounds that are NaN, or of another category than the other", "[op][clamp]") {
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 400.5); }, dtype::float32, doubles({300, 300, 300}));
  check_bytes([](auto const& x) { return vv::clamp(x, -5, 200.5); }, dtype::float32, doubles({0, 128, 200.5}));
  check_bytes([](auto const& x) { return vv::clamp(x, 2.5, 300); }, dtype::float32, doubles({2.5, 128, 255}));
  check_bytes([](auto const& x) { return vv::clamp(x, 300, 200.5); }, dtype::float32, doubles({200.5, 200.5, 200.5}));
  check_bytes([](auto const& x) { return vv::clamp(x, -inf, inf); }, dtype::float32, doubles({0, 128, 255}));

  tensor const x = of({-1.0, NaN, 3.0}), bounds = of({NaN, 0.0, 1.0}), none_of_these = of({NaN, NaN, NaN});
  auto const check = [](auto const& f, tensor const& v, tensor const& right) {
    CHECK(difference(f(v), right) == "");
    CHECK(difference(vv::vmap(f)(v), right) == "");
    CHECK(difference(vv::compile(f)(v), right) == "");
    CHECK(difference(vv::fuse<vv::spec<double, 3>>(f)(v), right) == "");
  };
  check([](auto const& v) { return vv::clamp(v, NaN, 5.0); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, 0.0, NaN); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, NaN, vv::none); }, x, none_of_these);
  check([](auto const& v) { return vv::clamp(v, v * 0.0, vv::none); }, x, of({-0.0, NaN, 3.0}));
  CHECK(difference(vv::clamp(x, bounds, vv::none), of({NaN, NaN, 3.0})) == "");
  CHECK(difference(vv::clamp(x, vv::none, bounds), of({NaN, NaN, 1.0})) == "");
  CHECK(difference(vv::vmap([](tensor const& a, tensor const& b) { return vv::clamp(a, b, 2.0); })(x, bounds),
                   of({NaN, NaN, 2.0})) == "");
  tensor const y = of({0.5, 0.5, 0.5});
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::clamp(v, bounds, vv::none)); })(y)) ==
        doubles({0, 1, 0}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::clamp(v, NaN, 1.0)); })(y)) == doubles({0, 0, 0}));
  constexpr auto s = vv::clamp(vv::array<double, 2>{1, 2}, vv::array<double, 2>{NaN, 3}, vv::none);
  STATIC_REQUIRE(s.data[0] != s.data[0]);
  STATIC_REQUIRE(s.data[1] == 3);
  STATIC_REQUIRE(vv::clamp(1.0, NaN, 2.0) != vv::clamp(1.0, NaN, 2.0));
}

TEST_CASE("integers are compared with values of rank 0 of a wider dtype", "[op][integer]") {
  tensor const x = of<std::uint8_t>({0, 128, 255}), n = vv::full({}, 300), many = vv::full({3}, 300);
  CHECK(elements(x < n) == doubles({1, 1, 1}));
  CHECK(elements(vv::maximum(x, n)) == doubles({255, 255, 255}));
  CHECK(elements(vv::vmap([&](tensor const& a) { return x < a; })(many)) == std::vector<double>(9, 1));
  auto const less = [](auto const& a, auto const& b) { return a < b; };
  auto const greatest = [](auto const& a, auto const& b) { return vv::maximum(a, b); };
  CHECK(elements(vv::compile(less)(x, n)) == doubles({1, 1, 1}));
  vv::array<std::uint8_t, 3> const s{0, 128, 255};
  CHECK(vv::equal(vv::fuse(less)(s, 300), vv::array<bool, 3>{true, true, true}));
  CHECK(vv::equal(vv::fuse(greatest)(s, -5), s));
}
