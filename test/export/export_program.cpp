// SPDX-License-Identifier: BSL-1.0
// Whole programs as values: for which sizes they are right, what their state is, what they write.
#include "../sample/value.hpp"

#include <varve/export.hpp>
#include <varve/fft.hpp>
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>

#include <sstream>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dynamic_dim, vv::export_program, vv::dim_auto, vv::dim_static;
using in_kind = vv::input_spec::kind;
using out_kind = vv::output_spec::kind;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k % 7));
  return t;
}
/// Counts the calls that a program makes.
struct counting : vv::dispatch_mode<counting> {
  static constexpr bool supports_higher_order_operators = true;
  int calls = 0;
  auto process(auto const& op, auto const& x) {
    ++calls;
    return op(x);
  }
};
std::string text(auto const& v) {
  std::ostringstream s;
  s << v;
  return s.str();
}
auto const without_first = [](tensor x, tensor y) { return x + vv::slice(y, 0, 1, vv::end); };
} // namespace

TEST_CASE("export: sizes are those of the example, or in a range", "[export][EX-S01]") {
  auto const f = [](tensor x) { return vv::sum(x * 2.0, vv::axis<0>); };
  auto const fixed = export_program(f)(data({3, 2}));
  CHECK(difference(fixed(data({3, 2}, 1))[0], f(data({3, 2}, 1))) == "");
  CHECK_THROWS_WITH(fixed(data({4, 2})), Catch::Contains("expected input x0.size(0) to be 3, found 4"));
  CHECK_THROWS_WITH(fixed(data({3})), Catch::Contains("of rank 2"));
  CHECK_THROWS_AS(fixed(vv::to(data({3, 2}), dtype::float32)), vv::dtype_error);
  CHECK_THROWS_WITH(fixed(), Catch::Contains("1 inputs, not 0"));

  CHECK_THROWS_WITH(export_program(f, {.dynamic_shapes = {{dynamic_dim("rows", 6), dim_static}}})(data({3, 2})),
                    Catch::Contains("rows = 3 in x0.size(0), which is not in range [6, unlimited]"));
  auto const rows =
      export_program(f, {.dynamic_shapes = {{dynamic_dim("rows", 2, 6), dim_static}}, .names = {"x"}})(data({3, 2}));
  for (index_t n : {2, 3, 6}) CHECK(difference(rows(data({n, 2}))[0], f(data({n, 2}))) == "");
  CHECK_THROWS_WITH(rows(data({7, 2})), Catch::Contains("expected input x.size(0) to be <= 6, found 7"));
  CHECK_THROWS_WITH(rows(data({1, 2})), Catch::Contains(">= 2"));
  CHECK(text(rows).find("x.size(0): rows, 2 <= rows <= 6") != std::string::npos);
  CHECK_THROWS_WITH(export_program(f, {.dynamic_shapes = {{dynamic_dim("rows"), dim_static}}})(data({1, 2})),
                    Catch::Contains("give an example of at least 2"));
}

TEST_CASE("export: sizes derived from others", "[export][EX-S02]") {
  auto const dimx = dynamic_dim("dimx", 3, 6);
  tensor const x = data({5}), y = data({6});
  auto const by_count = [](tensor v) { return v * static_cast<double>(v.numel()); };
  CHECK_THROWS_WITH(export_program(by_count, {.dynamic_shapes = {{dynamic_dim("n"), dynamic_dim("m")}}})(data({3, 4})),
                    Catch::Contains("n*m == 12 must hold"));
  CHECK_THROWS_WITH(export_program(without_first, {.dynamic_shapes = {{dimx}, {dynamic_dim("dimy", 3, 6)}}})(x, y),
                    Catch::Contains("constraints violated") && Catch::Contains("Suggested fixes: dimy = dimx + 1"));
  CHECK_THROWS_WITH(export_program(without_first, {.dynamic_shapes = {{dimx}, {2 * dimx}}})(x, y),
                    Catch::Contains("expected input x1.size(0) to be 2*dimx = 10, found 6"));
  auto const p = export_program(without_first, {.dynamic_shapes = {{dimx}, {dimx + 1}}})(x, y);
  CHECK_THROWS_WITH(p(data({4}), data({6})), Catch::Contains("expected input x1.size(0) to be dimx + 1 = 5, found 6"));
  CHECK(p(data({4}), data({5}))[0].size(0) == 4);
  CHECK(difference(p(data({4}), data({5}))[0], without_first(data({4}), data({5}))) == "");
  CHECK_THROWS_AS(2 * dim_auto, vv::value_error);
}

