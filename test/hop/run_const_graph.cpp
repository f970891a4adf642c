// SPDX-License-Identifier: BSL-1.0
// Graphs of constants as calls in other graphs.
#include "../sample/value.hpp"

#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/hop/run_const_graph.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using reals = std::vector<double>;

TEST_CASE("run_const_graph: the graph, one node in others, and its derivatives", "[hop][run_const_graph]") {
  tensor const w = vector_of({1, 2}), x = vector_of({3, 4});
  vv::graph const scale = vv::make_fx([](tensor const& a) { return std::pair(vv::sum(a * a), a * 2.0); })(w);
  auto const f = [&](tensor const& v, tensor const& c) {
    auto const r = vv::run_const_graph(scale, std::vector<tensor>{c});
    return v * r[0] + r[1];
  };
  reals const expected{3 * 5 + 2, 4 * 5 + 4};
  CHECK(elements(f(x, w)) == expected);
  vv::graph const g = vv::make_fx(f)(x, w);
  REQUIRE(vv::verify(g));
  int calls = 0;
  for (vv::node const& n : g) calls += n.op == &vv::hop_handle<vv::run_const_graph_t>;
  CHECK(calls == 1);
  CHECK(elements(vv::interpret(g, vv::boxed_args(x, w))[0]) == expected);
  CHECK(elements(vv::fuse(g)(vv::boxed_args(x, w))[0]) == expected);
  CHECK(elements(vv::interpret(vv::make_fx(f, vv::tracing::fake)(x, w), vv::boxed_args(x, w))[0]) == expected);
  auto const by_constant = [&](tensor const& c) { return vv::sum(f(x, c)); };
  CHECK(elements(vv::grad(by_constant)(w)) == reals{7 * 2 * 1 + 2, 7 * 2 * 2 + 2});
  vv::graph const both = vv::make_fx([&](tensor const& c, tensor const& v) {
    return vv::grad([&](tensor const& d) { return vv::sum(f(v, d)); })(c);
  })(w, x);
  CHECK(elements(vv::interpret(both, vv::boxed_args(w, x))[0]) == reals{16, 30});
  CHECK(elements(vv::vmap([&](tensor const& c) { return by_constant(c); })(vv::reshape(w, dims{1, 2}))) ==
        reals{expected[0] + expected[1]});
  auto const p = vv::export_program([&](tensor const& v) { return f(v, w); })(x);
  CHECK(elements(vv::program_from_text(vv::to_text(p)).signature.inputs.size() == 2 ? p(x)[0] : x) == expected);
  CHECK_THROWS_AS(vv::run_const_graph(scale, std::vector<tensor>{x, w}), vv::error);
}
