// SPDX-License-Identifier: BSL-1.0
#include "sample.hpp"

#include <varve/graph/print.hpp>
#include <varve/graph/verify.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <varve_test.hpp>

namespace sample { // its operators hide varve's of the same names

namespace {
constexpr int count(graph const& g, op_handle const& op) {
  int n = 0;
  for (node const& nd : g.nodes) n += nd.op == &op;
  return n;
}
constexpr graph redundant() {
  writer w;
  int const x = w.argument(dims(2, 3)), v = w.argument(dims(4, 3));
  int const one = w.number(1), ones = w.shaped(expand, one, dims(2, 3));
  int const a = w.apply(mul, x, ones), b = w.apply(mul, one, x), n = w.apply(neg, w.apply(neg, a)),
            s = w.apply(add, n, b);
  int const m = w.product(s, w.permuted(v, dims(1, 0))), c = w.apply(add, ones, w.number(2.5)), q = w.apply(add, x, c);
  w.apply(tanh_, q);
  return w.done({m, q});
}
constexpr graph commuted() {
  writer w;
  int const x = w.argument(dims(3)), y = w.argument(dims(3));
  return w.done({w.apply(add, w.apply(mul, x, y), w.apply(mul, y, x)), w.apply(sub, x, y), w.apply(sub, y, x)});
}
constexpr graph zeros() {
  writer w;
  int const x = w.argument(dims(3)), zero = w.number(0), minus = w.number(-0.0);
  return w.done({w.apply(add, x, zero), w.apply(add, x, minus), w.apply(sub, x, zero), w.apply(mul, x, zero)});
}
constexpr graph signs() {
  writer w;
  int const x = w.argument(dims(3)), y = w.argument(dims(3));
  int const a = w.apply(add, x, w.apply(neg, y)), b = w.apply(sub, x, w.apply(mul, w.apply(neg, x), y));
  return w.done({w.apply(add, a, b)});
}
constexpr graph views() {
  writer w;
  int const x = w.argument(dims(2, 3));
  int const same = w.permuted(w.permuted(x, dims(1, 0)), dims(1, 0)),
            flat = w.shaped(reshape, w.shaped(reshape, x, dims(6)), dims(3, 2));
  return w.done({w.apply(tanh_, same), w.apply(tanh_, w.sliced(x, 0, 0, 2)),
                 w.shaped(expand, w.shaped(expand, w.number(1), dims(3)), dims(2, 3)), flat});
}
constexpr graph tables() { // of which all but one operation are known to the compiler
  writer w;
  int const x = w.argument(dims(2, 3)), a = w.table(dims(2, 3)), b = w.table(dims(2, 3)), u = w.table(dims(3, 2));
  int const s = w.apply(add, a, w.permuted(u, dims(1, 0))), c = w.choose(w.apply(gt, a, w.number(0)), s, w.number(2)),
            d = w.apply(div_, c, w.number(2));
  return w.done({w.apply(add, x, d), w.apply(mul, x, w.apply(sub, a, b)),
                 w.apply(mul, x, w.convert(w.table(dims(3), dtype::int64), dtype::float32))});
}
constexpr graph doubled(double n) {
  writer w(dtype::float64);
  int const x = w.argument(dims(12));
  return w.done({w.apply(add, w.apply(mul, w.number(n), x), w.apply(mul, x, w.number(n)))});
}
constexpr graph extremes() {
  writer w(dtype::float64);
  int const x = w.argument(dims(3)), a = w.table(dims(3)), huge = w.apply(mul, a, w.number(1e200)),
            none = w.apply(div_, a, w.number(0));
  return w.done({w.apply(add, x, huge), w.apply(add, x, none)});
}
} // namespace

TEST_CASE("passes: array constants are merged, and small ones computed", "[graph][pass]") {
  STATIC_REQUIRE(verify(tables()));
  constexpr auto o = freeze([] {
    graph const g = tables();
    return optimize(g);
  });
  STATIC_REQUIRE(verify(o));
  STATIC_REQUIRE(o.operations() == 3);
  // a = {0.5, -1, 1.5, -2, 2.5, -3}; a + the transposed one is {1, 0.5, 4, -3, 0.5, -6}
  CHECK(to_string(o) == "%0: float32[2, 3] = placeholder(0)\n"
                        "%1: float32[2, 3] = constant([0.5, 1, 2, 1, 0.25, 1])\n"
                        "%2: float32[2, 3] = add(%0, %1)\n"
                        "%3: float32[2, 3] = constant([0, 0, 0, 0, 0, 0])\n"
                        "%4: float32[2, 3] = mul(%0, %3)\n"
                        "%5: float32[3] = constant([1, 2, 0])\n"
                        "%6: float32[2, 3] = mul(%0, %5)\n"
                        "return %2, %4, %6\n");
  CHECK(cse(tables()).constants.size() == 6 + 6 + 3);
  CHECK(to_dot(o).find("n5 [label=\"constant [1, 2, 0]\\nfloat32[3]\", shape=box];") != std::string::npos);
}
TEST_CASE("passes: what would overflow is not computed by the compiler", "[graph][pass]") {
  constexpr auto o = freeze([] { return optimize(extremes()); });
  CHECK(count(o.thaw(), mul) == 1);
  CHECK(count(o.thaw(), div_) == 1);
}
TEST_CASE("passes: optimize removes what is redundant, dead or constant", "[graph][pass]") {
  constexpr auto counts = [] {
    graph const g = redundant();
    graph const o = optimize(g);
    return std::array<int, 6>{static_cast<int>(g.nodes.size()),
                              static_cast<int>(o.nodes.size()),
                              count(o, mul),
                              count(o, neg),
                              count(o, tanh_),
                              count(o, permute)};
  }();
  STATIC_REQUIRE(counts == std::array<int, 6>{15, 6, 0, 0, 0, 0});
  CHECK(to_string(optimize(redundant())) == "%0: float32[2, 3] = placeholder(0)\n"
                                            "%1: float32[4, 3] = placeholder(1)\n"
                                            "%2: float32[2, 3] = add(%0, %0)\n"
                                            "%3: float32[2, 4] = mm(%2, %1, [0, 1])\n"
                                            "%4: float32 = constant(3.5)\n"
                                            "%5: float32[2, 3] = add(%0, %4)\n"
                                            "return %3, %5\n");
}
TEST_CASE("passes: cse knows that sums and products commute, and differences do not", "[graph][pass]") {
  graph const g = cse(commuted());
  CHECK(count(g, mul) == 1);
  CHECK(count(g, sub) == 2);
}
TEST_CASE("passes: fold keeps x + 0 and x * 0, which have other bits than x and 0", "[graph][pass]") {
  graph const g = optimize(zeros());
  CHECK(count(g, add) == 1);
  CHECK(count(g, sub) == 0);
  CHECK(count(g, mul) == 1);
}
TEST_CASE("passes: fold moves signs into additions", "[graph][pass]") {
  graph const g = optimize(signs());
  CHECK(count(g, neg) == 0);
  CHECK(count(g, sub) == 1);
}
TEST_CASE("passes: fold writes a product with -1 as a negative", "[graph][pass]") {
  graph const g = fold([] {
    writer w;
    int const x = w.argument(dims(3)), y = w.argument(dims(3)), minus = w.number(-1);
    return w.done({w.apply(add, w.apply(mul, minus, x), w.apply(neg, y)), w.apply(mul, w.apply(neg, x), minus)});
  }());
  CHECK(count(g, mul) == 0);
  CHECK(g.results[1] == 0); // x itself
}
TEST_CASE("passes: fold adds a multiple to itself by doubling the number, where no bit changes", "[graph][pass]") {
  constexpr auto sums = [](double n) { return count(fold(doubled(n)), add); };
  STATIC_REQUIRE(sums(3) == 0);
  STATIC_REQUIRE(sums(-100) == 0);
  STATIC_REQUIRE(sums(0.5) == 1); // rounds among the subnormals
  STATIC_REQUIRE(sums(2.5) == 1);
  STATIC_REQUIRE(sums(20000) == 1); // twice that is beyond float16
  using limit = std::numeric_limits<double>;
  double const tiny = limit::denorm_min(), huge = limit::max();
  std::vector<double> const x{tiny,     3 * tiny, -7 * tiny, limit::min(), limit::min() - tiny, 0.1,
                              huge / 3, huge / 5, huge / 6,  -0.0,         limit::infinity(),   limit::quiet_NaN()};
  for (double n : {-1.0, 3.0, 7.0, 100.0, -0.0, 0.5, 9999.0}) {
    INFO(n);
    auto const want = evaluate(doubled(n), {x})[0], got = evaluate(optimize(doubled(n)), {x})[0];
    for (std::size_t k = 0; k + 1 < x.size(); ++k) {
      INFO(x[k]);
      if (n == 0 && k == 10) CHECK(std::isnan(got[k])); // 0 times infinity
      else CHECK(std::bit_cast<std::uint64_t>(got[k]) == std::bit_cast<std::uint64_t>(want[k]));
    }
    CHECK(std::isnan(got.back()));
  }
}
TEST_CASE("passes: fold merges views of views and drops those that change nothing", "[graph][pass]") {
  graph const g = optimize(views());
  CHECK(count(g, permute) == 0);
  CHECK(count(g, slice) == 0);
  CHECK(count(g, expand) == 1);
  CHECK(count(g, reshape) == 2); // the first may copy, and then the result is in memory of its own
  CHECK(count(optimize(views(), varve::purpose::values), reshape) == 1);
  CHECK(count(g, tanh_) == 1);
}
TEST_CASE("verify: a good graph passes, each flaw is named", "[graph][verify]") {
  STATIC_REQUIRE(verify(commuted()));
  auto flawed = [](auto spoil) {
    graph g = commuted();
    spoil(g);
    return verify(g);
  };
  CHECK(flawed([](graph& g) { g.edges[0] = 3; }).what == flaw::operand_out_of_range);
  CHECK(flawed([](graph& g) { g.edges[0] = -1; }).what == flaw::operand_out_of_range);
  CHECK(flawed([](graph& g) { g.nodes[0].value = 7; }).what == flaw::operand_out_of_range);
  CHECK(flawed([](graph& g) { g.nodes[2].op = nullptr; }).what == flaw::operator_missing);
  CHECK(flawed([](graph& g) { g.nodes[2].count = 1; }).what == flaw::operand_count);
  CHECK(flawed([](graph& g) { g.nodes[3].out.sizes = dims(4); }).what == flaw::meta_differs);
  CHECK(flawed([](graph& g) { g.nodes[3].out.sizes = dims(4); }).node == 3);
  CHECK(flawed([](graph& g) { g.nodes[1].op = &neg; }).what == flaw::placeholder_after_operation);
  CHECK(flawed([](graph& g) { g.results[0] = 99; }).what == flaw::result_out_of_range);
  CHECK(flawed([](graph& g) { g.regions[0].node_count = 99; }).what == flaw::region_out_of_range);
  graph g = tables();
  g.constants.pop_back();
  CHECK(verify(g).what == flaw::constant_out_of_range);
}
TEST_CASE("print: graphs of either form go into streams", "[graph][print]") {
  std::ostringstream a, b;
  a << zeros();
  b << freeze([] { return zeros(); });
  CHECK(a.str() == to_string(zeros()));
  CHECK(b.str() == a.str());
}

TEST_CASE("print: zeros of either sign differ", "[graph][print]") {
  CHECK(to_string(zeros()).find("constant(0)") != std::string::npos);
  CHECK(to_string(zeros()).find("constant(-0)") != std::string::npos);
}

TEST_CASE("print: DOT has a line per node and edge", "[graph][print]") {
  CHECK(to_dot(cse(commuted())).find("  n0 -> n2;\n") != std::string::npos);
  CHECK(to_dot(freeze([] { return commuted(); })).find("n2 [label=\"mul\\nfloat32[3]\"]") != std::string::npos);
}

} // namespace sample