TEST_CASE("export: specifications that contradict each other or the arguments", "[export][exception][EX-S04][EX-S05]") {
  auto const f = [](std::vector<tensor> x, tensor y) { return x[0] + x[1] + y; };
  std::vector<tensor> const x{data({4}), data({4})};
  tensor const y = data({4});
  auto const message = [&](vv::export_options const& o) {
    try {
      (void)export_program(f, o)(x, y);
    } catch (vv::value_error const& e) { return std::string(e.what()); }
    return std::string();
  };
  auto const c = dynamic_dim("C", 3), other = dynamic_dim("C", 0, 12), n = dynamic_dim("n");
  CHECK_THAT(message({.dynamic_shapes = {{c}, {other}}}), Catch::Contains("the size C has different definitions"));
  CHECK_THAT(message({.dynamic_shapes = {{n}, {n}, {n}, {n}}}), Catch::Contains("4 entries for 3 argument tensors"));
  CHECK_THAT(message({.dynamic_shapes = {{n}, {n, n}}}), Catch::Contains("x1 has 1 sizes, and 2 are specified"));
  vv::shapes_collection shapes;
  shapes[data({4})] = {n};
  CHECK_THAT(message({.shapes = shapes}), Catch::Contains("is no argument"));
  CHECK_THAT(message({.dynamic_shapes = {{n}, {n}}}), Catch::Contains("n must be 4"));
  CHECK(message({.dynamic_shapes = {{n}, {n}, {n}}}).empty());
  CHECK_THROWS_WITH(dynamic_dim("empty", 5, 3), Catch::Contains("from 5 to 3"));
}

TEST_CASE("export: names of results", "[export][exception]") {
  auto const f = [](tensor const& x) { return std::pair(x * 2.0, vv::sum(x)); };
  tensor const x = vv::ones({3});
  auto const p = export_program(f, {.results = {"twice", "total"}})(x);
  CHECK(p.user_outputs() == std::vector<std::string>{"twice", "total"});
  CHECK(export_program(f)(x).user_outputs() == std::vector<std::string>{"output_0", "output_1"});
  CHECK(export_program(p)(vv::ones({3})).user_outputs() == p.user_outputs()); // kept by another export
  CHECK(vv::program_from_text(vv::to_text(p)).user_outputs() == p.user_outputs());
  CHECK_THROWS_WITH(export_program(f, {.results = {"twice"}})(x), ContainsText("there are 1 names for 2 results"));
  CHECK_THROWS_WITH(export_program(f, {.results = {"y", "y"}})(x), ContainsText("the name \"y\""));
  CHECK_THROWS_WITH(export_program(f, {.names = {"x"}, .results = {"x", "y"}})(x), ContainsText("the name \"x\""));
  CHECK_THROWS_WITH(export_program(f, {.results = {"", "y"}})(x), ContainsText("is empty"));
}

