// SPDX-License-Identifier: BSL-1.0
// Joins of one value, and of values of rank 0.
#include "../sample/value.hpp"

#include <varve/autograd/backward.hpp>
#include <varve/compile/compile.hpp>
#include <varve/dispatch/thread_snapshot.hpp>
#include <varve/functional/functionalize.hpp>
#include <varve/fuse/tensors.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/op/all.hpp>
#include <varve/trace/linearize.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>

#include <thread>
#include <tuple>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;

namespace {
/// The result of joining one value is written into: sum(3 b * b) with b = x.
constexpr auto joins_a_vector = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::cat(std::vector{b}, 0);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
constexpr auto joins_a_tuple = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::cat(std::tuple{b}, vv::axis<0>);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
constexpr auto stacks = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::stack(std::vector{b}, 0);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
} // namespace

TEST_CASE("cat and stack of one value are copies", "[op][cat]") {
  tensor const x = vector_of({1, 2, 3});
  for (tensor const& joined : {vv::cat(std::vector{x}, 0), vv::cat(std::tuple{x}, 0), vv::stack(std::vector{x}, 0),
                               vv::stack(std::tuple{x}), vv::cat(std::vector{x, from({}, {0}, dtype::float64)}, 0)}) {
    CHECK_FALSE(joined.shares_storage(x));
    CHECK(elements(joined) == doubles({1, 2, 3}));
  }
  auto const check = [&](auto const& f) {
    CHECK(elements(f(x)) == doubles({42}));
    CHECK(elements(vv::grad(f)(x)) == doubles({6, 12, 18}));
    CHECK(elements(vv::vmap(vv::grad(f))(vv::reshape(x, dims{1, 3}))) == doubles({6, 12, 18}));
    CHECK(elements(vv::functionalize(f)(x)) == doubles({42}));
    CHECK(elements(vv::compile(f)(x)) == doubles({42}));
    CHECK(elements(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0]) == doubles({42}));
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(vector_of({1, 0, 0}))).second) == doubles({6}));
  };
  check(joins_a_vector);
  check(joins_a_tuple);
  check(stacks);
  CHECK(elements(vv::fuse<vv::spec<double, 3>>(joins_a_vector)(x)) == doubles({42}));
  CHECK(elements(vv::fuse<vv::spec<double, 3>>(joins_a_tuple)(x)) == doubles({42}));
  CHECK(elements(x) == doubles({1, 2, 3}));
}

TEST_CASE("cat joins no values of rank 0, as lanes neither", "[op][cat]") {
  tensor const x = vector_of({1, 2, 3}), one = vv::full({}, 1.0);
  auto const refused = ContainsText("cat: values of rank 0 have no axis");
  CHECK_THROWS_WITH(vv::cat(std::vector{one}, 0), refused);
  CHECK_THROWS_WITH(vv::cat(std::tuple{one}, 0), refused);
  CHECK_THROWS_WITH(vv::cat(std::vector{one, one}, 0), refused);
  auto const alone = [](tensor const& a) { return vv::cat(std::vector{a}, 0); };
  auto const pair = [](tensor const& a) { return vv::cat(std::vector{a, a}, 0); };
  auto const beside = [&](tensor const& a) { return vv::cat(std::vector{a, x}, 0); };
  CHECK_THROWS_WITH(vv::vmap(alone)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(pair)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(beside)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(vv::vmap(pair))(vv::reshape(x, dims{1, 3})), refused);
  CHECK(vv::vmap([](tensor const& a) { return vv::stack(std::vector{a, a}, 0); })(x).sizes() == dims{3, 2});
}
