// SPDX-License-Identifier: BSL-1.0
// Graphs traced by the compiler: counts of operators, shapes, symbolic sizes.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::dims;

constexpr auto f = [](auto x, auto y) { return vv::tanh(x * y) + x; };
constexpr auto g = vv::trace(f, vv::spec<float, 8, 3>, vv::spec<float, 3>);
static_assert(g.operations() == 3 && g.count(vv::tanh) == 1 && g.count(vv::mul) == 1 && g.count(vv::add) == 1 &&
              g.count(vv::sin) == 0);
static_assert(g.nodes[g.results[0]].out == vv::meta{vv::dtype::float32, {8, 3}});
static_assert(g.sizes.results == 1 && g.regions[0].inputs == 2);

// promotion writes its conversions into the graph
constexpr auto h = vv::trace(f, vv::spec<double, 2>, vv::spec<float, 2>);
static_assert(h.count(vv::to) == 1 && h.nodes[h.results[0]].out.type == vv::dtype::float64);

// symbolic sizes: equal names are equal sizes
constexpr auto s = vv::trace(f, vv::spec<float, vv::dim<"n">, 3>, vv::spec<float, vv::dim<"n">, 1>);
static_assert(s.nodes[s.results[0]].out.sizes == dims{s.symbol("n"), 3});
constexpr auto r = vv::trace([](auto x) { return vv::sum(x, vv::axis<1>); }, vv::spec<float, vv::dim<"n">, 3>);
static_assert(r.nodes[r.results[0]].out.sizes == dims{r.symbol("n")});
constexpr auto rows =
    vv::trace([](auto x, auto y) { return vv::matmul(x, y); }, vv::spec<float, vv::dim<"n">, 3>, vv::spec<float, 3, 4>);
static_assert(rows.nodes[rows.results[0]].out.sizes == dims{rows.symbol("n"), 4} && rows.count(vv::mm) == 1);

// transforms inside leave only operators behind
constexpr auto gradient = vv::trace(vv::grad([](auto x) { return vv::sum(vv::sin(x)); }), vv::spec<double, 4>);
static_assert(gradient.count(vv::cos) == 1 && gradient.nodes[gradient.results[0]].out.sizes == dims{4});
constexpr auto mapped = vv::trace(vv::vmap([](auto x, auto y) { return vv::dot(x, y); }, vv::in_dims<0, vv::none>),
                                  vv::spec<float, 5, 3>, vv::spec<float, 3>);
static_assert(mapped.nodes[mapped.results[0]].out.sizes == dims{5});
constexpr auto second = vv::trace(vv::grad(vv::grad([](auto x) { return x * x * x; })), vv::spec<double>);
static_assert(second.nodes[second.results[0]].out.sizes == dims{});
constexpr auto tangent =
    vv::trace([](auto x, auto dx) { return vv::jvp([](auto v) { return vv::exp(v); }, std::tuple(x), std::tuple(dx)); },
              vv::spec<float, 2>, vv::spec<float, 2>);
static_assert(tangent.sizes.results == 2 && tangent.count(vv::exp) == 1);

// attributes are data while tracing, so loops may compute them
constexpr auto loop = vv::trace(
    [](auto x) {
      auto y = vv::slice(x, 0, 0, 1);
      for (int k = 1; k < 4; ++k) y = y + vv::slice(x, 0, k, k + 1);
      return y;
    },
    vv::spec<float, 4>);
static_assert(loop.count(vv::slice) == 4 && loop.count(vv::add) == 3);
// constants are computed, not recorded
constexpr auto constant = vv::trace([](auto x) { return x * vv::exp(vv::zeros_like(x)); }, vv::spec<float, 4>);
static_assert(constant.count(vv::exp) == 0);
// constants that a transform makes, as operands of operators that are not elementwise
constexpr auto part = vv::trace(vv::grad([](auto x) { return vv::sum(vv::slice(x, vv::axis<0>, vv::range<1, 3>)); }),
                                vv::spec<double, 4>);
static_assert(part.count(vv::slice_backward) == 1 && part.nodes[part.results[0]].out.sizes == dims{4});
// inputs keep their order
constexpr auto first_of_two =
    vv::trace([](auto x, auto) { return vv::sin(x); }, vv::spec<float, 2>, vv::spec<double, 3>);
static_assert(first_of_two.nodes[first_of_two.results[0]].out == vv::meta{vv::dtype::float32, {2}});
static_assert(first_of_two.nodes[0].out.type == vv::dtype::float32 &&
              first_of_two.nodes[1].out.type == vv::dtype::float64);

