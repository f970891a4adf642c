// SPDX-License-Identifier: BSL-1.0
// Calls by name: arguments are checked and completed as by the public function.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// Makes the operators known by name.
void use_all(tensor const& x, tensor const& i) {
  (void)vv::permute(x, dims{1, 0}), (void)vv::slice(x, 0, 0, 1), (void)vv::expand(x, dims{1, 2, 3});
  (void)vv::to(x, dtype::float32), (void)vv::cat(std::vector<tensor>{x, x}, 0), (void)vv::gather(x, 1, i);
  (void)vv::scatter_add(x, 1, i, x), (void)vv::as_strided(x, dims{2}, dims{1}, dims{0}), (void)vv::sum(x);
  (void)vv::amax(x), (void)vv::argmax(x, vv::axis<0>), (void)vv::matmul(x, vv::transpose(x)), (void)vv::full({2}, 1.0);
  (void)vv::one_hot(i, 3), (void)vv::reshape(x, dims{6}), (void)(x + x);
  (void)vv::conv1d(vv::reshape(x, dims{1, 1, 6}), vv::ones({1, 1, 2}, dtype::float64));
}
} // namespace

TEST_CASE("a call by name is checked and completed as the public function does it", "[dispatch][ops]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float64), i = vv::zeros({2, 3}, dtype::int64);
  use_all(x, i);
  auto const call = [](auto const&... a) { return elements(vv::ops::call(a...)); };
  CHECK(call("permute", x, dims{-1, 0}) == elements(vv::permute(x, dims{-1, 0})));
  CHECK(call("slice", x, dims{0, 0, 100, 1}) == elements(x));
  CHECK(call("slice", x, dims{-1, 0, 2, 1}) == elements(vv::slice(x, -1, 0, 2)));
  CHECK(vv::ops::call("reshape", x, dims{-1, 2}).sizes() == dims{3, 2});
  CHECK(call("sum", x, dims{-1}) == doubles({6, 15}));
  CHECK(call("sum", x) == doubles({21}));
  CHECK(call("amax", x) == doubles({6}));
  CHECK(call("argmax", x, dims{-1}) == doubles({2, 2}));
  CHECK(call("gather", x, i, dims{-1}) == doubles({1, 1, 1, 4, 4, 4}));
  CHECK(call("scatter_add", x, i, x, dims{-1}) == doubles({7, 2, 3, 19, 5, 6}));
  CHECK(vv::ops::call("cat", x, x).sizes() == dims{4, 3});
  CHECK(call("as_strided", x, dims{2}, dims{3}) == doubles({1, 4}));
  CHECK(call("mm", x, vv::transpose(x)) == doubles({14, 32, 32, 77}));
  auto const by_name = [](tensor const& v) { return vv::ops::call("sum", vv::ops::call("permute", v, dims{-1, 0})); };
  CHECK(elements(vv::grad(by_name)(x)) == doubles({1, 1, 1, 1, 1, 1}));
  CHECK(elements(vv::vmap([](tensor const& v) { return vv::ops::call("sum", v, dims{-1}); })(x)) == doubles({6, 15}));
}

