// SPDX-License-Identifier: BSL-1.0
// The dtype of composites of several operands is that of all of them together (`torch.result_type`), in every host.
#include "../sample/value.hpp"

#include <varve/composite/all.hpp>
#include <varve/fake/fake_mode.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/nn/activation.hpp>
#include <varve/op/operators.hpp>
#include <varve/special/bitwise.hpp>
#include <varve/special/integers.hpp>
#include <varve/special/rounding.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/vmap.hpp>

#include <cmath>
#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor vec(std::vector<double> const& v, dtype t) { return from(v, dims{static_cast<index_t>(v.size())}, t); }
tensor num(double v, dtype t) { return from({v}, dims{}, t); }
using function = std::function<tensor(values const&)>;
struct row {
  char const* name;
  function f;
  values operands;
  tensor right;
};
constexpr dtype i8 = dtype::int8, i32 = dtype::int32, i64 = dtype::int64, f16 = dtype::float16, f32 = dtype::float32,
                f64 = dtype::float64, b = dtype::bool_, u8 = dtype::uint8;
tensor const i = vec({1, 2}, i64), z = num(5, f64), truth = vec({1, 0}, b);
#define OF(...) #__VA_ARGS__, [](values const& x) -> tensor { return __VA_ARGS__; }
std::vector<row> const rows{
    {OF(vv::addcmul(x[0], x[1], x[2], 0.5)), {i, i, i}, i},
    {OF(vv::addcmul(x[0], x[1], x[2], 2.5)), {i, i, i}, vec({3, 10}, i64)},
    {OF(vv::addcmul(x[0], x[1], x[2], 0.5)), {z, i, i}, vec({5.5, 7}, f64)},
    {OF(vv::addcmul(x[0], x[1], x[2])), {vec({1, 2}, f32), num(2, f64), i}, vec({3, 6}, f32)},
    {OF(vv::addcmul(x[0], x[1], x[2], 2)), {vec({1, 2}, i8), vec({1, 2}, i8), num(3, i64)}, vec({7, 14}, i8)},
    {OF(vv::addcdiv(x[0], x[1], x[2], 0.5)), {vec({1, 2}, f32), num(2, f64), i}, vec({2, 2.5}, f32)},
    {OF(vv::addcdiv(x[0], x[1], x[2])), {i, num(2, f64), num(4, f32)}, vec({1.5, 2.5}, f64)},
    {OF(vv::clamp(x[0], x[1], x[2])), {i, num(1.5, f64), vec({3, 3}, f32)}, vec({1.5, 2}, f32)},
    {OF(vv::clamp(x[0], x[1], x[2])), {vec({1, 9}, f16), num(2, f64), num(3, f32)}, vec({2, 3}, f16)},
    {OF(vv::lerp(x[0], x[1], 0.5)), {num(1, f32), num(2, f32)}, num(1.5, f32)},
    {OF(vv::lerp(x[0], x[1], 0.5)), {vec({1}, f16), vec({2}, f16)}, vec({1.5}, f16)},
    {OF(vv::hardtanh(x[0], -1.5, 1.9)), {vec({-3, 0, 3}, i64)}, vec({-1, 0, 1}, i64)},
    {OF(vv::hardtanh(x[0], 0.5, 2.5)), {vec({0, 1, 9}, u8)}, vec({0, 1, 2}, u8)},
    {OF(vv::hardtanh(x[0], -0.5, 0.5)), {vec({-3, 0.25, 3}, f32)}, vec({-0.5, 0.25, 0.5}, f32)},
    {OF(vv::hardtanh(x[0], 2, 2)), {vec({-3, 3}, f32)}, vec({2, 2}, f32)},
    {OF(vv::threshold(x[0], 1.5, -2.5)), {vec({0, 1, 2}, i64)}, vec({-2, -2, 2}, i64)},
    {OF(vv::hypot(x[0], x[1])), {truth, vec({0, 4}, f32)}, vec({1, 4}, f32)},
    {OF(vv::hypot(x[0], x[1])), {vec({3, 0}, i32), num(4, f64)}, vec({5, 4}, f64)},
    {OF(vv::remainder(x[0], x[1])), {truth, vec({2, 2}, i32)}, vec({1, 0}, i32)},
    {OF(vv::remainder(x[0], 2)), {truth}, vec({1, 0}, i64)},
    {OF(vv::fmod(x[0], 0.75)), {truth}, vec({0.25, 0}, f32)},
    {OF(vv::trunc_divide(x[0], x[1])), {truth, vec({-1, 2}, i64)}, vec({-1, 0}, i64)},
    {OF(vv::trunc_divide(x[0], 2)), {vec({-3, 3}, i32)}, vec({-1, 1}, i32)},
    {OF(vv::floor_divide(x[0], x[1])), {i, vec({1, 1}, b)}, i},
    {OF(vv::gcd(x[0], x[1])), {truth, vec({2, 3}, i64)}, vec({1, 3}, i64)},
    {OF(vv::nextafter(x[0], x[1])), {vec({0, 1}, b), vec({0, 1}, f64)}, vec({0, 1}, f64)},
    {OF(vv::where(x[0], x[1], 7)), {vec({2, 0}, u8), i}, vec({1, 7}, i64)},
    {OF(x[0] & x[1]), {truth, vec({1, 1}, b)}, truth},
    {OF(x[0] | x[1]), {truth, vec({0, 1}, b)}, vec({1, 1}, b)},
    {OF(x[0] ^ true), {truth}, vec({0, 1}, b)},
    {OF(~x[0]), {truth}, vec({0, 1}, b)},
    {OF(~x[0]), {i}, vec({-2, -3}, i64)},
    {OF(x[0] & 3), {vec({5, 6}, i64)}, vec({1, 2}, i64)},
    {OF(x[0].logical_or(x[1])), {truth, vec({0, 2}, f64)}, vec({1, 1}, b)},
    {OF(x[0].logical_and(x[1]).logical_xor(x[0])), {truth, vec({0, 2}, f64)}, vec({1, 0}, b)},
    {OF(x[0].logical_not()), {truth}, vec({0, 1}, b)},
    {OF(x[0].bitwise_or(x[1])), {truth, vec({0, 1}, b)}, vec({1, 1}, b)},
    {OF(x[0].bitwise_and(6)), {vec({5, 6}, i64)}, vec({4, 6}, i64)},
    {OF(x[0].bitwise_xor(x[1]).bitwise_not()), {truth, vec({1, 1}, b)}, truth},
};
void same(row const& r, tensor const& y) { CHECK(difference(y, r.right, 1e-6) == ""); }
} // namespace

