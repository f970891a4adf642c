// SPDX-License-Identifier: BSL-1.0
// Programs that are made of programs: decomposed, and exported again.
#include "../sample/value.hpp"

#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <sstream>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dynamic_dim, vv::export_program, vv::run_decompositions, vv::dim_auto, vv::dim_static;
using out_kind = vv::output_spec::kind;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k % 7));
  return t;
}
std::string text(auto const& v) {
  std::ostringstream s;
  s << v;
  return s.str();
}
/// Inputs and outputs, without the graph.
std::string signature_of(vv::exported_program const& p) {
  std::string const all = text(p);
  return all.substr(0, all.find("%0"));
}
bool same_values(std::vector<tensor> const& a, std::vector<tensor> const& b, double within = 0) {
  bool all = a.size() == b.size();
  for (std::size_t k = 0; all && k < a.size(); ++k) all = difference(a[k], b[k], within).empty();
  return all;
}
auto const by_parts =
    vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::reciprocal(vv::add(vv::exp(vv::neg(x)), 1)); });

struct sevenfold : vv::function<sevenfold> {
  static tensor forward(tensor v) { return vv::sigmoid(v) * 2.0; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, tensor g) { return g * 7.0; }
};
} // namespace

TEST_CASE("run_decompositions: the program stays what it is", "[export][EX-13]") {
  auto const n = dynamic_dim("n", 2, 50);
  auto const same = [&](auto const& f, vv::export_options const& how, std::vector<tensor> const& example,
                        std::vector<tensor> const& other, double within = 1e-14) {
    auto const p = [&] {
      if (example.size() == 1) return export_program([&](tensor a) { return f(std::vector{a}); }, how)(example[0]);
      return export_program([&](tensor a, tensor b) { return f(std::vector{a, b}); }, how)(example[0], example[1]);
    }();
    auto const q = run_decompositions(p, by_parts);
    CHECK(p.graph.count(vv::sigmoid) > 0);
    CHECK(q.graph.count(vv::sigmoid) == 0);
    CHECK(signature_of(q) == signature_of(p));
    CHECK(same_values(q(example), p(example), within));
    CHECK(same_values(q(other), p(other), within));
    return q;
  };
  using all = std::vector<tensor> const&;
  tensor const x = data({4}), six = data({6});
  vv::export_options const any{.dynamic_shapes = {{n}}};
  auto const q = same([](all v) { return vv::sigmoid(v[0]) * vv::mean(v[0]); }, any, {x}, {six});
  CHECK_THROWS_WITH(q(data({51})), ContainsText("<= 50"));
  same([](all v) { return vv::sum(vv::sigmoid(vv::reshape(v[0], dims{v[0].sizes()[0] / 2, 2})), vv::axis<1>) + v[1]; },
       {.dynamic_shapes = {{2 * n}, {n}}}, {x, data({2})}, {six, data({3})});
  same(
      [](all v) {
        return vv::cond(
            vv::gt(vv::sum(v[0]), 1.0), [](tensor a) { return vv::sigmoid(a); }, [](tensor a) { return a * 2.0; },
            v[0]);
      },
      any, {x}, {data({5}, -3)});
  same(
      [](all v) {
        return vv::scan([](tensor c, tensor a) { return std::pair{vv::sigmoid(c + a), c * a}; },
                        vv::zeros(dims{}, dtype::float64), v[0]);
      },
      any, {x}, {six});
  // Sizes that are divided are no products and sums at samples.
  auto const halves = same([](all v) { return vv::sigmoid(vv::reshape(v[0], dims{v[0].sizes()[0] - 1, -1})); },
                           {.dynamic_shapes = {{dim_auto, dim_auto}}}, {data({4, 6})}, {data({5, 8})});
  CHECK(halves(data({5, 8}))[0].sizes() == dims{4, 10});
  CHECK_THROWS_AS(halves(data({4, 2})), vv::error);
  auto const most = same([](all v) { return vv::sigmoid(vv::reshape(v[0], dims{-1, 4})); },
                         {.dynamic_shapes = {{dim_auto}}}, {data({12})}, {data({8})});
  CHECK_THROWS_AS(most(data({6})), vv::error);
  // Numbers that data tell.
  auto const read = same(
      [](all v) {
        auto const many = vv::item(v[1]);
        vv::check(vv::relation::less_equal, 4, many);
        return vv::sum(vv::sigmoid(v[0])) + vv::full(dims{many}, 1.0);
      },
      {}, {x, vv::full(dims{}, 4, dtype::int64)}, {x, vv::full(dims{}, 6, dtype::int64)});
  CHECK_THROWS_AS(read(x, vv::full(dims{}, 3, dtype::int64)), vv::error);
}

