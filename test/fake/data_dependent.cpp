// SPDX-License-Identifier: BSL-1.0
// Sizes that depend on data, in traces.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <sstream>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::tracing::symbolic;

namespace {
tensor matrix(std::initializer_list<double> v, index_t rows) {
  return vv::reshape(vector_of(v), dims{rows, static_cast<index_t>(v.size()) / rows});
}
std::string text(vv::graph const& g) {
  std::ostringstream s;
  s << g;
  return s.str();
}
tensor const seen = matrix({1, 0, 3, 0, 5, 2}, 2), other = matrix({9, 0, 7, 0, 8, 0, 4, 3}, 2);
/// The graph of f, traced on one tensor, is f on others.
template <class F>
vv::graph same_values(F const& f) {
  vv::graph const g = vv::make_fx(f, symbolic)(seen);
  CHECK(vv::verify(g));
  for (tensor const& x : {seen, other, other * 0.0})
    CHECK(elements(vv::interpret(g, vv::boxed_args(x))[0]) == elements(f(x)));
  return g;
}
/// ... and its gradient too.
template <class F>
vv::graph same(F const& f) {
  vv::graph const g = same_values(f);
  auto const run = [&](tensor const& x) { return tensor(vv::interpret(g, vv::boxed_args(x))[0]); };
  auto const of = [](auto const& h) { return vv::grad([h](tensor const& x) { return vv::sum(h(x)); }); };
  for (tensor const& x : {seen, other, other * 0.0}) CHECK(elements(of(run)(x)) == elements(of(f)(x)));
  vv::graph const slope = vv::make_fx(of(f), symbolic)(seen);
  CHECK(elements(vv::interpret(slope, vv::boxed_args(other))[0]) == elements(of(f)(other)));
  CHECK(vv::this_thread_state.quiet());
  return g;
}
} // namespace

