// SPDX-License-Identifier: BSL-1.0
// Traces above composites: what programs call by name stays one node, with its parts as a subgraph.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/fake.hpp>
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>

#include <string>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;

namespace {
/// Names of the nodes of the whole program but inputs, constants and names of calls.
std::string names(vv::graph const& g) {
  std::string r;
  vv::region const& f = g.regions[0];
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    vv::node const& nd = g.nodes[static_cast<std::size_t>(n)];
    if (nd.op->kind != vv::op_kind::placeholder && nd.op->kind != vv::op_kind::constant)
      r += (r.empty() ? "" : " ") + std::string(nd.op->name);
  }
  return r;
}
vv::boxed_args run(vv::graph const& g, tensor const& x) { return vv::interpret(g, vv::boxed_args(x)); }
} // namespace

TEST_CASE("a trace above composites has them whole", "[fake][make_fx][MX-S05]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2}, dtype::float64);
  auto const product = [](tensor const& x) { return vv::matmul(x, vv::ones(vv::dims{2, 2}, dtype::float64)); };
  vv::graph const g = vv::make_fx(product, vv::tracing::pre_dispatch)(a);
  CHECK(names(g) == "full matmul");
  CHECK(vv::verify(g));
  CHECK(elements(run(g, a)[0]) == elements(product(a)));
  CHECK(names(vv::make_fx(product)(a)) == "full mm");
  CHECK(names(vv::inline_calls(g)) == "full mm");

  auto const rows = [](tensor const& x) {
    tensor const y = vv::softmax(x * 2.0, vv::axis<1>);
    return y + vv::mean(x);
  };
  vv::graph const h = vv::make_fx(rows, vv::tracing::pre_dispatch)(a);
  CHECK(names(h) == "mul softmax mean add");
  CHECK(difference(run(h, a)[0], rows(a), 1e-14) == "");
  // Their derivatives and lanes are those of the parts.
  auto const total = [](auto const& f) { return [f](tensor const& x) { return vv::sum(f(x) * f(x)); }; };
  auto const by_graph = [&](tensor const& x) { return run(h, x)[0]; };
  CHECK(difference(vv::grad(total(by_graph))(a), vv::grad(total(rows))(a), 1e-14) == "");
  tensor const many = vv::stack(std::vector<tensor>{a, a * 0.5}, 0);
  CHECK(difference(vv::vmap(by_graph)(many), vv::vmap(rows)(many), 1e-14) == "");
  CHECK(difference(vv::jvp(by_graph, std::tuple(a), std::tuple(a)).second,
                   vv::jvp(rows, std::tuple(a), std::tuple(a)).second, 1e-14) == "");
  CHECK(difference(vv::fuse(h)(vv::boxed_args(a))[0], rows(a), 1e-14) == "");
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a trace above composites keeps grad modes, functions and captured values", "[fake][make_fx]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2}, dtype::float64);
  auto const f = [](tensor const& x) {
    tensor const kept = x * 3.0;
    tensor const y = vv::cond(
        vv::sum(x) > 0.0, [&](tensor const& v) { return vv::softmax(v, vv::axis<0>) + kept; },
        [](tensor const& v) { return v * 1.0; }, x);
    vv::no_grad const off;
    return vv::softmax(y, vv::axis<1>);
  };
  vv::graph const g = vv::make_fx(f, vv::tracing::pre_dispatch)(a);
  CHECK(difference(run(g, a)[0], f(a), 1e-14) == "");
  CHECK(difference(run(g, -a)[0], f(-a), 1e-14) == "");
  CHECK(g.nodes[static_cast<std::size_t>(g.results[0])].mode == vv::recording::off);
  // In a transform the calls are those that the transform makes.
  vv::graph const d = vv::make_fx(vv::grad([](tensor const& x) { return vv::sum(vv::softmax(x, vv::axis<1>) * x); }),
                                  vv::tracing::pre_dispatch)(a);
  CHECK(difference(run(d, a)[0], vv::grad([](tensor const& x) { return vv::sum(vv::softmax(x, vv::axis<1>) * x); })(a),
                   1e-14) == "");
  auto const throws = [](tensor const& x) { return vv::matmul(x, vv::ones(vv::dims{3, 3}, dtype::float64)); };
  CHECK_THROWS_AS(vv::make_fx(throws, vv::tracing::pre_dispatch)(a), vv::shape_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("composites in the bodies of loops, in a program ahead of time", "[fake][make_fx]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2}, dtype::float64);
  auto const rows = [](tensor const& x) {
    return vv::map([](tensor const& v) { return vv::softmax(v, 0) * vv::mean(v); }, x);
  };
  vv::graph const g = vv::make_fx(rows, vv::tracing::pre_dispatch)(a);
  auto const fast = vv::compile([&](tensor const& x) { return run(g, x)[0]; }, vv::backends::aot_eager);
  CHECK(difference(fast(a), rows(a), 1e-14) == "");
  CHECK(difference(fast(-a), rows(-a), 1e-14) == "");
  auto const strict = [](tensor const& x) {
    return vv::map([](tensor const& v) { return vv::strict_mode([](tensor const& w) { return w * 2.0; }, v); }, x);
  };
  CHECK(elements(vv::compile(strict, vv::backends::aot_eager)(a)) == doubles({2, 4, 6, 8}));
}

TEST_CASE("a tensor of the fake mode around a trace is captured", "[fake][make_fx][MX-S08]") {
  vv::fake_mode mode;
  tensor const x = from({1, 2}, {2}), w = from({3, 4}, {2}), fake_x = mode.from_tensor(x), fake_w = mode.from_tensor(w);
  vv::boxed_args captured;
  vv::graph const g = [&] {
    vv::fake_mode_guard const on(mode);
    return vv::make_fx([&](tensor const& v) { return v * fake_w + fake_w; }).with_captures(captured, fake_x);
  }();
  REQUIRE(captured.size() == 1);
  CHECK(captured[0].is(fake_w));
  CHECK(names(g) == "mul add");
  CHECK(elements(vv::interpret(g, vv::boxed_args(x, w))[0]) == doubles({6, 12}));
}