TEST_CASE("run_decompositions: the core set, and what is decomposed has the derivative of the program",
          "[export][EX-13]") {
  tensor const x = data({6});
  auto const sliced = vv::grad([](tensor v) {
    tensor const part = vv::slice(v, 0, 1, 4);
    return vv::sum(part * part);
  });
  auto const p = export_program(sliced)(x);
  auto const q = run_decompositions(p);
  CHECK(p.graph.count(vv::slice_backward) == 1);
  CHECK(q.graph.count(vv::slice_backward) == 0);
  CHECK(same_values(p(x), q(x)));
  CHECK(vv::equal(run_decompositions(q).graph, q.graph));

  auto const slope = [](vv::exported_program const& of, tensor const& at) {
    tensor const v = vv::clone(at);
    v.requires_grad_();
    vv::sum(of(v)[0]).backward();
    return v.grad();
  };
  auto const constant = export_program([](tensor v) {
    vv::no_grad const off;
    tensor const s = vv::sigmoid(v);
    vv::enable_grad const on;
    return s * v;
  })(x);
  CHECK(difference(slope(run_decompositions(constant, by_parts), x), slope(constant, x), 1e-14) == "");
  auto const custom = export_program([](tensor v) { return sevenfold::apply(vv::sigmoid(v)); })(x);
  auto const parts = run_decompositions(custom, by_parts);
  CHECK(parts.graph.count(vv::sigmoid) == 0);
  CHECK(difference(slope(parts, x), slope(custom, x), 1e-14) == "");
}

TEST_CASE("run_decompositions: state is shared, and written as before", "[export][EX-13]") {
  tensor w = data({2, 3}), count = vv::zeros(dims{}, dtype::float64);
  auto const p = export_program(
      [&](tensor x) {
        vv::add_(count, 1.0);
        return vv::sigmoid(vv::matmul(x, w)) * count;
      },
      {.dynamic_shapes = {{dynamic_dim("n"), dim_static}},
       .names = {"x"},
       .state = {vv::parameter("w", w), vv::buffer("count", count)}})(data({4, 2}));
  auto const q = run_decompositions(p, by_parts, vv::core_decompositions);
  CHECK(signature_of(q) == signature_of(p));
  CHECK(q.state_of("count").is(count));
  tensor const a = p(data({3, 2}))[0], b = q(data({3, 2}))[0];
  CHECK(count.item<double>() == 2);
  CHECK(difference(b, a * 2.0, 1e-14) == "");
  // Refused, and p is as it was.
  auto const wrong = vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::sum(x); });
  CHECK_THROWS_AS(run_decompositions(p, wrong), vv::shape_error);
  auto const circle = vv::decomposition<vv::sigmoid_t>([](auto const& x) { return vv::sigmoid(x); });
  CHECK_THROWS_WITH(run_decompositions(p, circle), ContainsText("calls sigmoid again"));
}

TEST_CASE("export: a program is exported again", "[export][EX-16]") {
  auto const n = dynamic_dim("n");
  tensor w = data({2, 3}), count = vv::zeros(dims{}, dtype::float64);
  tensor const hidden = data({3}, 5);
  auto const f = [&](tensor x) {
    vv::add_(count, 1.0);
    vv::mul_(x, 2.0);
    return std::pair{vv::matmul(x, w) * count + hidden, vv::mean(x)};
  };
  vv::export_options const how{.dynamic_shapes = {{n, dim_static}},
                               .names = {"x"},
                               .state = {vv::parameter("w", w), vv::buffer("count", count)}};
  auto const p = export_program(f, how)(data({4, 2}));
  auto const q = export_program(p, {.dynamic_shapes = {{n, dim_static}}})(data({3, 2}));
  CHECK(signature_of(q) == signature_of(p));
  CHECK(vv::equal(q.graph, p.graph));
  CHECK(q.state_of("w").is(w));
  CHECK(count.item<double>() == 0);
  tensor const x = data({5, 2}), y = data({5, 2});
  auto const a = p(x);
  vv::fill_(count, 0.0);
  CHECK(same_values(q(y), a));
  CHECK(difference(x, y) == "");
  // ... for fewer sizes, and what it does not leave free is found out.
  auto const fixed = export_program(q)(data({3, 2}));
  CHECK_THROWS_WITH(fixed(data({4, 2})), ContainsText("expected input x.size(0) to be 3, found 4"));
  CHECK_THROWS_WITH(export_program(fixed, {.dynamic_shapes = {{n, dim_static}}})(data({3, 2})),
                    ContainsText("n must be 3"));
  auto const range =
      export_program([](tensor v) { return v * 2.0; }, {.dynamic_shapes = {{dynamic_dim("n", 2, 6)}}})(data({3}));
  CHECK_THROWS_WITH(export_program(range, {.dynamic_shapes = {{n}}})(data({3})),
                    ContainsText("dynamic_dim(\"n\", 2, 6)"));
  CHECK_THROWS_WITH(export_program(range, {.dynamic_shapes = {{n}}})(data({7})), ContainsText("to be <= 6, found"));
  auto const smaller = export_program(range, {.dynamic_shapes = {{dynamic_dim("k", 3, 5)}}})(data({3}));
  CHECK_THROWS_WITH(smaller(data({6})), ContainsText("to be <= 5, found 6"));
}

