// SPDX-License-Identifier: BSL-1.0
// Modes around, and within, traced and fused functions.
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

namespace {
tensor number(double v) { return vv::full({}, v, dtype::float64); }

/// A mode that doubles the results of all operators.
struct doubling {
  auto process(auto const& op, auto const&... x) { return vv::mul(op(x...), 2.0); }
};
} // namespace

TEST_CASE("a mode that a traced function switches on is in the graph, or refused", "[graph][mode]") { // A2
  tensor const x = vector_of({1, 2, 3});
  auto const f = [](tensor const& t) {
    doubling m;
    vv::mode_guard const on(m);
    return vv::sin(t) * 2.0;
  };
  auto const in_map = [f](tensor const& t) { return vv::map([f](tensor const& r) { return f(r); }, t); };
  auto const in_cond = [f](tensor const& t) { return vv::cond(vv::sum(t) > 0, f, f, t); };
  auto const is_kept = [&](auto const& g) {
    auto const eager = elements(g(x));
    CHECK(elements(vv::interpret(vv::make_fx(g)(x), boxed_args(x))[0]) == eager);
    CHECK(vv::this_thread_state.quiet());
  };
  is_kept(f);
  is_kept(in_map);
  is_kept(in_cond);
  is_kept(vv::vmap(f));
  is_kept(vv::grad([f](tensor const& t) { return vv::sum(f(t)); }));
  for (auto const& run : std::vector<std::function<void()>>{
           [&] { (void)vv::compile(f)(x); }, [&] { (void)vv::compile(in_cond)(x); },
           [&] { (void)vv::grad([&](tensor const& t) { return vv::sum(in_map(t)); })(x); },
           [&] { (void)vv::compile(vv::vmap(f))(x); }, [&] { (void)vv::linearize(f, x); }}) {
    CHECK_THROWS_WITH(run(), ContainsText("a mode was switched on"));
    CHECK(vv::this_thread_state.quiet());
  }
  // Around the call it counts.
  doubling m;
  vv::graph const g = vv::make_fx([](tensor const& t) { return vv::sin(t); })(x);
  auto const compiled = vv::compile([](tensor const& t) { return vv::sin(t); });
  vv::mode_guard const on(m);
  auto const twice = elements(vv::sin(x));
  CHECK(elements(vv::interpret(g, boxed_args(x))[0]) == twice);
  CHECK(elements(compiled(x)) == twice);
}

TEST_CASE("fused functions refuse to run under a mode", "[fuse][mode]") { // A3
  tensor const x = number(0);
  auto const f = [](auto const& v) { return vv::exp(v) + 1.0; };
  constexpr auto fixed = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v) + 1.0; });
  constexpr auto tables = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v) + 1.0; }, vv::table_driven);
  auto const of_graph = vv::fuse(vv::make_fx(f)(x));
  CHECK(elements(fixed(x)) == doubles({2}));
  doubling m;
  tensor const y = vv::with(m, [&](tensor const& v) { return f(v); }, x);
  CHECK(elements(y) == doubles({6}));
  CHECK(elements(vv::with(m, [&](tensor const& v) { return vv::compile(f)(v); }, x)) == doubles({6}));
  CHECK_THROWS_WITH(vv::with(m, fixed, x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(
      vv::with(m, [&](tensor const& v) { return of_graph(boxed_args(v))[0]; }, x), ContainsText("mode is on"));
  vv::mode_guard const on(m);
  CHECK_THROWS_WITH(fixed(x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(tables(x), ContainsText("mode is on"));
  CHECK_THROWS_WITH(of_graph(boxed_args(x)), ContainsText("mode is on"));
  vv::no_dispatch const unseen;
  CHECK(elements(fixed(x)) == doubles({2}));
}