TEST_CASE("export: automatic sizes", "[export][EX-S06]") {
  auto const f = [](tensor u, tensor w, tensor x, tensor y, tensor z) {
    return std::pair{vv::slice(u, 0, 1, vv::end) + w + x, vv::reshape(y, vv::dims{-1}) + z};
  };
  auto const p =
      export_program(f, {.dynamic_shapes = {{dim_auto}, {dim_auto}, {dim_auto}, {dim_auto, dim_auto}, {dim_auto}}})(
          data({7}), data({6}), data({6}), data({2, 5}), data({10}));
  auto const y = p(data({4}), data({3}), data({3}), data({3, 4}), data({12}));
  auto const want = f(data({4}), data({3}), data({3}), data({3, 4}), data({12}));
  CHECK(difference(y[0], want.first) == "");
  CHECK(difference(y[1], want.second) == "");
  CHECK_THROWS_AS(p(data({4}), data({4}), data({3}), data({3, 4}), data({12})), vv::shape_error);
  CHECK_THROWS_AS(p(data({4}), data({3}), data({3}), data({3, 4}), data({11})), vv::shape_error);

  auto const forced = [](tensor x, tensor y) { return x + vv::reshape(y, vv::dims{4}); };
  CHECK_THROWS_WITH(
      export_program(forced, {.dynamic_shapes = {{vv::dim_dynamic_any}, {vv::dim_dynamic_any}}})(data({4}), data({4})),
      Catch::Contains("x0.size(0) must be 4"));
  auto const halves = [](tensor x) { return vv::reshape(x, vv::dims{x.sizes()[0] - 1, -1}); };
  auto const q = export_program(halves, {.dynamic_shapes = {{dim_auto, dim_auto}}})(data({4, 6}));
  CHECK(difference(q(data({5, 8}))[0], halves(data({5, 8}))) == "");
  CHECK_THROWS_AS(q(data({4, 2})), vv::error); // 8 elements are no 3 rows
}

TEST_CASE("export: sizes by the arguments themselves", "[export][EX-S07]") {
  auto const f = [](tensor x, std::vector<tensor> y, std::pair<tensor, tensor> z) { return x + y[0] + z.second; };
  tensor const x = data({4}), y0 = data({4}), z1 = data({4});
  vv::shapes_collection shapes;
  auto const n = dynamic_dim("n", 2, 9);
  shapes[x] = {n}, shapes[y0] = {n}, shapes[z1] = {n};
  auto const p = export_program(f, {.shapes = shapes})(x, std::vector{y0}, std::pair{data({3}), z1});
  vv::index_t const symbol = p.graph.symbol("n");
  CHECK(vv::known_equal(p.graph.nodes[0].out.sizes[0], symbol));
  CHECK(vv::known_equal(p.graph.nodes[1].out.sizes[0], symbol));
  CHECK(p.graph.nodes[2].out.sizes == vv::dims{3});
  CHECK(vv::known_equal(p.graph.nodes[3].out.sizes[0], symbol));
  CHECK(elements(p(data({2}), data({2}), data({3}), data({2}))[0]).size() == 2);
}

TEST_CASE("export: state that is assigned to", "[export][EX-S09]") {
  struct {
    tensor buf = vv::ones({2});
    tensor spare = vv::ones({2});
    std::vector<tensor> list{vv::ones({2}), vv::ones({2})};
  } m;
  auto const f = [&](tensor x) {
    m.buf = m.buf * 4.0;
    return x * m.buf + m.buf;
  };
  auto const p = export_program(f, {.state = {vv::buffer("buf", m.buf)}})(vv::ones({2}));
  CHECK(elements(m.buf) == std::vector<double>{1, 1}); // as it was
  CHECK(p.signature.count(out_kind::buffer_mutation) == 1);
  CHECK(elements(p(vv::full({2}, 2.0))[0]) == std::vector<double>{12, 12});
  CHECK(elements(p.state_of("buf")) == std::vector<double>{4, 4});
  CHECK(elements(p(vv::full({2}, 2.0))[0]) == std::vector<double>{48, 48});

  auto const g = [&](tensor x) {
    m.spare = m.spare * 2.0;
    return x * m.spare;
  };
  CHECK_THROWS_WITH(export_program(g, {.state = {vv::attribute("spare", m.spare)}})(vv::ones({2})),
                    Catch::Contains("assigns to spare"));
  CHECK(elements(m.spare) == std::vector<double>{1, 1});
  auto const h = [&](tensor x) {
    m.list[0] = x, m.list[1] = x * 2.0;
    return x;
  };
  CHECK_THROWS_WITH(export_program(h, {.state = {vv::attribute("list[0]", m.list[0]),
                                                 vv::attribute("list[1]", m.list[1])}})(vv::ones({2})),
                    Catch::Contains("assigns to list[0], list[1]"));
}

