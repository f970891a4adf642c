// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/composite/ranges.hpp>
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>
#include <varve/value/print.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct names : vv::dispatch_mode<names> {
  std::vector<std::string> seen;
  auto process(auto op, auto const&... args) {
    seen.emplace_back(op.name());
    return op(args...);
  }
};
} // namespace

TEST_CASE("factories: dtype, shape and elements", "[op][factory]") {
  CHECK(difference(vv::zeros({2, 2}), from({0, 0, 0, 0}, {2, 2}, dtype::float32)) == "");
  CHECK(difference(vv::ones({3}, dtype::int64), from({1, 1, 1}, {3}, dtype::int64)) == "");
  CHECK(difference(vv::full({2}, 7), from({7, 7}, {2}, dtype::int64)) == "");
  CHECK(difference(vv::full({}, true), from({1}, {}, dtype::bool_)) == "");
  CHECK(difference(vv::full({1}, 2.5), from({2.5}, {1}, dtype::float32)) == "");
  CHECK(difference(vv::arange(4), from({0, 1, 2, 3}, {4}, dtype::int64)) == "");
  CHECK(difference(vv::arange(2, dtype::float64), from({0, 1}, {2})) == "");
  CHECK(difference(vv::eye(2), from({1, 0, 0, 1}, {2, 2}, dtype::float32)) == "");
  CHECK(vv::empty({2, 0}).numel() == 0);
  CHECK(difference(vv::zeros(2, 3), vv::zeros({2, 3})) == ""); // sizes as arguments of their own
  CHECK(difference(vv::ones(2, 1, 3, dtype::int64), vv::ones({2, 1, 3}, dtype::int64)) == "");
  CHECK(difference(vv::ones(vv::zeros({4, 5}).size(1), 2), vv::ones({5, 2})) == "");
  CHECK(vv::empty(2, 0, dtype::float64).dtype() == dtype::float64);
  CHECK(vv::randn(3, 4).sizes() == vv::dims{3, 4});
  CHECK_THROWS_AS(vv::zeros(2, -1), vv::error);
  CHECK(vv::zeros<double, 2, 3>().size() == 6); // the static forms are as they were
  CHECK_FALSE(vv::zeros({}).is_number());
  // complex tensors are there, and moved; what has no meaning for them is refused by name
  vv::tensor const z = vv::zeros({2}, dtype::complex64);
  CHECK(vv::to_string(vv::cat(std::vector<vv::tensor>{z, z}, 0)) ==
        "tensor([0+0j, 0+0j, 0+0j, 0+0j], dtype=complex64)");
  CHECK_THROWS_AS(vv::softmax(z, 0), vv::dtype_error);
  CHECK_THROWS_AS(vv::zeros({-1}), vv::error);
  CHECK_THROWS_AS(vv::arange(-1), vv::error);
}

TEST_CASE("factories: like a mapped value they are mapped, and take mapped values in place", "[op][factory][vmap]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {3, 2});
  auto const copied = [](tensor const& v) {
    tensor const z = vv::zeros_like(v);
    vv::add_(z, v);
    return z;
  };
  CHECK(difference(vv::vmap(copied)(x), x) == "");
  CHECK(difference(vv::vmap(copied, vv::in_dims<1>, vv::out_dims<1>)(x), x) == "");
  CHECK(difference(vv::vmap(vv::vmap(copied))(x), x) == "");
  CHECK(difference(
            vv::vmap([&](tensor const& v) { return vv::vmap([&](tensor const& e) { return copied(v) * e; })(v); })(x),
            vv::unsqueeze(x, 1) * vv::unsqueeze(x, 2)) == "");
  // of other shapes and dtypes, and of several numbers
  CHECK(difference(vv::vmap([](tensor const& v) {
                     tensor const z = vv::new_zeros(v, dims{2, 2});
                     vv::add_(z, v);
                     return z;
                   })(x),
                   vv::expand(vv::unsqueeze(x, 1), dims{3, 2, 2})) == "");
  CHECK(
      difference(vv::vmap([](tensor const& v) { return vv::full_like(v, 9007199254740993); })(vv::to(x, dtype::int64)),
                 vv::full({3, 2}, 9007199254740993, dtype::int64)) == "");
  CHECK(difference(vv::vmap([](tensor const& v) { return vv::ones_like(v) * vv::new_full(v, v.sizes(), 0.5); })(x),
                   vv::full({3, 2}, 0.5, dtype::float64)) == "");
  CHECK(vv::vmap([](tensor const& v) { return vv::zeros_like(v); })(vv::empty({0, 2})).sizes() == dims{0, 2});
  // with levels of gradients between and around
  CHECK(difference(vv::vmap(vv::grad([&](tensor const& v) { return vv::sum(copied(v) * v); }))(x), x * 2) == "");
  CHECK(difference(vv::grad([&](tensor const& w) { return vv::sum(vv::vmap(copied)(w) * w); })(x), x * 2) == "");
  CHECK(difference(vv::jvp([&](tensor const& w) { return vv::vmap(copied)(w); }, std::tuple(x), std::tuple(x)).second,
                   x) == "");
  names m;
  {
    vv::mode_guard const on(m);
    (void)vv::vmap([](tensor const& v) { return vv::zeros_like(v); })(x);
  }
  CHECK(m.seen == std::vector<std::string>{"full"}); // the mode is below vmap
  CHECK_THROWS_AS(vv::vmap([](tensor const& v) {
                    vv::add_(vv::zeros({2}), v);
                    return v;
                  })(x),
                  vv::transform_error);
}

