// SPDX-License-Identifier: BSL-1.0
// Constants of a trace as arguments and results of transforms.
#include "constants_test.hpp"

#include <varve_test.hpp>

using namespace constants_test;

TEST_CASE("constants: a plain cotangent, and arguments of grad and jvp that are none of the trace",
          "[fuse][constant]") {
  CHECK(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(1.0)); })(3.0) ==
        Approx(6));
  same(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(one_two)); })(
           array<double, 2>{3, 4}),
       std::vector{6.0, 16.0});
  // float values, a double cotangent
  CHECK(vv::fuse([](auto p) { return std::get<0>(vv::vjp([](auto x) { return x * x; }, p).second(0.5)); })(3.0f) ==
        Approx(3));
  auto const [gp, ga] = vv::fuse(
      [](auto p) { return vv::grad<0, 1>([](auto x, auto y) { return vv::sum(x * y * y); })(p, one_two); })(3.0);
  CHECK(gp == Approx(5));
  same(ga, std::vector{6.0, 12.0});
  auto const declared = vv::fuse(
      [](auto p) { return vv::grad(vv::closure([](auto x, auto q) { return vv::sum(x * x * q); }, p))(one_two); })(3.0);
  same(declared, std::vector{6.0, 12.0});
  auto const number =
      vv::fuse([](auto p) { return vv::grad<1>([](auto x, auto y) { return x * y * y; })(p, 2.0); })(3.0);
  CHECK(number == Approx(12));
  auto const [y, dy] =
      vv::fuse([](auto p) { return vv::jvp([](auto x) { return x * x; }, std::tuple(p), std::tuple(1.0)); })(3.0);
  CHECK(y == Approx(9));
  CHECK(dy == Approx(6));
  auto const along = vv::fuse([](auto p) {
    return vv::jvp([&](auto x) { return x * x * p; }, std::tuple(one_two), std::tuple(one_two)).second;
  })(3.0);
  same(along, std::vector{6.0, 24.0});
  same(vv::fuse([](auto p) { return vv::jacrev([](auto x) { return square * x; })(p); })(one_two),
       std::vector{1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0});
  same(vv::fuse([](auto p) { return vv::jacfwd([](auto x) { return vv::matmul(square, x); })(p); })(one_two),
       std::vector{1.0, 2.0, 3.0, 4.0});
  same(vv::fuse([](auto p) {
         return vv::grad(vv::closure(
             [](auto x, auto q) {
               return vv::sum(vv::vmap([](auto e, auto s) { return e * e * s; }, vv::in_dims<0, vv::none>)(x, q));
             },
             p))(one_two);
       })(3.0),
       std::vector{6.0, 12.0});
}

TEST_CASE("constants: transforms of transforms, modes and custom functions", "[fuse][constant]") {
  auto const per_sample = vv::fuse([](auto w) {
    return vv::vmap(vv::grad<0, 1>(miss), vv::in_dims<vv::none, 0, 0>)(w, square, array<double, 2>{1, -1});
  })(one_two);
  same(std::get<0>(per_sample), std::vector{8.0, 16.0, 72.0, 96.0});
  same(std::get<1>(per_sample), std::vector{8.0, 16.0, 24.0, 48.0});
  same(vv::fuse([](auto p) {
         return vv::vmap(
             [](auto a, auto b) {
               return vv::vmap([](auto q, auto w) { return q * w; }, vv::in_dims<vv::none, 0>)(a, b);
             },
             vv::in_dims<0, vv::none>)(one_two, p);
       })(one_two),
       std::vector{1.0, 2.0, 2.0, 4.0});
  same(vv::fuse([](auto p) { return vv::hessian([](auto x) { return vv::sum(x * x * x * one_two); })(p); })(one_two),
       std::vector{6.0, 0.0, 0.0, 24.0});
  auto const counted = vv::fuse([](auto p) {
    counting mode;
    return vv::with(mode, [&](auto e) { return e * p; }, one_two);
  })(3.0);
  same(counted, std::vector{3.0, 6.0});
  same(vv::fuse([](auto p) { return vv::grad([](auto x) { return vv::sum(scaled::apply(x, one_two)); })(p); })(
           array<double, 2>{3, 4}),
       std::vector{1.0, 2.0});
}
