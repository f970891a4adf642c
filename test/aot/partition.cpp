// SPDX-License-Identifier: BSL-1.0
// Joint graphs cut in two: what is saved, in the compiler and at run time.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/varve.hpp>

#include <array>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr auto three_cosines = [](auto x) { return vv::cos(vv::cos(vv::cos(x))); };
constexpr auto cosines_of_sum = [](auto a, auto b, auto c, auto d) { return vv::cos(vv::cos(a + b + c + d)); };
/// The function with its gradient, arguments first.
template <class F>
constexpr auto joint_of(F f) {
  return [f](auto t, auto... x) {
    auto [y, pull] = vv::vjp(f, x...);
    return std::tuple{y, pull(t)};
  };
}
constexpr auto joint_of_cosines = [](auto x, auto t) { return joint_of(three_cosines)(t, x); };
constexpr auto joint_of_four = [](auto a, auto b, auto c, auto d, auto t) {
  return joint_of(cosines_of_sum)(t, a, b, c, d);
};
/// Arguments and results of both parts.
constexpr std::array<int, 4> ends(vv::partition const& p) {
  auto const& f = p.forward.regions[0];
  auto const& b = p.backward.regions[0];
  return {f.inputs, f.result_count, b.inputs, b.result_count};
}
constexpr auto number = vv::spec<double, 5>;
constexpr std::array<int, 4> ends_of_cosines() {
  vv::graph const g = vv::trace(joint_of_cosines, number, number).thaw();
  return ends(vv::min_cut_partition(g, {1, 1}));
}
constexpr std::array<int, 4> ends_of_cosines_by_default() {
  vv::graph const g = vv::trace(joint_of_cosines, number, number).thaw();
  return ends(vv::default_partition(g, {1, 1}));
}
constexpr std::array<int, 4> ends_of_four() {
  vv::graph const g = vv::trace(joint_of_four, number, number, number, number, number).thaw();
  return ends(vv::min_cut_partition(g, {4, 1}));
}
// AO-S26: one value is saved.
static_assert(ends_of_cosines() == std::array{1, 2, 2, 1});
static_assert(ends_of_cosines_by_default() == std::array{1, 4, 4, 1});
static_assert(ends_of_four() == std::array{4, 2, 2, 4});

/// Both parts of a partition one after the other.
vv::boxed_args in_two_steps(vv::partition const& p, vv::boxed_args const& primals, vv::boxed_args const& tangents) {
  vv::boxed_args const y = vv::interpret(p.forward, primals);
  vv::boxed_args r, rest;
  int const own = y.size() - p.saved();
  for (int k = 0; k < y.size(); ++k) (k < own ? r : rest).push_back(y[k]);
  for (auto const& t : tangents) rest.push_back(t);
  for (auto const& g : vv::interpret(p.backward, rest)) r.push_back(g);
  return r;
}
void same_in_two_steps(vv::graph const& g, vv::joint_shape s, vv::boxed_args const& in) {
  vv::boxed_args primals, tangents;
  for (int k = 0; k < in.size(); ++k) (k < s.primals ? primals : tangents).push_back(in[k]);
  vv::boxed_args const whole = vv::interpret(g, in);
  for (vv::partition const& p :
       {vv::default_partition(g, s), vv::min_cut_partition(g, s), vv::min_cut_partition(g, s, {.memory_budget = 0})}) {
    CHECK(vv::verify(p.forward));
    CHECK(vv::verify(p.backward));
    vv::boxed_args const parts = in_two_steps(p, primals, tangents);
    REQUIRE(parts.size() == whole.size());
    for (int k = 0; k < parts.size(); ++k) CHECK(difference(parts[k], whole[k]) == "");
  }
}
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k));
  return t;
}
} // namespace

TEST_CASE("partition: least cuts save least", "[aot][partition][AO-S26]") {
  tensor const x = data({5});
  vv::graph const g = vv::make_fx(joint_of_cosines)(x, x);
  CHECK(ends(vv::min_cut_partition(g, {1, 1})) == std::array{1, 2, 2, 1});
  same_in_two_steps(g, {1, 1}, vv::boxed_args(x, x));
  vv::graph const four = vv::make_fx(joint_of_four)(x, x, x, x, x);
  CHECK(ends(vv::min_cut_partition(four, {4, 1})) == std::array{4, 2, 2, 4});
  same_in_two_steps(four, {4, 1}, vv::boxed_args(x, x, x, x, x));
}

TEST_CASE("partition: products are saved, until memory is dearer", "[aot][partition]") {
  auto const layers = [](auto x, auto w, auto t) {
    auto const f = [](auto x, auto w) { return vv::tanh(vv::matmul(vv::tanh(vv::matmul(x, w)), w)); };
    auto [y, pull] = vv::vjp(f, x, w);
    return std::tuple{y, pull(t)};
  };
  tensor const x = data({4, 3}), w = data({3, 3}), t = data({4, 3});
  vv::graph const g = vv::make_fx(layers)(x, w, t);
  same_in_two_steps(g, {2, 1}, vv::boxed_args(x, w, t));
  vv::partition const cut = vv::min_cut_partition(g, {2, 1});
  CHECK(cut.backward.count(vv::mm) == vv::default_partition(g, {2, 1}).backward.count(vv::mm));
  vv::partition const least = vv::min_cut_partition(g, {2, 1}, {.memory_budget = 0});
  CHECK(least.saved_values == 2); // the arguments
  CHECK(least.backward.count(vv::mm) > cut.backward.count(vv::mm));
}

TEST_CASE("partition: sizes are saved as integers", "[aot][partition][symbolic][AO-S27]") {
  // The gradient of a sum needs the shape of its operand, and not the operand.
  auto const of_sum = [](tensor x, tensor t) {
    auto [y, pull] = vv::vjp([](auto v) { return vv::sum(v, vv::axis<1>); }, x);
    return std::tuple{y, pull(t)};
  };
  using vv::dim_dynamic;
  tensor const x = data({2, 3});
  vv::graph const g = vv::make_fx(of_sum, vv::tracing::symbolic)(x, data({2}));
  for (vv::partition const& p : {vv::default_partition(g, {1, 1}), vv::min_cut_partition(g, {1, 1})}) {
    CHECK(p.saved_values == 0);
    CHECK(p.saved_sizes == 1); // the other is that of the tangent
    CHECK(p.forward.nodes[p.forward.results[1]].out.sizes.n == 0);
  }
  same_in_two_steps(g, {1, 1}, vv::boxed_args(x, data({2})));
  same_in_two_steps(g, {1, 1}, vv::boxed_args(data({4, 5}), data({4})));
}

TEST_CASE("partition: functions of operators stay whole", "[aot][partition]") {
  auto const chosen = [](tensor p, tensor x, tensor t) {
    auto const f = [&](tensor v) {
      return vv::cond(
          p, [](tensor a) { return std::tuple{vv::sin(a), a * 2.0}; },
          [](tensor a) { return std::tuple{vv::cos(a), a * a}; }, v);
    };
    auto [y, pull] = vv::vjp(
        [&](tensor v) {
          auto [a, b] = f(v);
          return a * b;
        },
        x);
    return std::tuple{y, pull(t)};
  };
  tensor const x = data({3}), t = data({3}, 1), yes = vv::gt(vv::sum(x), 0.0), no = vv::lt(vv::sum(x), 0.0);
  vv::graph const g = vv::make_fx(chosen)(yes, x, t);
  same_in_two_steps(g, {2, 1}, vv::boxed_args(yes, x, t));
  same_in_two_steps(g, {2, 1}, vv::boxed_args(no, x, t));
}