TEST_CASE("factories: modes see them", "[op][factory]") {
  names m;
  {
    vv::mode_guard const on{m};
    (void)vv::empty({2});
    (void)vv::zeros({2});
    (void)vv::arange(2);
    (void)vv::randn({2});
  }
  CHECK(m.seen == std::vector<std::string>{"empty", "full", "arange", "randn"});
}

TEST_CASE("randn: a seed fixes the numbers, in both worlds", "[op][randn]") {
  vv::manual_seed(7);
  tensor const a = vv::randn({100}), b = vv::randn({100});
  vv::manual_seed(7);
  CHECK(difference(vv::randn({100}), a) == "");
  CHECK(difference(b, a) != "");
  vv::generator g{7};
  auto const s = vv::randn<float, 100>(g);
  for (index_t k = 0; k < 100; ++k) CHECK(element(a, k) == s[k]);
  tensor const many = vv::randn({10000}, dtype::float64);
  CHECK(std::abs(vv::mean(many).item<double>()) < 0.05);
  CHECK(vv::mean(many * many).item<double>() == Approx(1).margin(0.06));
  CHECK_THROWS_AS(vv::randn({2}, dtype::int64), vv::dtype_error);
}

TEST_CASE("the state of the generator: read and set", "[op][random]") {
  vv::manual_seed(3);
  (void)vv::randn({5});
  tensor const state = vv::get_rng_state();
  CHECK((state.dtype() == dtype::int64 && state.sizes() == dims{2}));
  tensor const first = vv::randn({5}), second = vv::randn({5});
  vv::set_rng_state(state);
  CHECK(difference(vv::randn({5}), first) == "");
  CHECK(difference(vv::randn({5}), second) == "");
  CHECK_THROWS_AS(vv::set_rng_state(vv::zeros({2})), vv::dtype_error);
  CHECK_THROWS_AS(vv::set_rng_state(vv::zeros({3}, dtype::int64)), vv::shape_error);
}
TEST_CASE("full: a number that its dtype does not hold is refused in both worlds", "[op][dtype]") {
  CHECK_THROWS_AS(vv::full({}, 9e18, vv::dtype::int32), vv::value_error);
  CHECK_THROWS_AS(vv::full({2}, 3e9 + 7, vv::dtype::uint8), vv::value_error);
  CHECK_THROWS_AS(vv::full_like(vv::array<std::uint8_t, 2>{}, 3e9 + 7), vv::value_error);
  CHECK(vv::full({}, 9007199254740993, vv::dtype::int64).item<std::int64_t>() == 9007199254740993);
}
TEST_CASE("ranges of integer dtypes begin and step in whole numbers", "[op][factory]") {
  auto const range = [](auto a, auto b, auto s, dtype t) { return elements(vv::arange(a, b, s, t)); };
  CHECK(range(0, 5, 1.5, dtype::int64) == doubles({0, 1, 2, 3, 4}));
  CHECK(range(0, 5, 1.5, dtype::int32) == doubles({0, 1, 2, 3})); // as many as of the numbers themselves
  CHECK(range(-0.9, 2.1, 2.0, dtype::int64) == doubles({0}));
  CHECK(range(-0.9, 2.1, 2.0, dtype::int32) == doubles({0, 2}));
  CHECK(range(0, -8.5, -4.0, dtype::int64) == doubles({0, -4}));
  CHECK(range(0, 1, 0.25, dtype::float64) == doubles({0, 0.25, 0.5, 0.75}));
  CHECK_THROWS_AS(range(0, 1, 0.25, dtype::int64), vv::value_error);
  CHECK(elements(vv::logspace(0, 1.2, 2, 10, dtype::int64)) == doubles({1, 10}));
  CHECK(elements(vv::linspace(4.3, -3, 2, dtype::int8)) == doubles({4, -3}));
}
