// SPDX-License-Identifier: BSL-1.0
// What a traced function may do with eager autograd, undefined tensors and the generator.
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

TEST_CASE("undefined tensors in traced functions are refused", "[graph]") { // B2
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& v) { return v.dim() == 1 ? tensor() : v; };
  CHECK_THROWS_WITH(vv::make_fx(f)(x), ContainsText("undefined"));
  CHECK_THROWS_WITH(vv::compile(f)(x), ContainsText("undefined"));
  CHECK_THROWS_WITH(vv::make_fx([](tensor const& v) { return vv::sin(tensor()) + v; })(x), ContainsText("undefined"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("eager autograd in a traced function is in the graph, its hooks are refused", "[graph][autograd]") {
  tensor const x = vector_of({1, 2, 3});
  auto const hooked = [](tensor const& v) {
    auto const pack = [](tensor const& t) { return t; };
    vv::saved_tensors_hooks const hooks(pack, pack);
    return vv::sum(v * v);
  };
  CHECK_THROWS_WITH(vv::make_fx(hooked)(x), ContainsText("saved tensor hooks"));
  CHECK_THROWS_WITH(vv::compile(hooked)(x), ContainsText("saved tensor hooks"));
  auto const records = [](tensor const& v) {
    tensor const u = vv::detach(v * 1.0);
    u.requires_grad_();
    vv::sum(u * u).backward();
    return u.grad();
  };
  CHECK(elements(vv::interpret(vv::make_fx(records)(x), boxed_args(x))[0]) == elements(records(x)));
  CHECK_THROWS_WITH(vv::compile(records)(x), ContainsText("requires_grad_"));
  vv::library lib("faults");
  lib.def("twice(Tensor(a!) x) -> Tensor(a!)");
  lib.impl("twice", vv::dispatch_key::cpu, [](tensor const& t) -> tensor { return vv::mul_(t, 2.0); });
  auto const calls = [](tensor const& v) { return vv::ops::call("faults::twice", v * 1.0); };
  CHECK(elements(calls(x)) == doubles({2, 4, 6}));
  CHECK_THROWS_WITH(vv::make_fx(calls)(x), ContainsText("faults::twice") && ContainsText("trace"));
  CHECK_THROWS_WITH(vv::compile(calls)(x), ContainsText("faults::twice"));
}

TEST_CASE("the generator may not be set in a traced function", "[graph][random]") {
  tensor const x = vector_of({1, 2, 3});
  auto const seeds = [](tensor const& v) {
    vv::manual_seed(1);
    return v * vv::randn({}, dtype::float64);
  };
  CHECK_THROWS_WITH(vv::make_fx(seeds)(x), ContainsText("manual_seed"));
  CHECK_THROWS_WITH(vv::compile(seeds)(x), ContainsText("manual_seed"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(vv::map(seeds, v)); })(x),
                    ContainsText("manual_seed"));
}

TEST_CASE("draws that no result uses are made all the same: those behind them are as they were", "[graph][random]") {
  tensor const x = vector_of({1, 2, 3});
  auto const check = [&](auto const& f) {
    auto const drawn = [&](auto const& g) {
      vv::manual_seed(7);
      std::vector<double> r = elements(g());
      r.push_back(static_cast<double>(vv::default_generator.offset));
      return r;
    };
    std::vector<double> const eagerly = drawn([&] { return f(x); });
    vv::graph const g = vv::make_fx(f)(x);
    auto const run = vv::fuse(g);
    auto const compiled = vv::compile(f);
    compiled.prepare(x);
    CHECK(drawn([&] { return compiled(x); }) == eagerly);
    CHECK(drawn([&] { return run(boxed_args(x))[0]; }) == eagerly);
    for (vv::graph const& h : {g, vv::dce(g), vv::cse(g), vv::optimize(g)})
      CHECK(drawn([&] { return vv::interpret(h, boxed_args(x))[0]; }) == eagerly);
  };
  auto const draw = [](dims const& sizes) { return vv::randn(sizes, dtype::float64); };
  check([&](tensor const& v) {
    (void)draw({5});
    return v + draw({3});
  });
  check([&](tensor const& v) {
    (void)vv::cond(
        vv::sum(v) > 0.0, [&](tensor const& u) { return u * draw({3}); }, [](tensor const& u) { return u; }, v);
    return v + draw({3});
  });
  check([&](tensor const& v) {
    (void)vv::scan([&](tensor const& c, tensor const&) { return std::pair(c + draw({}), c); }, vv::sum(v), v);
    return v + draw({3});
  });
}
