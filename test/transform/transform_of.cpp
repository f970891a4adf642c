// SPDX-License-Identifier: BSL-1.0
// A transform that the library does not have, in both worlds.
#include "../../examples/interval_bounds.hpp"

#include <varve/compile/compile.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::tensor;

namespace {
constexpr auto polynomial = [](auto const& x) { return x * x - 2.0 * x; };
constexpr auto network = [](auto const& x) { return vv::sum(vv::tanh(x * 3.0 - 1.0)) - vv::amax(vv::exp(-x)); };
} // namespace

constexpr auto b = bounds(polynomial, -1.0, 2.0);
static_assert(b.value == -6.0 && b.payload == 6.0); // x * x is not known to be a square
constexpr auto c = bounds([](auto const& x) { return vv::sum(x); }, array<double, 2>{0, 1}, array<double, 2>{1, 3});
static_assert(c.value == 1 && c.payload == 4);
constexpr auto d = bounds([](auto const&) { return 1.5; }, 0.0, 1.0);
static_assert(d.value == 1.5 && vv::is_none<std::remove_const_t<decltype(d.payload)>>);

TEST_CASE("transform_of: bounds of a function in both worlds", "[transform]") {
  array<double, 2> const low{-0.5, 0.25}, high{0.0, 1.5};
  auto const s = bounds(network, low, high);
  auto const t = bounds(network, tensor(low), tensor(high));
  CHECK(t.value.item() == Approx(s.value));
  CHECK(t.payload.item() == Approx(s.payload));
  CHECK(s.value < s.payload);
  for (double const u : {0.0, 0.3, 1.0}) {
    double const y = network(low + (high - low) * u);
    CHECK(y >= s.value);
    CHECK(y <= s.payload);
  }
  auto const k = bounds([](auto const&) { return tensor(2.0); }, tensor(1.0), tensor(2.0));
  CHECK(k.value.item() == 2);
  CHECK(!k.payload.defined());
}

TEST_CASE("transform_of: composes with vmap, grad, compile, fuse", "[transform]") {
  tensor const low({-0.5, 0.25}), high({0.0, 1.5});
  auto const width = [](auto const& l, auto const& h) {
    auto const r = bounds(network, l, h);
    return r.payload - r.value;
  };
  tensor const y = width(low, high);
  CHECK(vv::allclose(vv::compile(width)(low, high), y));
  tensor const both = vv::stack(std::tuple{low, low - 1.0}), all = vv::stack(std::tuple{high, high});
  CHECK(vv::allclose(vv::vmap(width)(both, all)[0], y));
  tensor const slope = vv::grad(width)(low, high);
  tensor const step({1e-6, 0.0});
  CHECK(slope[0].item() ==
        Approx((width(low + step, high).item() - width(low - step, high).item()) / 2e-6).epsilon(1e-6));
  array<double, 2> const l{-0.5, 0.25}, h{0.0, 1.5};
  constexpr auto fast = vv::fuse([](auto const& a, auto const& e) {
    auto const r = bounds(network, a, e);
    return r.payload - r.value;
  });
  CHECK(fast(l, h) == Approx(y.item()));
  // Bounds of a derivative: a transform inside of it.
  auto const of_slope = bounds(vv::grad(polynomial), 0.0, 1.0);
  CHECK(of_slope.value == -2);
  CHECK(of_slope.payload == 0);
  auto const on_tensors = bounds(vv::grad(polynomial), tensor(0.0), tensor(1.0));
  CHECK(on_tensors.value.item() == -2);
  CHECK(on_tensors.payload.item() == 0);
}

TEST_CASE("transform_of: what it has no rule for is refused by name", "[transform]") {
  tensor const low({-0.5, 0.25}), high({0.0, 1.5});
  CHECK_THROWS_WITH(bounds([](tensor const& x) { return vv::sin(x); }, low, high),
                    Catch::Contains("interval_bounds: there is no rule for sin"));
  auto const writes = [](tensor const& x) {
    tensor y = vv::clone(x);
    return vv::add_(y, 1.0);
  };
  CHECK_THROWS_WITH(bounds(writes, low, high), Catch::Contains("add_ writes into its operand"));
  auto const branches = [](tensor const& x) {
    return vv::cond(tensor(true), [](tensor const& u) { return u; }, [](tensor const& u) { return -u; }, x);
  };
  CHECK(bounds(branches, low, high).value[0].item() == -0.5); // decided: a C++ branch
  CHECK_THROWS_WITH(bounds([](tensor const& x) { return x > 0.0; }, low, high), Catch::Contains("no rule for gt"));
  auto const loops = [](tensor const& x) {
    return vv::scan([](tensor const& a, tensor const& r) { return std::pair(tensor(a + r), vv::none); }, vv::sum(x), x)
        .first;
  };
  CHECK_THROWS_WITH(bounds(loops, low, high), Catch::Contains("scan and the transform interval_bounds"));
  CHECK(vv::this_thread_state.transforms.top == nullptr);
}