TEST_CASE("export: buffers and arguments that are written", "[export][EX-S10]") {
  tensor buf = vv::ones({2}), w = data({2});
  w.requires_grad_();
  tensor const hidden = data({2}, 3);
  auto const f = [&](tensor x) {
    vv::add_(buf, 1.0);
    vv::add_(x, 1.0);
    return buf + x * w + hidden;
  };
  auto const p =
      export_program(f, {.names = {"x"}, .state = {vv::parameter("w", w), vv::buffer("buf", buf)}})(vv::ones({2}));
  CHECK(elements(buf) == std::vector<double>{1, 1});
  CHECK(p.signature.count(out_kind::buffer_mutation) == 1);
  CHECK(p.signature.count(out_kind::user_input_mutation) == 1);
  CHECK(p.signature.outputs[0].name == "buf");
  CHECK(p.signature.outputs[1].name == "x");
  std::vector<in_kind> kinds;
  for (auto const& i : p.signature.inputs) kinds.push_back(i.is);
  CHECK(kinds == std::vector{in_kind::parameter, in_kind::buffer, in_kind::constant, in_kind::user_input});
  CHECK(!vv::has_mutation(p.graph));

  tensor const x = vv::ones({2});
  auto const y = p(x)[0];
  CHECK(elements(p.state_of("buf")) == std::vector<double>{2, 2});
  CHECK(elements(x) == std::vector<double>{2, 2});
  vv::copy_(buf, vv::ones({2}));
  vv::no_grad const off;
  CHECK(difference(y.detach(), f(vv::ones({2}))) == "");
  CHECK_THROWS_WITH(export_program(f, {.state = {vv::parameter("w", w)}})(vv::ones({2})),
                    Catch::Contains("pass it as an argument"));
}

TEST_CASE("export: what was there before a write", "[export][exception]") {
  tensor buf = vv::ones({2});
  auto const f = [&](tensor x, tensor y) {
    tensor const was = vv::clone(x), old = buf;
    vv::copy_(x, y);
    vv::copy_(y, was);
    buf = buf + 1.0;
    return std::pair{was, old};
  };
  auto const p = export_program(f, {.state = {vv::buffer("buf", buf)}})(data({2}), data({2}));
  tensor const x = data({2}, 1), y = data({2}, 5);
  auto const r = p(x, y);
  CHECK(difference(x, data({2}, 5)) == "");
  CHECK(difference(y, data({2}, 1)) == "");
  CHECK(difference(r[0], data({2}, 1)) == "");
  CHECK(elements(r[1]) == std::vector<double>{1, 1});
  CHECK(elements(p.state_of("buf")) == std::vector<double>{2, 2});
  CHECK_THROWS_WITH(p(x, x), Catch::Contains("x0 is written into and shares memory with x1"));
  CHECK(difference(x, data({2}, 5)) == "");
  auto const longer = [&](tensor v) {
    buf = vv::cat(std::vector{buf, v}, 0);
    return v * 1.0;
  };
  CHECK_THROWS_WITH(export_program(longer, {.state = {vv::buffer("buf", buf)}})(vv::ones({2})),
                    Catch::Contains("another shape or dtype"));
  CHECK(buf.sizes() == dims{2});
  tensor part = vv::slice(buf, 0, 0, 1);
  auto const both = [&](tensor v) {
    vv::add_(buf, v);
    return part * 1.0;
  };
  CHECK_THROWS_WITH(export_program(both, {.state = {vv::buffer("buf", buf), vv::buffer("part", part)}})(vv::ones({2})),
                    Catch::Contains("memory"));
  CHECK_THROWS_WITH(
      export_program([](tensor v) { return v * 2.0; }, {.dynamic_shapes = {{2 * dynamic_dim("n")}}})(data({4})),
      Catch::Contains("2*n alone"));
}