TEST_CASE("dtypes of several operands together", "[composite]") {
  for (row const& r : rows) {
    INFO(r.name);
    same(r, r.f(r.operands));
  }
}
TEST_CASE("dtypes of several operands together: fakes", "[composite][fake]") {
  for (row const& r : rows) {
    INFO(r.name);
    vv::fake_mode mode;
    values fakes;
    for (tensor const& t : r.operands) fakes.push_back(mode.from_tensor(t));
    vv::fake_mode_guard const on(mode);
    tensor const y = r.f(fakes);
    CHECK(mode.owns(y));
    CHECK(y.dtype() == r.right.dtype());
    CHECK(y.sizes() == r.right.sizes());
  }
}
TEST_CASE("dtypes of several operands together: traces and lanes", "[composite]") {
  for (row const& r : rows) {
    INFO(r.name);
    vv::graph const g = vv::make_fx(r.f)(r.operands);
    vv::boxed_args in;
    for (tensor const& t : r.operands) in.push_back(t);
    same(r, vv::interpret(g, in)[0]);
    values two;
    for (tensor const& t : r.operands) two.push_back(vv::stack(values{t, t}, dims{0}));
    tensor const y = vv::vmap(r.f)(two);
    same(r, tensor(vv::select(y, dims{0}, dims{1})));
  }
}
TEST_CASE("dtypes: what is refused", "[composite]") {
  struct refused {
    char const* name;
    function f;
    values operands;
    char const* text;
  };
  for (refused const& r : std::vector<refused>{
           {OF(vv::where(x[0], x[1], x[1])), {vec({1, 0}, f64), i}, "the condition is of float64"},
           {OF(vv::where(x[0], x[1], x[1])), {vec({1, 0}, f64), vec({1, 0}, f64)}, "the condition is of float64"},
           {OF(vv::where(x[0], x[1], 0)), {i, vec({1, 0}, f16)}, "the condition is of int64"},
           {OF(vv::hardtanh(x[0], 3, 2)), {i}, "min must not be greater than max"},
           {OF(vv::hardtanh(x[0])), {vec({1}, u8)}, "uint8"},
           {OF(vv::hardtanh(x[0])), {truth}, "bool"},
           {OF(vv::roll(x[0], 1, 0)), {z}, "rank 0 has no axis"},
           {OF(vv::remainder(x[0], x[0])), {truth}, "bool"},
           {OF(vv::floor_divide(x[0], true)), {truth}, "bool"},
           {OF(vv::gcd(x[0], x[0])), {truth}, "bool"},
           {OF(vv::hypot(x[0], x[1])), {truth, i}, "bool"},
           {OF(vv::addcmul(x[0], x[0], x[0])), {truth}, "bool"},
           {OF(vv::matmul(x[0], x[1])), {vec({1}, f64), vec({1}, f32)}, "of two dtypes, float64 and float32"},
           {OF(vv::lerp(x[0], x[1], 0.5)), {vec({1}, f64), vec({1}, f32)}, "of two dtypes, float64 and float32"},
           {OF(x[0] & x[0]), {z}, "float64"},
           {OF(vv::vmap([](tensor const& v) { return v; })(x[0])), {z}, "rank 0 has no axis to map"},
       }) {
    INFO(r.name);
    try {
      (void)r.f(r.operands);
      FAIL_CHECK("accepted");
    } catch (vv::error const& e) { CHECK(std::string(e.what()).find(r.text) != std::string::npos); }
  }
  CHECK(difference(vv::roll(z, 1), z, 0) == "");
}