TEST_CASE("a number read in a trace is an operator, and a symbol behind it", "[fake][unbacked][MX-S09]") {
  vv::graph const g = same([](tensor const& x) {
    auto const n = vv::item(vv::sum(vv::to(x, dtype::int64)));
    return vv::scalar_tensor(n) * x;
  });
  CHECK(text(g).find("_local_scalar_dense(%2, [u0])") != std::string::npos);
  CHECK(text(g).find("scalar_tensor([u0])") != std::string::npos);
}
TEST_CASE("sizes that depend on data, and what is computed with them", "[fake][unbacked][SL-S06]") {
  same([](tensor const& x) { return vv::exp(vv::masked_select(x, vv::gt(x, 1.5))); });
  same([](tensor const& x) {
    tensor const s = vv::masked_select(x, vv::gt(x, 1.5));
    return vv::sum(s) * x + vv::sum(s * s) / vv::scalar_tensor(vv::item(vv::scalar_tensor(s.sizes()[0])) + 1);
  });
  vv::graph const g = same([](tensor const& x) {
    tensor const a = vv::masked_select(x, vv::gt(x, 1.5)), b = vv::masked_select(x, vv::lt(x, 4.5));
    return vv::cat(std::vector{a, b}, 0) * 2.0;
  });
  CHECK(text(g).find("float64[u0 + u1]") != std::string::npos);
  same([](tensor const& x) { return vv::to(vv::nonzero(x), dtype::float64) * vv::sum(x); });
}
TEST_CASE("numbers read before and inside of branches and loops", "[fake][unbacked][SL-S04][CD-S26]") {
  same([](tensor const& x) { // a branch knows the size
    tensor const s = vv::masked_select(x, vv::gt(x, 1.5));
    return vv::cond(
        vv::sum(x) > 5.0, [](tensor const& u) { return u * 2.0; }, [](tensor const& u) { return u - 1.0; }, s);
  });
  same_values([](tensor const& x) { // each reads one of its own
    auto const scaled = [](double by) {
      return [by](tensor const& u) {
        auto const n = vv::item(vv::sum(vv::to(vv::gt(u, by), dtype::int64)));
        return vv::scalar_tensor(n) * u;
      };
    };
    return vv::cond(vv::sum(x) > 5.0, scaled(1.5), scaled(2.5), x);
  });
  same_values([](tensor const& x) {
    return vv::map([](tensor const& r) { return vv::sum(vv::masked_select(r, vv::gt(r, 1.5))); }, x);
  });
}
TEST_CASE("predicates made of sizes", "[fake][unbacked][CD-S15][CD-S25]") {
  auto const twice = [](tensor const& u) { return u + u; };
  auto const squared = [](tensor const& u) { return u * u; };
  auto const by_size = [&](tensor const& x) {
    return vv::cond(vv::eq(vv::scalar_tensor(x.sizes()[1]), 4), twice, squared, x);
  };
  vv::graph const g = same(by_size);
  CHECK(elements(vv::interpret(g, vv::boxed_args(other))[0]) ==
        elements(other + other)); // the one not taken in the trace
  same([&](tensor const& x) {
    tensor const s = vv::masked_select(x, vv::gt(x, 1.5));
    return vv::cond(vv::gt(vv::scalar_tensor(s.sizes()[0]), 3), twice, squared, s) * 2.0;
  });
}
TEST_CASE("what a program says of a number is checked in each run", "[fake][unbacked]") {
  auto const f = [](tensor const& x) {
    tensor const s = vv::masked_select(x, vv::gt(x, 1.5));
    vv::check(vv::relation::less_equal, s.sizes()[0], 3);
    return s * 2.0;
  };
  vv::graph const g = vv::make_fx(f, symbolic)(seen);
  CHECK(elements(vv::interpret(g, vv::boxed_args(seen))[0]) == elements(f(seen)));
  CHECK_THROWS_AS(vv::interpret(g, vv::boxed_args(other)), vv::shape_error);
  auto const decides = [](tensor const& x) { return vv::nonzero(x).sizes()[0] == 4 ? x : x * 2.0; };
  CHECK_THROWS_WITH(vv::make_fx(decides, symbolic)(seen), Catch::Contains("check"));
}
TEST_CASE("the same number until somebody writes", "[fake][unbacked][FK-S24]") {
  vv::shape_environment environment;
  vv::fake_mode mode({.environment = &environment});
  vv::with_fake(
      mode,
      [&](tensor const& a) {
        tensor const n = vv::sum(vv::to(a, dtype::int64));
        vv::extent const first = vv::item(n), second = vv::item(n);
        CHECK(known_equal(first, second));
        vv::add_(n, 1);
        CHECK_THROWS_AS(first == vv::item(n), vv::data_dependent_error);
        return n;
      },
      seen);
}
TEST_CASE("where nobody can know", "[fake][unbacked][FK-S11]") {
  vv::fake_mode mode;
  auto const f = [](tensor const& x) { return vv::nonzero(x); };
  CHECK_THROWS_AS(vv::with_fake(mode, f, seen), vv::data_dependent_error);
  CHECK_THROWS_AS(vv::make_fx(f, vv::tracing::fake)(seen), vv::data_dependent_error);
  CHECK_THROWS_AS(vv::make_fx(f)(seen), vv::transform_error);
  CHECK_THROWS_AS(vv::compile(f)(seen), vv::transform_error);
  vv::graph const g = vv::make_fx(f, symbolic)(seen);
  CHECK_THROWS_AS(vv::fuse(g), vv::error);
}
TEST_CASE("a trace on fakes inside of a symbolic one has no sizes of its own", "[fake][unbacked]") {
  auto const first = [](tensor const& v) {
    vv::extent const k = vv::item(vv::count_nonzero(v > 0.0));
    vv::check_is_size(k);
    vv::check(vv::relation::less_equal, k, v.sizes()[0]);
    return vv::sum(vv::slice(v, 0, 0, k));
  };
  std::string printed;
  auto const inner = [&](tensor const& v) -> tensor {
    vv::graph const g = vv::make_fx([](tensor const& u) { return vv::sin(u); }, vv::tracing::fake)(v);
    printed = to_string(g); // sizes by the names of the outer program
    return vv::interpret(vv::make_fx(first, vv::tracing::fake)(v), vv::boxed_args(v))[0];
  };
  auto const outer = [&](tensor const& v) -> tensor {
    return vv::interpret(vv::make_fx(inner, symbolic)(v), vv::boxed_args(v))[0];
  };
  tensor const x({0.75, -1.0, 2.0});
  auto const message = Catch::Contains("trace the function once, by tracing::symbolic");
  CHECK_THROWS_WITH(outer(x), message);
  CHECK(printed.find("float64[s0] = sin") != std::string::npos);
  CHECK_THROWS_WITH(vv::grad(outer)(x), message); // it gave the derivative of a sum of no elements
  CHECK(vv::this_thread_state.quiet());
}