TEST_CASE("export: what data decide", "[export][exception][EX-S11]") {
  auto const f = [](tensor x) {
    if (vv::nonzero(x).sizes()[0] > 2) return vv::cos(x);
    return vv::sin(x);
  };
  CHECK_THROWS_AS(export_program(f)(data({4})), vv::data_dependent_error);
  CHECK_THROWS_AS(export_program([](tensor x) { return vv::sum(x) > 0.0 ? x * 2.0 : x; })(data({4})), vv::error);
  // Sizes of data are symbols of the program, and what was said of them is checked in each run.
  auto const g = [](tensor x, tensor n) {
    auto const many = vv::item(n);
    vv::check(vv::relation::less_equal, 4, many);
    return vv::sum(x) + vv::full(vv::dims{many}, 1.0);
  };
  tensor const four = vv::full(vv::dims{}, 4, dtype::int64), three = vv::full(vv::dims{}, 3, dtype::int64);
  auto const p = export_program(g)(data({4}), four);
  CHECK(p(data({4}), four)[0].size(0) == 4);
  CHECK_THROWS_AS(p(data({4}), three), vv::error);
  // ... also that it is one number, or a size, which is then known.
  auto const number = [](tensor n) {
    auto const k = vv::item(n);
    vv::check(vv::relation::equal, k, 4);
    return vv::full(vv::dims{k}, 1.0);
  };
  auto const is_four = export_program(number)(four);
  CHECK(is_four(four)[0].sizes() == dims{4});
  CHECK_THROWS_WITH(is_four(three), Catch::Contains("u0 == 4"));
  auto const size = [](tensor x, tensor y, tensor n) {
    auto const k = vv::item(n);
    vv::check(vv::relation::equal, k, y.sizes()[0]);
    return x + y + vv::full(vv::dims{k}, 1.0); // all three are one size
  };
  auto const any = dynamic_dim("n");
  auto const q = export_program(size, {.dynamic_shapes = {{any}, {dim_auto}}})(data({4}), data({4}), four);
  CHECK(q(data({3}), data({3}), three)[0].sizes() == dims{3});
  CHECK_THROWS_AS(q(data({4}), data({4}), three), vv::error);
  CHECK_THROWS_AS(q(data({3}), data({4}), three), vv::error);
}

TEST_CASE("export: nothing computed", "[export][EX-S14]") {
  auto const f = [](tensor x, tensor) { return std::pair{x, vv::full(vv::dims{2}, 3.0)}; };
  auto const p = export_program(f)(data({2}), data({3}));
  auto const y = p(data({2}, 5), data({3}));
  CHECK(difference(y[0], data({2}, 5)) == "");
  CHECK(elements(y[1]) == std::vector<double>{3, 3});
  CHECK(export_program([](tensor x) { return x; })(data({2}))(data({2}, 9)).size() == 1);
}