TEST_CASE("bool and integer values: assigning operators", "[composite][bitwise]") {
  tensor const first = vec({1, 0, 1}, b);
  tensor mask = first;
  mask |= vec({0, 1, 0}, b);
  CHECK(difference(mask, vec({1, 1, 1}, b)) == "");
  CHECK(difference(first, vec({1, 0, 1}, b)) == ""); // a new value, as by +=
  mask &= first;
  mask ^= vec({1, 1, 1}, b);
  CHECK(difference(mask, vec({0, 1, 0}, b)) == "");
  tensor const rows = from({1, 2, 3, 4}, {2, 2}, i64);
  rows[0] |= 4; // a part is written
  rows[1] &= vec({1, 6}, i64);
  CHECK(difference(rows, from({5, 6, 1, 4}, {2, 2}, i64)) == "");
}

TEST_CASE("bool and integer values: operators of static, differentiated, mapped and traced values",
          "[composite][bitwise]") {
  constexpr vv::array<bool, 3> x{true, false, true}, y{false, false, true};
  STATIC_REQUIRE(vv::equal(x | y, x));
  STATIC_REQUIRE(vv::equal(x & y, y));
  STATIC_REQUIRE(vv::equal(x ^ y, vv::array<bool, 3>{true, false, false}));
  STATIC_REQUIRE(vv::equal(~x, vv::array<bool, 3>{false, true, false}));
  constexpr vv::array<int, 2> n{5, 6};
  STATIC_REQUIRE(vv::equal((n & 3) | 8, vv::array<int, 2>{9, 10}));
  auto const within = [](auto const& v) { return vv::sum(vv::where((v > 0) & ~(v > 2), v * v, 0 * v)); };
  constexpr vv::array<double, 3> at{-1, 1, 3};
  CHECK(vv::equal(vv::grad(within)(at), vv::array<double, 3>{0, 2, 0}));
  CHECK(difference(vv::grad(within)(tensor(at)), vec({0, 2, 0}, f64)) == "");
  auto const outside = [](auto const& v) { return (v < 0) | (v > 2); };
  CHECK(difference(vv::vmap(outside)(tensor(at)), vec({1, 0, 1}, b)) == "");
}
