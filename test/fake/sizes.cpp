// SPDX-License-Identifier: BSL-1.0
// Sizes that depend on data, that conditions choose, and that functions capture.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;
using vv::extent;
using vv::relation;

namespace {
using texts = std::vector<std::string>;
bool same(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
} // namespace

TEST_CASE("sizes: one that depends on data is the one it is checked against", "[fake][shape][FK-S25]") {
  vv::shape_environment e;
  vv::fake_mode mode{{.environment = &e}};
  tensor const t = mode.from_tensor(vv::full({}, 3, dtype::int64));
  vv::fake_mode_guard const on(mode);
  extent const u = mode.item(t), n = 10;
  e.check_is_size(u);
  tensor const z = vv::zeros(dims{u}), y = vv::ones(dims{n});
  e.check(relation::equal, u, n);
  bool const four = z.sizes()[0] == 4; // asks for no data any more
  CHECK_FALSE(four);
  CHECK((z + y).sizes() == dims{10});
}

TEST_CASE("sizes: guards say what relation is asked for, and that sizes are 2 at least", "[fake][shape][FK-S26]") {
  vv::shape_environment e;
  extent const a = e.size(8, {0, 0}), b = e.size(4, {1, 0}, false);
  CHECK(a == 2 * b);
  bool relation_found = false, least_found = false;
  for (auto const& g : e.guards_in_cpp()) {
    relation_found = relation_found || g.find("x0.size(0)") != std::string::npos;
    least_found = least_found || g == "2 <= x1.size(0)";
  }
  CHECK(relation_found);
  CHECK(least_found);
  CHECK(e.guards().size() == 1);
  vv::shape_environment of_numbers;
  extent const c = 8, d = 4;
  CHECK(c == 2 * d);
  CHECK(of_numbers.guards().empty());
}

TEST_CASE("sizes: one that a condition chooses is not known before somebody asks", "[fake][shape][FK-S23]") {
  using vv::sym_ite;
  vv::shape_environment e;
  extent const t = e.size(5, {0, 0}), f = e.size(4, {1, 0});
  CHECK(vv::known_equal(sym_ite(true, t, f), t));
  extent const r = sym_ite(vv::sym_eq(t, 5), t, f), s = sym_ite(vv::sym_eq(f, 5), t, f);
  CHECK(e.guards().empty());
  CHECK((e.hint(r) == 5 && e.hint(s) == 4));
  CHECK(e.guards().empty());
  CHECK(r == 5);
  CHECK(s == 4);
  CHECK(e.guards().size() == 2);
  index_t const as_now[] = {5, 4}, third[] = {7, 4}, by_f[] = {7, 5}, both[] = {5, 6};
  CHECK(e.hold(as_now));
  CHECK_FALSE(e.hold(third)); // then r is f, 4
  CHECK_FALSE(e.hold(by_f));  // then s is t, 7
  CHECK_FALSE(e.hold(both));  // then s is f, 6
  // Decided, a condition is the guard that a comparison would be.
  vv::shape_environment other;
  extent const n = other.size(6, {0, 0}), m = other.size(3, {1, 0});
  CHECK_FALSE(static_cast<bool>(!vv::sym_lt(m, n) | vv::sym_eq(n, m)));
  CHECK(other.guards().size() == 1);
  CHECK(static_cast<bool>(vv::sym_ge(n, m) & vv::sym_ne(n, m)));
  vv::shape_environment plain;
  extent const k = plain.size(6, {0, 0}), l = plain.size(3, {1, 0});
  CHECK(static_cast<bool>(vv::sym_not(vv::sym_le(k, l))));
  CHECK(plain.guards_in_cpp().back() == "x1.size(0) < x0.size(0)");
  static_assert(sym_ite(vv::sym_gt(3, 2), 7, 8) == 7 && sym_ite(vv::sym_le(3, 2), 7, 8) == 8);
  static_assert(vv::sym_min(2, 3) == 2 && vv::sym_max(2, 3) == 3);
}

TEST_CASE("sizes: a graph has a symbol once, however often the size appears", "[fake][shape][make_fx][FK-S27]") {
  auto const f = [](tensor const& x, tensor const& y) { return x + y + vv::sum(vv::zeros(dims{x.sizes()[0]})); };
  auto const g = vv::make_fx(f, vv::tracing::symbolic)(counted({3, 1}), counted({5}));
  CHECK(same(vv::interpret(g, boxed_args(counted({4, 1}), counted({6})))[0], f(counted({4, 1}), counted({6}))));
  int symbols = 0;
  for (std::size_t k = 0; k < g.expressions.size(); ++k)
    symbols += g.expressions[extent::entry(static_cast<index_t>(k))].op == vv::size_op::symbol;
  CHECK(symbols == 2);
}

TEST_CASE("make_fx: arithmetic of sizes", "[graph][make_fx][shape][MX-S10]") {
  auto const f = [](tensor const& x) { return vv::zeros(dims{10 - x.sizes()[0]}, dtype::float64) + vv::sum(x); };
  auto const g = vv::make_fx(f, vv::tracing::symbolic)(counted({3}));
  for (index_t n : {3, 4, 7}) CHECK(same(vv::interpret(g, boxed_args(counted({n})))[0], f(counted({n}))));
}

TEST_CASE("functions in functions: sizes that captured tensors share", "[fake][hop][make_fx][shape][SL-S01]") {
  // x is {s2, s0}, y {s0, s1}; each function takes the tensors, and finds the symbols in the table of the graph
  auto const f = [](tensor const& x, tensor const& y) {
    auto const outer = [&](tensor const& v) {
      return vv::cond(
          vv::lt(vv::sum(v), 1e9), [&](tensor const& u) { return tensor(vv::matmul(u, y)); },
          [&](tensor const& u) { return tensor(vv::matmul(u, y) * 2.0); }, v);
    };
    return vv::cond(
        vv::gt(vv::sum(x), -1e9), outer, [&](tensor const& v) { return tensor(vv::matmul(v, y) * 3.0); }, x);
  };
  auto const g = vv::make_fx(f, vv::tracing::symbolic)(counted({4, 3}), counted({3, 5}));
  CHECK(vv::verify(g));
  REQUIRE(g.regions.size() == 5);
  for (auto const& r : g.regions) CHECK(r.inputs == 2);
  tensor const x = counted({2, 6}), y = counted({6, 7});
  CHECK(same(vv::interpret(g, boxed_args(x, y))[0], vv::matmul(x, y)));
  CHECK_THROWS_AS(vv::interpret(g, boxed_args(x, counted({5, 7}))), vv::error);
}

TEST_CASE("functions in functions: sizes that are computed", "[fake][hop][make_fx][shape][SL-S07]") {
  auto const f = [](tensor const& x, tensor const& y) {
    tensor const pairs = vv::reshape(x, dims{-1, 2}), both = vv::cat(std::vector{pairs, y}, 0);
    return vv::cond(
        vv::gt(vv::sum(x), -1e9), [&](tensor const& v) { return tensor(vv::sum(both, 1) + vv::sum(v)); },
        [&](tensor const&) { return tensor(vv::sum(both, 1)); }, x);
  };
  using vv::dim_dynamic;
  std::vector<dim_dynamic> const rows{dim_dynamic::dynamic, dim_dynamic::fixed};
  auto const fixed = vv::make_fx(f, vv::tracing::symbolic({rows, rows}))(counted({4, 6}), counted({5, 2}));
  CHECK(vv::verify(fixed));
  CHECK(
      same(vv::interpret(fixed, boxed_args(counted({3, 6}), counted({4, 2})))[0], f(counted({3, 6}), counted({4, 2}))));
  auto const g = vv::make_fx(f, vv::tracing::symbolic)(counted({4, 6}), counted({5, 2}));
  CHECK(vv::verify(g)); // by rules alone: the samples of sizes are odd, and do not fit its guard
  tensor const x = counted({2, 10}), y = counted({3, 2});
  CHECK(same(vv::interpret(g, boxed_args(x, y))[0], f(x, y)));
}

TEST_CASE("functions in functions: a size captured two deep", "[fake][hop][make_fx][shape][SL-S08]") {
  auto const f = [](tensor const& x) {
    extent const rows = x.sizes()[0];
    auto const inner = [&](tensor const& v) { return tensor(vv::reshape(v * 2.0, dims{rows, 2})); };
    auto const outer = [&](tensor const& v) {
      return vv::cond(
          vv::lt(vv::sum(v), 1e9), inner, [&](tensor const& u) { return tensor(vv::reshape(u, dims{rows, 2})); }, v);
    };
    return vv::cond(
        vv::gt(vv::sum(x), -1e9), outer, [&](tensor const& v) { return tensor(vv::reshape(v * 3.0, dims{rows, 2})); },
        x);
  };
  using vv::dim_dynamic;
  std::vector<dim_dynamic> const policy{dim_dynamic::dynamic, dim_dynamic::fixed};
  auto const g = vv::make_fx(f, vv::tracing::symbolic({policy}))(counted({4, 2}));
  CHECK(vv::verify(g));
  for (index_t n : {2, 4, 9}) CHECK(same(vv::interpret(g, boxed_args(counted({n, 2})))[0], counted({n, 2}) * 2.0));
}
