// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/op/all.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("in place: the memory changes and the version rises once", "[op][in_place]") {
  for (auto m : {memory::row_major, memory::transposed, memory::stepped}) {
    tensor const x = from({1, 2, 3, 4}, {2, 2}, dtype::float32, m);
    auto const v = x.version();
    CHECK(vv::add_(x, from({10, 20}, {2}, dtype::float64)).is(x));
    CHECK(elements(x) == std::vector<double>{11, 22, 13, 24});
    vv::mul_(x, 2);
    CHECK(elements(x) == std::vector<double>{22, 44, 26, 48});
    vv::copy_(x, from({5, 6}, {2, 1}, dtype::int64));
    CHECK(elements(x) == std::vector<double>{5, 5, 6, 6});
    CHECK(x.version() == v + 3);
    CHECK(x.dtype() == dtype::float32);
  }
}

TEST_CASE("in place: every unary operator writes what its functional one computes, at one version more",
          "[op][in_place]") {
  auto const check = [](char const* name, auto const& in_place, auto const& functional) {
    INFO(name);
    tensor const start = from({0.25, 0.5, 1, 2}, {2, 2}), x = vv::clone(start), t = vv::clone(start);
    CHECK(in_place(x).is(x));
    CHECK(elements(x) == elements(functional(start)));
    CHECK(x.version() == 1);
    in_place(vv::transpose(t));
    CHECK(elements(t) == elements(functional(start)));
    auto const g = [&](auto const& f) {
      return vv::grad([&](auto const& v) { return vv::sum(f(v * 2.0) * v); })(start);
    };
    CHECK(difference(g(in_place), g(functional), 1e-15) == "");
  };
  check("neg_", vv::neg_, vv::neg);
  check("exp_", vv::exp_, vv::exp);
  check("log_", vv::log_, vv::log);
  check("abs_", vv::abs_, [](auto const& x) { return vv::abs(x); });
  check("sin_", vv::sin_, vv::sin);
  check("cos_", vv::cos_, vv::cos);
  check("tanh_", vv::tanh_, vv::tanh);
  check("sqrt_", vv::sqrt_, vv::sqrt);
  check("sigmoid_", vv::sigmoid_, vv::sigmoid);
  check("relu_", vv::relu_, vv::relu);
  check(
      "clamp_", [](auto const& x) { return vv::clamp_(x, 0.4, 1.5); },
      [](auto const& x) { return vv::clamp(x, 0.4, 1.5); });
  check(
      "clamp_ from below", [](auto const& x) { return vv::clamp_(x, 0.4); },
      [](auto const& x) { return vv::clamp(x, 0.4); });
  check(
      "clamp_ from above", [](auto const& x) { return vv::clamp_(x, vv::none, 1.5); },
      [](auto const& x) { return vv::clamp(x, vv::none, 1.5); });
}

TEST_CASE("in place: an operand that overlaps the target is read before it is written", "[op][in_place]") {
  tensor const x = from({1, 2, 3, 4, 5}, {5});
  vv::copy_(vv::slice(x, 0, 1, 5), vv::slice(x, 0, 0, 4));
  CHECK(elements(x) == std::vector<double>{1, 1, 2, 3, 4});
  tensor const m = from({1, 2, 3, 4}, {2, 2});
  vv::copy_(m, vv::transpose(m));
  CHECK(elements(m) == std::vector<double>{1, 3, 2, 4});
  vv::add_(m, vv::transpose(m));
  CHECK(elements(m) == std::vector<double>{2, 5, 5, 8});
}

TEST_CASE("in place: what is refused leaves memory and version as they were", "[op][in_place]") {
  tensor const x = from({1, 2, 3}, {3}, dtype::int64);
  auto untouched = [&] { return elements(x) == std::vector<double>{1, 2, 3} && x.version() == 0; };
  CHECK_THROWS_AS(vv::add_(x, from({1, 2}, {2}, dtype::int64)), vv::shape_error);
  CHECK_THROWS_AS(vv::add_(x, from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::int64)), vv::error); // the target does not grow
  CHECK_THROWS_AS(vv::add_(x, 0.5), vv::dtype_error);
  CHECK_THROWS_AS(vv::mul_(x, from({0.5}, {1})), vv::dtype_error);
  CHECK_THROWS_AS(vv::add_(vv::expand(x, dims{2, 3}), 1), vv::value_error);
  CHECK(untouched());
  vv::copy_(x, from({1.9, 2.9, -3.9}, {3})); // copy_ converts
  CHECK(elements(x) == std::vector<double>{1, 2, -3});
  tensor const e = from({}, {0, 2});
  CHECK_NOTHROW(vv::add_(e, 1));
}