TEST_CASE("export: operators with functions, and a compiled function inside", "[export][hop][EX-S17][EX-S18][EX-S19]") {
  auto const inner = vv::compile([](tensor x) { return vv::sin(x) * 2.0; });
  auto const f = [&](tensor x) {
    tensor const y = inner(x);
    return vv::cond(vv::gt(vv::sum(y), 0.0), [](tensor v) { return vv::exp(v); }, [](tensor v) { return v * 3.0; }, y);
  };
  auto const n = dynamic_dim("n");
  auto const exported = [&] {
    counting mode;
    vv::function_mode_guard const on{mode};
    auto const p = export_program(f, {.dynamic_shapes = {{n}}})(data({4}));
    return std::pair{p, mode.calls};
  };
  auto const before = vv::this_thread_state.excluded;
  auto const [p, first] = exported();
  auto const [q, second] = exported();
  CHECK(first == second);
  CHECK(first > 0);
  CHECK(inner.versions() == 0); // its operators are in the program
  CHECK(p.graph.count(vv::sin) == 1);
  CHECK(vv::this_thread_state.quiet());
  CHECK((before - vv::this_thread_state.excluded).empty());
  for (double from : {0.1, -9.0}) CHECK(difference(p(data({6}, from))[0], f(data({6}, from)), 1e-14) == "");
  CHECK_THROWS_AS(export_program([&](tensor x) { return inner(x) + vv::ones({3}); })(data({4})), vv::shape_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("export: a program has the derivatives of the function", "[export][EX-12]") {
  tensor const w = data({3}, -0.4), x = data({3});
  using function = tensor (*)(tensor const&, tensor const&);
  function const all[] = {[](tensor const& a, tensor const& b) { return a.detach() * a * b; },
                          [](tensor const& a, tensor const& b) { return a + (vv::sign(a) - a).detach() * b; },
                          [](tensor const& a, tensor const& b) { return a.data() * a * b; },
                          [](tensor const& a, tensor const& b) {
                            vv::no_grad const off;
                            tensor const y = vv::sin(a);
                            vv::enable_grad const on;
                            return y * b + a;
                          },
                          [](tensor const& a, tensor const& b) {
                            auto const kept = [](tensor const& v) {
                              vv::no_grad const off;
                              return v * 2.0;
                            };
                            return b *
                                   vv::cond(vv::gt(vv::sum(a), 0.0), kept, [](tensor const& v) { return v * v; }, a);
                          }};
  auto const gradients = [&](auto const& f) {
    tensor const a = vv::clone(x), b = vv::clone(w);
    a.requires_grad_(), b.requires_grad_();
    vv::sum(f(a, b)).backward();
    auto const of = [](tensor const& t) { return t.grad().defined() ? elements(t.grad()) : std::vector<double>{}; };
    return std::pair(of(a), of(b));
  };
  tensor const needs = vv::clone(x);
  needs.requires_grad_();
  for (function const& f : all)
    for (tensor const& example : {x, needs}) {
      vv::exported_program const p = export_program(f)(example, w);
      CHECK(gradients([&](tensor const& a, tensor const& b) { return p(a, b)[0]; }) == gradients(f));
    }
}

TEST_CASE("export: a write that left the derivative as it was is refused", "[export][exception]") {
  tensor const x = data({3});
  tensor count = vv::zeros(vv::dims{}, dtype::float64);
  using function = tensor (*)(tensor const&);
  function const all[] = {[](tensor const& a) {
                            tensor const y = a * 2.0;
                            {
                              vv::no_grad const off;
                              vv::mul_(y, 3.0);
                            }
                            return y * a;
                          },
                          [](tensor const& a) {
                            tensor const y = a * 2.0;
                            vv::mul_(y.detach(), 3.0);
                            return y * a;
                          }};
  for (function const& f : all) {
    CHECK_THROWS_WITH(export_program(f)(x), ContainsText("left its derivative as it was"));
    vv::no_grad const off; // a program for values alone
    CHECK(elements(export_program(f)(x)(x)[0]) == elements(f(x)));
  }
  CHECK_THROWS_WITH(export_program([](tensor const& a) {
                      tensor const y = a * 2.0;
                      y.detach_();
                      return y * a;
                    })(x),
                    ContainsText("use detach"));
  auto const counts = [&](tensor const& a) {
    {
      vv::no_grad const off;
      vv::add_(count, 1.0);
    }
    return a * count;
  };
  vv::exported_program const p = export_program(counts, {.state = {vv::buffer("count", count)}})(x);
  CHECK(elements(p(x)[0]) == elements(x));
  CHECK(count.item<double>() == 1);
}

TEST_CASE("export: gradients that a function takes are part of the program", "[export]") {
  tensor const x = vector_of({0.5, -1});
  auto const recorded = [](tensor const& v) {
    tensor const leaf = v.detach();
    leaf.requires_grad_();
    vv::sum(leaf * leaf).backward();
    return leaf.grad() * v;
  };
  auto const p = vv::export_program(recorded)(x);
  CHECK(elements(p(x)[0]) == std::vector<double>{0.5, 2});
  CHECK(elements(p(vector_of({2, 3}))[0]) == std::vector<double>{8, 18});
  auto const inside = vv::grad([](tensor const& v) { return vv::sum(v * v); });
  CHECK(elements(vv::export_program(inside)(x)(x)[0]) == std::vector<double>{1, -2});
  auto const twice = [](tensor const& v) { // the second adds to the first, with gradients off, as to any value made so
    tensor const leaf = v.detach();
    leaf.requires_grad_();
    vv::sum(leaf * leaf).backward();
    vv::sum(leaf * 3.0).backward();
    return leaf.grad() * v;
  };
  CHECK(elements(vv::export_program(twice)(x)(x)[0]) == elements(twice(x)));
  auto const own = [](tensor const& v) { // of an argument that requires gradients, as the example says
    tensor const y = vv::sum(v * v * v);
    return y.requires_grad() ? vv::autograd::grad({y}, {v}, {}, {.create_graph = true})[0] : vv::zeros_like(v);
  };
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  tensor const y = vv::export_program(own)(leaf)(leaf)[0];
  CHECK(elements(y) == std::vector<double>{0.75, 3});
  vv::sum(y).backward();
  CHECK(elements(leaf.grad()) == std::vector<double>{3, -6});
}

TEST_CASE("export: what is filled with a number is no plain number", "[export]") {
  tensor const x = vv::full({}, 1.5, dtype::float32);
  auto const f = [](tensor const& v) {
    tensor const w = vv::zeros({}, dtype::float64);
    vv::fill_(w, 0.25);
    return w * v;
  };
  CHECK(f(x).dtype() == dtype::float64);
  CHECK(vv::export_program(f)(x)(x)[0].dtype() == dtype::float64);
  vv::graph const g = vv::optimize(vv::make_fx(vv::functionalize(f))(x));
  CHECK(vv::interpret(g, vv::boxed_args(x))[0].dtype() == dtype::float64);
}

TEST_CASE("export: what a write saves for a gradient in the program has a derivative", "[export]") {
  auto const slope = [](tensor const& v) {
    tensor const y = vv::clone(v);
    (void)vv::cos_(y);
    return vv::autograd::grad({vv::sum(y)}, {v}, {}, {.create_graph = true})[0];
  };
  tensor const a = vector_of({0.5, -1}), b = vector_of({0.5, -1});
  a.requires_grad_(), b.requires_grad_();
  vv::sum(slope(a)).backward();
  vv::sum(vv::export_program(slope)(b)(b)[0]).backward();
  CHECK(difference(b.grad(), a.grad(), 1e-14) == "");
  CHECK(difference(a.grad(), -vv::cos(a.detach()), 1e-14) == "");
}

TEST_CASE("export of a derivative that is complex", "[export][complex]") {
  auto const f = [](tensor const& v) {
    return vv::jvp([](tensor const& u) { return vv::fft::rfft(u); }, std::tuple(v), std::tuple(v * 2.0)).second;
  };
  tensor const x{1.0, 2.0, 4.0};
  CHECK(vv::allclose(vv::real(vv::export_program(f)(x)(x)[0]), vv::real(f(x))));
  CHECK(vv::allclose(vv::imag(vv::export_program(f)(x)(x)[0]), vv::imag(f(x))));
}