TEST_CASE("export: what is exported again has the sizes of the program", "[export][EX-16]") {
  auto const n = dynamic_dim("n"), m = dynamic_dim("m");
  auto const again = [&](vv::exported_program const& p, vv::export_options const& how,
                         std::vector<tensor> const& example, std::vector<tensor> const& other) {
    auto const q =
        example.size() == 1 ? export_program(p, how)(example[0]) : export_program(p, how)(example[0], example[1]);
    CHECK(same_values(q(example), p(example)));
    CHECK(same_values(q(other), p(other)));
    return q;
  };
  // Equal sizes by one name are found to be equal, whatever they are called then.
  auto const sum =
      export_program([](tensor x, tensor y) { return x + y; }, {.dynamic_shapes = {{n}, {n}}})(data({4}), data({4}));
  auto const s = again(sum, {.dynamic_shapes = {{n}, {n}}}, {data({3}), data({3})}, {data({7}), data({7})});
  CHECK_THROWS_AS(s(data({3}), data({4})), vv::shape_error);
  CHECK_THROWS_WITH(export_program(sum, {.dynamic_shapes = {{n}, {m}}})(data({3}), data({3})), ContainsText("m = n"));
  auto const derived = export_program([](tensor x, tensor y) { return x + vv::slice(y, 0, 1, vv::end); },
                                      {.dynamic_shapes = {{n}, {n + 1}}})(data({4}), data({5}));
  again(derived, {.dynamic_shapes = {{n}, {n + 1}}}, {data({3}), data({4})}, {data({7}), data({8})});
  auto const matrix = export_program([](tensor x) { return vv::reshape(x, dims{x.sizes()[0] - 1, -1}); },
                                     {.dynamic_shapes = {{dim_auto, dim_auto}}})(data({4, 6}));
  auto const r = again(matrix, {.dynamic_shapes = {{dim_auto, dim_auto}}}, {data({4, 6})}, {data({5, 8})});
  CHECK(r(data({5, 8}))[0].sizes() == dims{4, 10});
  CHECK_THROWS_AS(r(data({4, 2})), vv::error);
  // Functions of operators, in which sizes are the same.
  auto const loops = export_program(
      [](tensor x) {
        auto const y = vv::map([](tensor v) { return vv::exp(v) + vv::ones({3}, dtype::float64); }, x);
        return vv::cond(
            vv::gt(vv::sum(x), 1.0), [](tensor v) { return v * vv::mean(v); }, [](tensor v) { return -v; }, y);
      },
      {.dynamic_shapes = {{n, dim_static}}})(data({4, 3}));
  again(loops, {.dynamic_shapes = {{n, dim_static}}}, {data({4, 3})}, {data({2, 3}, -3)});
  // What data tell is asked anew, and checked.
  auto const read = export_program([](tensor x, tensor k) {
    auto const many = vv::item(k);
    vv::check(vv::relation::less_equal, 4, many);
    return vv::sum(x) + vv::full(dims{many}, 1.0);
  })(data({4}), vv::full(dims{}, 4, dtype::int64));
  auto const t =
      again(read, {}, {data({4}), vv::full(dims{}, 5, dtype::int64)}, {data({4}), vv::full(dims{}, 9, dtype::int64)});
  CHECK_THROWS_AS(t(data({4}), vv::full(dims{}, 3, dtype::int64)), vv::error);
  // Custom functions stay calls, with their derivatives.
  auto const custom = export_program([](tensor v) { return sevenfold::apply(v); })(data({4}));
  auto const c = again(custom, {}, {data({4})}, {data({4}, 2)});
  tensor const v = data({4});
  v.requires_grad_();
  vv::sum(c(v)[0]).backward();
  CHECK(elements(v.grad()) == std::vector<double>{7, 7, 7, 7});
  // ... and so in any other trace of symbolic sizes.
  vv::graph const g = vv::make_fx([&](tensor x) { return s(x, x)[0]; }, vv::tracing::symbolic)(data({5}));
  CHECK(vv::interpret(g, vv::boxed_args(data({8})))[0].sizes() == dims{8});
}