TEST_CASE("in place: inside of transforms what a function computed is written, arguments of grad and captured memory "
          "are refused",
          "[op][in_place]") { // FS-7, TR-4, TR-5
  tensor const x = from({1, 2, 3}, {3}), memory = from({1, 1, 1}, {3});
  auto untouched = [&] {
    return elements(x) == std::vector<double>{1, 2, 3} && x.version() == 0 &&
           elements(memory) == std::vector<double>{1, 1, 1} && memory.version() == 0;
  };
  auto into_argument = [](auto const& v) {
    vv::mul_(v, 2);
    return vv::sum(v);
  };
  CHECK_THROWS_WITH(vv::grad(into_argument)(x), ContainsText("leaf"));
  CHECK(untouched());
  auto into_computed = [](auto const& v) {
    auto const w = v * v;
    vv::mul_(w, v);
    vv::sin_(w);
    return vv::sum(w);
  };
  auto functional = [](auto const& v) { return vv::sum(vv::sin(v * v * v)); };
  CHECK(difference(vv::grad(into_computed)(x), vv::grad(functional)(x), 1e-14) == "");
  CHECK(difference(vv::jvp(into_computed, std::tuple(x), std::tuple(x)).second,
                   vv::jvp(functional, std::tuple(x), std::tuple(x)).second, 1e-14) == "");
  CHECK(difference(vv::vmap(vv::grad(into_computed))(x), vv::vmap(vv::grad(functional))(x), 1e-14) == "");
  CHECK(difference(vv::grad([&](auto const& v) { return vv::sum(vv::grad(into_computed)(v)); })(x),
                   vv::grad([&](auto const& v) { return vv::sum(vv::grad(functional)(v)); })(x), 1e-13) == "");
  CHECK(untouched());
  auto from_value = [&](auto const& v) {
    vv::add_(memory, v);
    return vv::sum(v);
  };
  CHECK_THROWS_WITH(vv::grad(from_value)(x), ContainsText("captured"));
  CHECK_THROWS_WITH(vv::vmap(from_value)(vv::reshape(x, dims{3, 1})), ContainsText("not mapped"));
  auto into_viewed = [](auto const& v) {
    auto const w = v * 1.0;
    auto const part = vv::select(w, 0, 0);
    vv::mul_(w, 2);
    return vv::sum(w) + part;
  };
  CHECK(elements(vv::grad(into_viewed)(x)) == std::vector<double>{4, 2, 2});
  CHECK(untouched());
  CHECK(vv::this_thread_state.quiet());
  // Under vmap what is mapped is the caller's memory (TR-4).
  tensor const mine = vv::clone(x);
  vv::vmap([](auto const& v) {
    vv::mul_(v, 2);
    return v;
  })(mine);
  CHECK(elements(mine) == std::vector<double>{2, 4, 6});
  // What a transform does not see is captured: it may not be written while one runs (TR-5).
  auto beside = [&](auto const& v) {
    vv::add_(memory, 1);
    return vv::sum(v * v);
  };
  CHECK_THROWS_AS(vv::grad(beside)(x), vv::transform_error);
  CHECK(untouched());
}

TEST_CASE("in place on tensors without data: versions rise, and what does not fit is refused", "[op][in_place]") {
  auto const meta = [](vv::dims const& sizes, vv::dtype t = vv::dtype::float32) { return tensor::meta(sizes, t); };
  tensor const x = meta({4}), integers = meta({4}, vv::dtype::int64);
  vv::add_(x, meta({1}));
  CHECK(x.version() == 1);
  tensor const view = vv::reshape(x, vv::dims{2, 2});
  vv::sin_(view);
  CHECK(x.version() == 2); // views share the counter
  vv::copy_(integers, x);  // converted
  CHECK(integers.version() == 1);

  CHECK_THROWS_AS(vv::add_(x, meta({5})), vv::shape_error);
  CHECK_THROWS_AS(vv::mul_(x, meta({2, 4})), vv::shape_error);
  CHECK_THROWS_AS(vv::mul_(meta({}), x), vv::shape_error);
  CHECK_THROWS_WITH(vv::copy_(x, meta({5})), "varve: copy_: shapes [4] and [5] do not fit");
  CHECK_THROWS_WITH(vv::copy_(x, meta({2, 4})), "varve: copy_: shapes [4] and [2, 4] do not fit");
  CHECK_THROWS_WITH(vv::add_(integers, x), "varve: add_: a result of dtype float32 cannot be written into int64");
  CHECK_THROWS_AS(vv::sin_(integers), vv::dtype_error);
  tensor const repeated = vv::expand(meta({1}), vv::dims{4});
  CHECK_THROWS_AS(vv::mul_(repeated, x), vv::value_error);
  CHECK(x.version() == 2);
  CHECK(integers.version() == 1);
  CHECK(repeated.version() == 0);

  vv::add_(meta({0}), meta({1})); // nothing to write
  CHECK_THROWS_AS(vv::add_(meta({0}), meta({2})), vv::shape_error);
}

TEST_CASE("a traced write that does not fit is refused as it is eagerly", "[op][in_place]") {
  auto const f = [](auto x, auto y) {
    vv::copy_(x, y);
    return x;
  };
  CHECK_THROWS_AS(vv::make_fx(f)(vv::ones({4}), vv::ones({5})), vv::shape_error);
}
