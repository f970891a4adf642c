// SPDX-License-Identifier: BSL-1.0
// Eager autograd above a mode that takes operators with functions whole: traces, and the functional mode.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor leaf(std::initializer_list<double> v) {
  tensor const t = vector_of(v);
  t.requires_grad_();
  return t;
}
auto const chosen = [](tensor a, tensor b) {
  return vv::cond(
      vv::gt(vv::sum(a), 0.0), [&](tensor v) { return vv::sin(v * b); }, [&](tensor v) { return v * b * b; }, a);
};
auto const looped = [](tensor a, tensor b) {
  auto const [c, ys] =
      vv::scan([&](tensor c, tensor v) { return std::pair{c * v, vv::sum(b) * c + v}; }, vv::sum(a) * 0.1, a);
  return ys * c;
};
auto const mapped = [](tensor a, tensor b) { return vv::map([&](tensor v) { return v * vv::sum(b) * v; }, a); };
auto const kept = [](tensor a, tensor b) {
  return vv::checkpoint([&](tensor v) { return vv::exp(vv::sin(v)) * b; }, a);
};
auto const until = [](tensor a, tensor b) {
  return vv::while_loop<20>([](tensor v) { return vv::lt(vv::sum(v), 40.0); }, [&](tensor v) { return v + b * b; }, a);
};
/// The gradients of a sum by both arguments.
template <class F>
auto gradients(F const& f) {
  return [f](tensor a, tensor b) {
    auto const g = vv::autograd::grad({vv::sum(f(a, b))}, {a, b}, {}, {}, vv::autograd::unused::undefined);
    return std::pair{g[0], g[1].defined() ? g[1] : vv::zeros_like(b)};
  };
}
template <class F>
void is_the_same(F const& f, bool traces = true) {
  auto const g = gradients(f);
  auto const alike = [](auto const& got, auto const& want) {
    CHECK(difference(got.first, want.first, 1e-12) == "");
    CHECK(difference(got.second, want.second, 1e-12) == "");
  };
  tensor const a = leaf({1, 2, 3}), b = leaf({0.5, -1, 2}), c = leaf({-1, -2, 1});
  auto const functional = [&] {
    vv::functional_mode mode;
    vv::functional_mode_guard const on(mode);
    auto const [x, y] = g(mode.to_functional_tensor(a), mode.to_functional_tensor(b));
    return std::pair{vv::from_functional_tensor(x), vv::from_functional_tensor(y)};
  };
  alike(functional(), g(a, b));
  if (!traces) return;
  // in a trace, which is for other values and branches too
  vv::graph const t = vv::make_fx(g, vv::tracing::fake)(a, b);
  for (tensor const& x : {a, c}) {
    vv::boxed_args const y = vv::interpret(t, vv::boxed_args(x.detach(), b.detach()));
    alike(std::pair{y[0], y[1]}, g(x, b));
  }
}
} // namespace

TEST_CASE("hop: gradients of eager autograd under the functional mode and in traces", "[hop][autograd]") {
  is_the_same(chosen);
  is_the_same(looped);
  is_the_same(mapped);
  is_the_same(kept);
  is_the_same(until, false); // in a trace on fakes nobody knows how many steps it has
  is_the_same([](tensor a, tensor b) { return chosen(looped(a, b), mapped(b, a)); });
}