// array constants are data of the graph; equal ones beside each other stay single numbers, counts a count
constexpr auto table = vv::trace([](auto x) { return x * vv::array<float, 3>{1, 4, 2}; }, vv::spec<float, 2, 3>);
static_assert(vv::verify(table) && table.operations() == 1 && table.sizes.constants == 3 && table.constants[1] == 4);
static_assert(vv::trace([](auto x) { return x * vv::array<float, 3>{4, 4, 4}; }, vv::spec<float, 3>).sizes.constants ==
              0);
static_assert(vv::trace([](auto x) { return x * vv::arange<float, 3>; }, vv::spec<float, 3>).count(vv::arange_op) == 1);
// static values beside traced ones, in transforms
constexpr auto stacked = vv::trace([](auto p) { return vv::stack(std::tuple{p, 1.0}, vv::axis<0>); }, vv::spec<double>);
static_assert(vv::verify(stacked) && stacked.count(vv::cat) == 1);
constexpr auto rows_of = vv::trace(
    [](auto p) {
      return vv::vmap([](auto e, auto q) { return e * q; }, vv::in_dims<0, vv::none>)(vv::array<double, 2>{1, 2}, p);
    },
    vv::spec<double, 3>);
static_assert(vv::verify(rows_of) && rows_of.nodes[rows_of.results[0]].out.sizes == dims{2, 3});

// both forms answer the same questions
constexpr auto questions = [](auto const& graph) {
  int named = 0;
  for (vv::node const& n : graph) named += n.op->kind != vv::op_kind::placeholder;
  return graph.count(vv::mul) == 1 && graph.operations() == 3 && named == 3 && vv::verify(graph);
};
static_assert(questions(g) && questions(g.thaw()) &&
              questions(vv::trace_graph(f, vv::meta{vv::dtype::float32, {8, 3}}, vv::meta{vv::dtype::float32, {3}})));
static_assert(questions(vv::freeze([] { return g.thaw(); })));

// equality up to the numbers of nodes
static_assert(vv::equal(g, g.thaw()) &&
              vv::equal(g.thaw(), vv::trace([](auto x, auto y) { return vv::tanh(x * y) + x; }, vv::spec<float, 8, 3>,
                                            vv::spec<float, 3>)));
constexpr auto first_left = vv::trace(
    [](auto x) {
      auto a = vv::sin(x);
      auto b = vv::cos(x);
      return a * b;
    },
    vv::spec<float, 4>);
constexpr auto first_right = vv::trace(
    [](auto x) {
      auto b = vv::cos(x);
      auto a = vv::sin(x);
      return a * b;
    },
    vv::spec<float, 4>);
static_assert(first_left.nodes[1].op != first_right.nodes[1].op && vv::equal(first_left, first_right));
constexpr bool same_as_table(auto other) { return vv::equal(table, vv::trace(other, vv::spec<float, 2, 3>)); }
static_assert(same_as_table([](auto x) { return x * vv::array<float, 3>{1, 4, 2}; }) &&
              !same_as_table([](auto x) { return x * vv::array<float, 3>{1, 4, 3}; }));
static_assert(!same_as_table([](auto x) { return vv::array<float, 3>{1, 4, 2} * x; }) &&
              !same_as_table([](auto x) { return x + vv::array<float, 3>{1, 4, 2}; }));
static_assert(!vv::equal(g, vv::trace(f, vv::spec<float, 8, 3>, vv::spec<float, 1>)) && !vv::equal(g, s) &&
              !vv::equal(g, h));
constexpr auto shared = vv::trace(
    [](auto x) {
      auto a = vv::sin(x);
      vv::cos(x);
      return a * a;
    },
    vv::spec<float, 4>);
constexpr auto repeated = vv::trace([](auto x) { return vv::sin(x) * vv::sin(x); }, vv::spec<float, 4>);
static_assert(!vv::equal(shared, repeated) && vv::equal(vv::optimize(shared.thaw()), vv::optimize(repeated.thaw())));
constexpr bool keeps(auto a, auto b) {
  return vv::equal(vv::trace(a, vv::spec<double>), vv::trace(b, vv::spec<double>));
}
static_assert(keeps(
                  [](auto x) {
                    vv::sin(x), vv::exp(x);
                    return x;
                  },
                  [](auto x) {
                    vv::sin(x), vv::exp(x);
                    return x;
                  }) &&
              !keeps(
                  [](auto x) {
                    vv::sin(x), vv::exp(x);
                    return x;
                  },
                  [](auto x) {
                    vv::sin(x), vv::cos(x);
                    return x;
                  }));
constexpr auto branch = [](auto x) {
  return vv::cond(x > 0.0, [](auto a) { return a * 2.0; }, [](auto a) { return a - 1.0; }, x);
};
static_assert(keeps(branch, branch) && !keeps(branch, [](auto x) {
                return vv::cond(x > 0.0, [](auto a) { return a * 2.0; }, [](auto a) { return a - 2.0; }, x);
              }));
