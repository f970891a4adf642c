// SPDX-License-Identifier: BSL-1.0
// Tensors that a traced function makes of C++ values, and constants of graphs that run in a trace, are constants.
#include "../sample/value.hpp"

#include <varve/compile/compile.hpp>
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("make_fx: tensors made of C++ values are constants", "[graph][trace][MX-3]") {
  tensor const x = from({1.5, -1.75}, {2});
  auto const f = [](tensor const& v) {
    tensor const two({2.0, 3.0});
    return v * two + vv::select(two, 0, 1);
  };
  vv::graph const g = vv::make_fx(f)(x);
  CHECK(g.regions[0].inputs == 1);
  CHECK(difference(vv::interpret(g, vv::boxed_args(x))[0], f(x)) == "");
  auto const gradient = vv::grad([&](tensor const& v) { return vv::sum(f(v) * v); });
  CHECK(difference(vv::interpret(vv::make_fx(gradient)(x), vv::boxed_args(x))[0], gradient(x)) == "");
  auto const rows = vv::vmap(f);
  tensor const m = from({1, 2, 3, 4}, {2, 2});
  CHECK(difference(vv::interpret(vv::make_fx(rows)(m), vv::boxed_args(m))[0], rows(m)) == "");
  tensor const outside = from({2, 3}, {2});
  CHECK_THROWS_AS(vv::make_fx([&](tensor const& v) { return v * outside; })(x), vv::value_error);
}

TEST_CASE("make_fx: what is written into a tensor of C++ values is in the graph, or refused", "[graph][trace]") {
  tensor const x = from({1.5, -1.75}, {2});
  auto const adds = [](tensor const& v) {
    tensor const t({1.0, 2.0});
    tensor const before = t * v;
    vv::add_(t, 1.0);
    return before + t * v;
  };
  CHECK(difference(vv::interpret(vv::make_fx(adds)(x), vv::boxed_args(x))[0], adds(x)) == "");
  auto const fills = [](tensor const& v) {
    tensor const t({0.0, 0.0});
    for (int k = 0; k < 2; ++k) t.data<double>()[k] = k + 3;
    return t * v;
  };
  CHECK(difference(vv::interpret(vv::make_fx(fills)(x), vv::boxed_args(x))[0], fills(x)) == "");
  auto const late = [](tensor const& v) {
    tensor const t({1.0, 2.0});
    tensor const before = t * v;
    t.data<double>()[0] = 5;
    return before + t * v;
  };
  CHECK_THROWS_WITH(vv::make_fx(late)(x), ContainsText("fill it first"));
}

TEST_CASE("constants of graphs that run in a trace are constants of that", "[graph][trace]") {
  tensor const x = from({1.5, -1.75}, {2});
  vv::graph const inner =
      vv::trace_graph([](auto v) { return v * vv::array<double, 2>{2.0, 3.0}; }, vv::meta{dtype::float64, {2}});
  auto const f = [&](tensor const& v) { return vv::interpret(inner, vv::boxed_args(v))[0]; };
  tensor const expected = from({3, -5.25}, {2});
  CHECK(difference(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0], expected) == "");
  CHECK(difference(vv::interpret(vv::make_fx(f, vv::tracing::fake)(x), vv::boxed_args(x))[0], expected) == "");
  // Once zeros: the Jacobian's directions were met first where a function was run for its shapes.
  auto const inner_jacobian = [](tensor const& v) {
    auto const rows = [](tensor const& u) {
      return vv::scan([&](tensor const&, tensor const& e) { return std::pair(vv::clone(u), vv::sin(e)); }, u, u).second;
    };
    auto const one = [&](tensor const& u) { return vv::select(vv::vmap(rows)(vv::reshape(u, dims{1, 1, 2})), 0, 0); };
    auto const kept = [&](tensor const& u) { return vv::sum(vv::checkpoint(one, u) * 2.0); };
    return vv::jacfwd(kept)(v);
  };
  auto const again = [&](tensor const& v) {
    vv::graph const g = vv::optimize(vv::make_fx(inner_jacobian)(v));
    return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]);
  };
  auto const plain = [&](tensor const& v) { return vv::sum(inner_jacobian(v)); };
  tensor const want = vv::grad(plain)(x);
  CHECK(std::abs(elements(want)[0]) > 0.1);
  CHECK(difference(vv::grad(again)(x), want, 1e-12) == "");
  vv::graph const outer = vv::make_fx(vv::grad(again))(x);
  CHECK(difference(vv::interpret(outer, vv::boxed_args(x))[0], want, 1e-12) == "");
}

TEST_CASE("compile: tensors made of C++ values are new in each call", "[graph][compile][MX-3]") {
  tensor const x = from({1.5, -1.75}, {2});
  auto const agrees = [&](auto const& f) {
    auto const compiled = vv::compile(f);
    for (double by : {1.0, 2.0, -3.0}) CHECK(difference(compiled(x * by), f(x * by)) == "");
  };
  agrees([](tensor const& v) {
    tensor const t({1.0, 2.0});
    vv::add_(t, v);
    return t * t;
  });
  agrees([](tensor const& v) {
    tensor const t({1.0, 2.0});
    tensor const before = t * v;
    vv::add_(vv::select(t, 0, 1), 1.0);
    return before + t * v;
  });
  agrees([](tensor const& v) { // no constant holds these
    tensor const t({(std::int64_t{1} << 60) + 1, std::int64_t{2}});
    vv::add_(t, vv::to(v, dtype::int64));
    return t + 1;
  });
  agrees([](tensor const& v) {
    tensor const step({1.0, 2.0});
    auto const walk = [&](tensor const& c, tensor const& e) {
      tensor const n = c * step + e;
      return std::pair(n, n * tensor({0.5, 2.0}));
    };
    return vv::scan(walk, v, vv::stack({v, v * 2.0}, 0)).second;
  });
  agrees([](tensor const& v) {
    tensor const t({1.0, 2.0});
    return vv::grad([&](tensor const& u) { return vv::sum(u * u * t); })(v);
  });
  auto const handles = [](tensor const& v) {
    tensor const t({1.0, 2.0});
    vv::add_(t, v);
    return t.data() * v;
  };
  CHECK_THROWS_WITH(vv::compile(handles)(x), ContainsText("another handle") && ContainsText("use detach"));
}

TEST_CASE("optimize: dtypes that no constant has are computed in each run", "[graph][optimize]") {
  tensor const x = from({1.5, -1.75}, {2});
  for (dtype const t : {dtype::float16, dtype::bfloat16, dtype::int8, dtype::int16}) {
    auto const f = [t](tensor const& v) {
      tensor const one = vv::to(vv::reshape(vv::ones({1}), dims{}), t);
      return vv::to(v, t) * one + vv::to(vv::arange(2), t);
    };
    CHECK(difference(vv::interpret(vv::optimize(vv::make_fx(f)(x)), vv::boxed_args(x))[0], f(x)) == "");
  }
}