TEST_CASE("a call by name is refused as by the public function", "[dispatch][ops]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float64), i = vv::zeros({2, 3}, dtype::int64),
               image = vv::reshape(x, dims{1, 1, 6}), kernel = vv::ones({1, 1, 2}, dtype::float64);
  use_all(x, i);
  auto const call = [](auto const&... a) { return vv::ops::call(a...); };
  CHECK_THROWS_AS(call("permute", x, dims{7, 9}), vv::index_error);
  CHECK_THROWS_AS(call("permute", x, dims{0, 0}), vv::value_error);
  CHECK_THROWS_AS(call("slice", x), vv::dispatch_error);
  CHECK_THROWS_AS(call("slice", x, dims{}), vv::value_error);
  CHECK_THROWS_AS(call("slice", x, dims{0, 0, 2, 0}), vv::value_error);
  CHECK_THROWS_AS(call("slice", x, dims{5, 0, 2, 1}), vv::index_error);
  CHECK_THROWS_AS(call("reshape", x, dims{100}), vv::shape_error);
  CHECK_THROWS_AS(call("expand", x, dims{5, 7, 9}), vv::shape_error);
  CHECK_THROWS_AS(call("to", x, dims{77}), vv::value_error);
  CHECK_THROWS_AS(call("to", x, dims{12}), vv::value_error);
  CHECK_THROWS_AS(call("cat", x, x, dims{9}), vv::index_error);
  CHECK_THROWS_AS(call("cat", x, i, dims{0}), vv::dtype_error);
  CHECK_THROWS_AS(call("gather", x, i, dims{9}), vv::index_error);
  CHECK_THROWS_AS(call("as_strided", x, dims{1000}, dims{1000}, dims{0}), vv::value_error);
  CHECK_THROWS_AS(call("as_strided", x, dims{2}), vv::dispatch_error);
  CHECK_THROWS_AS(call("sum", x, dims{5}), vv::index_error);
  CHECK_THROWS_AS(call("argmax", x), vv::dispatch_error);
  CHECK_THROWS_AS(call("mm", x, x, dims{0}), vv::value_error);
  CHECK_THROWS_AS(call("full", 2.5, dims{-2}, dims{7}), vv::value_error);
  CHECK_THROWS_AS(call("full", 2.5, dims{2}, dims{70}), vv::value_error);
  CHECK_THROWS_AS(call("one_hot", i, dims{-3}), vv::value_error);
  CHECK_THROWS_AS(call("convolution", image, kernel, dims{0}, dims{0}, dims{1, 0, 1, 0}), vv::value_error);
  CHECK_THROWS_AS(call("convolution", image, kernel, dims{1}, dims{0}, dims{1}), vv::value_error);
  CHECK_THROWS_AS(call("add", x, x, dims{1}), vv::dispatch_error);
  CHECK_THROWS_AS(call("add", x, tensor()), vv::value_error);
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return call("sum", v, dims{5}); })(x), vv::index_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a comparison by name does not wrap a number around", "[dispatch][ops]") {
  tensor const bytes = from({0, 128, 255}, {3}, dtype::uint8);
  (void)(bytes < 300), (void)vv::maximum(bytes, 3);
  tensor const far = vv::full({}, -5, dtype::int64), near = vv::full({}, 128, dtype::int64);
  CHECK_THROWS_AS(vv::ops::call("lt", bytes, 300), vv::value_error);
  CHECK_THROWS_AS(vv::ops::call("maximum", far, bytes), vv::value_error);
  CHECK(elements(vv::ops::call("lt", bytes, near)) == doubles({1, 0, 0}));
  CHECK(elements(vv::ops::call("maximum", bytes, 130)) == doubles({130, 130, 255}));
  CHECK(elements(vv::ops::call("maximum", far, vv::full({}, 7, dtype::uint8))) == doubles({7}));
  CHECK(elements(bytes < 300) == doubles({1, 1, 1}));
}

TEST_CASE("verify refuses attributes that no operator writes", "[graph][verify]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype::float64);
  vv::graph g = vv::make_fx([](tensor const& v) { return vv::sum(vv::slice(v, 1, 0, 2), vv::axis<1>); })(x);
  CHECK(vv::verify(g));
  auto const with = [&](char const* op, vv::attributes const& at) {
    vv::graph other = g;
    for (std::size_t n = 0; n < other.nodes.size(); ++n)
      if (std::string(other.nodes[n].op->name) == op) other.nodes[n].at = at;
    return vv::verify(other).what;
  };
  CHECK(with("slice", vv::attributes(dims{1, 0, 200, 1})) == vv::flaw::attributes_malformed);
  CHECK(with("slice", vv::attributes(dims{-1, 0, 2, 1})) == vv::flaw::attributes_malformed);
  CHECK_THROWS_AS(with("slice", vv::attributes(dims{7, 0, 2, 1})), vv::index_error);
  CHECK_THROWS_AS(with("slice", vv::no_attributes), vv::value_error);
  CHECK(with("sum", vv::attributes(dims{-1}, dims{0})) == vv::flaw::attributes_malformed);
  CHECK(with("sum", vv::no_attributes) == vv::flaw::attributes_malformed);
}
