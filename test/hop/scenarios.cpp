// SPDX-License-Identifier: BSL-1.0
// Scenarios of cond, loops and what their functions may do (docs/scenarios.md) that no other test is about.
#include "../sample/loop.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor counted(dims const& sizes) { return vv::to(vv::reshape(vv::arange(vv::numel(sizes)), sizes), dtype::float64); }
bool same(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
constexpr auto sine = [](tensor const& v) { return tensor(vv::sin(v)); };
constexpr auto cosine = [](tensor const& v) { return tensor(vv::cos(v)); };
} // namespace

TEST_CASE("cond: runs the branch that the predicate says", "[hop][cond][CD-S01]") {
  tensor const x = counted({4});
  for (bool p : {true, false}) {
    CHECK(same(vv::cond(p, sine, cosine, x), p ? vv::sin(x) : vv::cos(x)));
    CHECK(same(vv::cond(vv::full({}, p), sine, cosine, x), p ? vv::sin(x) : vv::cos(x)));
  }
}

TEST_CASE("cond: operands of which a branch uses some", "[hop][cond][CD-S04]") {
  auto const run = [](bool p, tensor const& a, tensor const& b, tensor const& c) {
    return vv::cond(
        vv::full({}, p), [](tensor const& u, tensor const& v, tensor const&) { return tensor(u + v); },
        [](tensor const& u, tensor const& v, tensor const& w) { return tensor(u * (w / v)); }, a, b, c);
  };
  for (bool p : {true, false}) {
    tensor a = counted({4}) + 1.0, b = counted({4}) + 2.0, c = counted({4}) + 3.0;
    for (tensor* v : {&a, &b, &c}) *v = v->detach(), v->requires_grad_();
    vv::sum(run(p, a, b, c)).backward();
    CHECK(same(a.grad(), p ? vv::ones({4}, dtype::float64) : c.detach() / b.detach()));
    CHECK_FALSE(a.grad().shares_storage(b.grad()));
    if (p) CHECK((!c.grad().defined() || same(c.grad(), vv::zeros({4}, dtype::float64))));
    else CHECK(same(c.grad(), a.detach() / b.detach()));
    auto const g = vv::make_fx([&](auto const& u, auto const& v, auto const& w) {
      return vv::grad<0, 1, 2>([&](auto const& q, auto const& r, auto const& s) { return vv::sum(run(p, q, r, s)); })(
          u, v, w);
    })(a.detach(), b.detach(), c.detach());
    CHECK(same(vv::interpret(g, vv::boxed_args(a.detach(), b.detach(), c.detach()))[0], a.grad()));
  }
}

TEST_CASE("cond: operands of which one asks for no gradient", "[hop][cond][CD-S07]") {
  tensor const x = counted({3}) + 1.0, y = counted({3}) + 5.0;
  x.requires_grad_();
  for (bool p : {true, false}) {
    tensor const z = x;
    x.zero_grad();
    vv::sum(vv::cond(
                vv::full({}, p), [](tensor const& u, tensor const& v, tensor const& w) { return tensor(u * v * w); },
                [](tensor const& u, tensor const& v, tensor const& w) { return tensor(u + v + w); }, x, y, z))
        .backward();
    CHECK(same(x.grad(), p ? x.detach() * y * 2.0 : vv::full({3}, 2.0, dtype::float64)));
    CHECK_FALSE(y.grad().defined());
  }
}

TEST_CASE("cond: branches that return plain numbers", "[hop][cond][graph][CD-S11]") {
  auto const f = [](tensor const& v) {
    return vv::cond(vv::gt(vv::sum(v), 0.0), [](tensor const&) { return 3; }, [](tensor const&) { return 5; }, v);
  };
  auto const alike = [](tensor const& v) {
    return vv::cond(vv::gt(vv::sum(v), 0.0), [](tensor const&) { return 3; }, [](tensor const&) { return 3; }, v);
  };
  tensor const x = counted({2}), y = vv::neg(x);
  auto const g = vv::make_fx(f)(x);
  for (tensor const& v : {x, y}) {
    CHECK(f(v).item<index_t>() == (vv::sum(v).item<double>() > 0 ? 3 : 5));
    CHECK(vv::interpret(g, vv::boxed_args(v))[0].item<index_t>() == f(v).item<index_t>());
    CHECK(vv::compile(f)(v).item<index_t>() == f(v).item<index_t>());
    CHECK(alike(v).item<index_t>() == 3);
  }
}

TEST_CASE("cond: compiled, its branches read captured tensors as they are at each call", "[hop][cond][CD-S17]") {
  tensor const a = vv::ones({2, 3}, dtype::float64), b = a + 1.0, x = counted({2, 3});
  auto const f = [&](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 100.0), [&](tensor const& u) { return tensor(u + a); },
        [&](tensor const& u) { return tensor(u * b); }, v);
  };
  auto const fast = vv::compile(f);
  CHECK(same(fast(x), x * 2.0));
  vv::add_(b, 1.0);
  CHECK(same(fast(x), x * 3.0));
  CHECK(same(fast(x + 100.0), x + 101.0));
}

TEST_CASE("cond: a trace of one holds one operator in each branch", "[hop][cond][graph][CD-S18]") {
  auto const f = [](tensor const& a, tensor const& b) {
    return vv::cond(
        vv::gt(vv::sum(a), 0.0), [](tensor const& u, tensor const& v) { return tensor(u + v); },
        [](tensor const& u, tensor const& v) { return tensor(u * v); }, a, b);
  };
  auto const g = vv::make_fx(f)(counted({2, 3}), counted({2, 3}));
  CHECK(g.regions.size() == 3);
  CHECK(g.regions[1].inputs == 2);
  CHECK(g.regions[2].inputs == 2);
  CHECK(g.count(vv::add) == 1);
  CHECK(g.count(vv::mul) == 1);
}

TEST_CASE("cond: of a constant predicate a trace has one branch alone", "[hop][cond][graph][CD-S24]") {
  auto const f = [](tensor const& x) { return vv::cond(true, sine, cosine, x); };
  auto const g = vv::make_fx(f)(counted({3}));
  CHECK(g.regions.size() == 1);
  CHECK(g.operations() == 1);
  CHECK(g.count(vv::sin) == 1);
}

TEST_CASE("cond: under vmap with a predicate for each lane", "[hop][cond][vmap][CD-S19]") {
  tensor const a = counted({3, 5}), b = vv::full({3, 5}, 4.0, dtype::float64);
  tensor const y = vv::vmap([](tensor const& u, tensor const& v) {
    return vv::cond(
        vv::lt(vv::sum(u), vv::sum(v)), [](tensor const& p, tensor const&) { return tensor(p + 100.0); },
        [](tensor const&, tensor const& q) { return tensor(q * 1.0); }, u, v);
  })(a, b);
  CHECK(elements(y) == std::vector<double>{100, 101, 102, 103, 104, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
}

TEST_CASE("cond: under two vmaps, of a predicate that is not mapped", "[hop][cond][vmap][CD-S21]") {
  tensor const a = vv::ones({3, 4, 5}, dtype::float64);
  auto const one_more = [](auto p) {
    return [p](tensor const& v) {
      return vv::cond(
          p, [](tensor const& u) { return tensor(u + 1.0); }, [](tensor const& u) { return tensor(u - 1.0); }, v);
    };
  };
  CHECK(same(vv::vmap(vv::vmap(one_more(true)))(a), a + 1.0));
  CHECK(same(vv::vmap(vv::vmap(one_more(vv::full({}, true))))(a), a + 1.0));
}

TEST_CASE("cond: branches of other sizes cannot be captured", "[hop][cond][exception][CD-S09][CD-S22]") {
  tensor const x = counted({2, 2});
  auto const joins = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return tensor(vv::cat(std::vector{u, u}, 0)); }, sine, v);
  };
  CHECK_THROWS_AS(vv::make_fx(joins)(x), vv::shape_error);
  CHECK_THROWS_AS(vv::compile(joins)(x), vv::shape_error);
  auto const makes = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const&) { return vv::ones({4}); },
        [](tensor const&) { return vv::ones({10, 10}); }, v);
  };
  CHECK_THROWS_AS(vv::make_fx(makes)(x), vv::shape_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("cond and loops keep the tangent of a dual level", "[hop][cond][forward_ad][CD-S28]") {
  namespace fa = vv::forward_ad;
  fa::dual_level const level;
  tensor const one = vv::ones({2}, dtype::float64), x = fa::make_dual(vv::zeros({2}, dtype::float64), one);
  auto const tangent = [](tensor const& y) { return tensor(fa::unpack_dual(y).tangent); };
  CHECK(same(tangent(vv::cond(vv::full({}, true), sine, cosine, x)), one));
  auto const looped = vv::while_loop(
      [](tensor const& n, tensor const&) { return vv::lt(n, 2.0); },
      [](tensor const& n, tensor const& v) { return std::tuple(tensor(n + 1.0), tensor(vv::sin(v) * 3.0)); },
      std::tuple(vv::full({}, 0.0, dtype::float64), x));
  CHECK(same(tangent(std::get<1>(looped)), one * 9.0));
  auto const times = [](tensor const& c, tensor const& r) { return std::pair(tensor(c + r), tensor(c * 2.0)); };
  CHECK(same(tangent(vv::scan(times, one, vv::stack(std::vector{x, x}, 0)).first), one * 2.0));
  CHECK(same(tangent(vv::associative_scan([](tensor const& a, tensor const& b) { return tensor(a + b); },
                                          vv::stack(std::vector{x, x}, 0))),
             vv::stack(std::vector{one, one * 2.0}, 0)));
  CHECK(same(tangent(vv::map(sine, vv::stack(std::vector{x, x}, 0))), vv::ones({2, 2}, dtype::float64)));
}

TEST_CASE("while_loop: in another one, by one carried count for both", "[hop][while_loop][graph][LP-S02]") {
  auto const nested = [](tensor const& a, tensor const& b, tensor const& c) {
    using state = std::tuple<tensor, tensor, tensor>;
    return vv::while_loop(
        [](tensor const& o, tensor const&, tensor const&) { return vv::lt(o, 2); },
        [](tensor const& o, tensor const& n, tensor const& y) {
          auto const [same_o, last, step] = vv::while_loop(
              [](tensor const&, tensor const& m, tensor const&) { return vv::lt(m, 10); },
              [](tensor const& p, tensor const& m, tensor const& z) { return state(vv::clone(p), m + z, z + 1); },
              state(o, n, y));
          return state(same_o + 1, last, step);
        },
        state(a, b, c));
  };
  tensor const zero = vv::full({}, 0);
  auto const values = [](tensor const& o, tensor const& n, tensor const& y) {
    return std::vector{o.item<index_t>(), n.item<index_t>(), y.item<index_t>()};
  };
  auto const [o, n, y] = nested(zero, zero, zero);
  CHECK(values(o, n, y) == std::vector<index_t>{2, 10, 5});
  auto const g = vv::make_fx(nested)(zero, zero, zero);
  CHECK(vv::verify(g));
  std::vector<std::string> names; // of the body of the outer loop, and of what is around
  for (auto const& node : g)
    if (std::string(node.op->name) == "while_loop") names.push_back(node.op->name);
  CHECK(names.size() == 2);
  auto const run = vv::interpret(g, vv::boxed_args(zero, zero, zero));
  CHECK(values(run[0], run[1], run[2]) == std::vector<index_t>{2, 10, 5});
}

TEST_CASE("while_loop: in another one, with counts of their own", "[hop][while_loop][LP-S03]") {
  using state = std::tuple<tensor, tensor, tensor, tensor>;
  auto const nested = [](tensor const& i, tensor const& j, tensor const& a, tensor const& b) {
    return vv::while_loop(
        [](tensor const& n, tensor const&, tensor const&, tensor const&) { return vv::gt(n, 0); },
        [](tensor const& n, tensor const& m, tensor const& x, tensor const& y) {
          auto const [n1, m1, x1, y1] =
              vv::while_loop([](tensor const&, tensor const& k, tensor const&, tensor const&) { return vv::gt(k, 0); },
                             [](tensor const& p, tensor const& k, tensor const& u, tensor const& v) {
                               return state(vv::clone(p), k - 1, u + 3.14, v - 2.71);
                             },
                             state(n, m, x, y));
          return state(n1 - 1, vv::clone(m1), x1 * 2.0, y1 / 2.0);
        },
        state(i, j, a, b));
  };
  tensor const two = vv::full({}, 2), one = vv::ones({2, 2}, dtype::float64);
  auto const check = [&](auto const& i, auto const& j, auto const& a, auto const& b) {
    CHECK((i.template item<index_t>() == 0 && j.template item<index_t>() == 0));
    CHECK(difference(a, one * 29.12, 1e-12) == "");
    CHECK(difference(b, one * -1.105, 1e-12) == "");
  };
  std::apply(check, nested(two, two, one, one));
  std::apply(check, vv::compile(nested)(two, two, one, one));
}

TEST_CASE("while_loop: carries a tree, compiled as well", "[hop][while_loop][graph][LP-S06]") {
  using tree = std::tuple<tensor, std::tuple<std::tuple<tensor>, std::pair<tensor, tensor>>>;
  auto const f = [](tensor const& n, tensor const& a, tensor const& b, tensor const& c) {
    return vv::while_loop([](tensor const& k, auto const&) { return vv::gt(k, 0); },
                          [](tensor const& k, auto const& v) {
                            auto const& [x, pair] = v;
                            return tree(k - 1, {{std::get<0>(x) + pair.first}, {pair.second * 0.5, std::get<0>(x)}});
                          },
                          tree(n, {{a}, {b, c}}));
  };
  tensor const n = vv::full({}, 3), x = counted({2});
  tree const slow = f(n, x, x + 1.0, x + 2.0), fast = vv::compile(f)(n, x, x + 1.0, x + 2.0);
  auto const all = [](tree const& t) {
    auto const& [k, rest] = t;
    return std::vector<tensor>{k, std::get<0>(std::get<0>(rest)), std::get<1>(rest).first, std::get<1>(rest).second};
  };
  for (std::size_t k = 0; k < 4; ++k) CHECK(same(all(slow)[k], all(fast)[k]));
  auto const g = vv::make_fx(f)(n, x, x + 1.0, x + 2.0);
  CHECK(g.regions[0].inputs == 4);
  CHECK(g.regions[1].inputs == 4);
}

TEST_CASE("scan: what its step captures in a tree are further inputs", "[hop][scan][graph][LP-S12]") {
  auto const f = [](tensor const& init, tensor const& xs, tensor const& param, tensor const& bias) {
    std::pair<tensor, std::tuple<tensor>> const captured{param, {bias}};
    return vv::scan(
        [&](tensor const& c, tensor const& x) {
          tensor const y = vv::matmul(vv::matmul(c, captured.first), x) + std::get<0>(captured.second);
          return std::pair(y, y);
        },
        init, xs);
  };
  tensor const init = counted({2, 2}) / 9.0, xs = counted({3, 2, 2}) / 5.0, param = init + 0.3, bias = counted({2});
  tensor c = init;
  std::vector<tensor> rows;
  for (int k = 0; k < 3; ++k) rows.push_back(c = vv::matmul(vv::matmul(c, param), at(xs, k)) + bias);
  auto const [last, all] = f(init, xs, param, bias);
  CHECK(same(last, c));
  CHECK(same(all, vv::stack(rows, 0)));
  auto const g = vv::make_fx(f)(init, xs, param, bias);
  REQUIRE(g.regions.size() == 2);
  CHECK(g.regions[1].inputs == 4);
  CHECK(same(vv::interpret(g, vv::boxed_args(init, xs, param, bias))[1], all));
}

TEST_CASE("scan: along another dimension and backwards, results have the step in front", "[hop][scan][LP-S13]") {
  tensor const xs = counted({2, 3});
  auto const [last, ys] =
      vv::scan<1>([](tensor const& c, tensor const& x) { return std::pair(tensor(c + x), tensor(c + x)); },
                  vv::zeros({2}, dtype::float64), xs, true);
  CHECK(elements(last) == std::vector<double>{3, 12});
  CHECK(ys.sizes() == dims{3, 2});
  CHECK(elements(ys) == std::vector<double>{3, 12, 3, 9, 2, 5});
}

TEST_CASE("associative_scan: sums and products along every dimension", "[hop][associative_scan][LP-S14]") {
  auto const plus = [](tensor const& a, tensor const& b) { return tensor(a + b); };
  auto const times = [](tensor const& a, tensor const& b) { return tensor(a * b); };
  tensor const one_to_four = counted({4}) + 1.0;
  CHECK(elements(vv::associative_scan(plus, one_to_four)) == std::vector<double>{1, 3, 6, 10});
  CHECK(elements(vv::associative_scan<0, true>(plus, one_to_four)) == std::vector<double>{10, 9, 7, 4});
  tensor const x = counted({2, 3, 2}) * 0.1 + 0.5;
  auto const check = [&](auto axis, auto backwards, auto const& f) {
    constexpr int d = decltype(axis)::value;
    tensor const y = vv::associative_scan<d, decltype(backwards)::value>(f, x);
    int const n = static_cast<int>(index_t(x.sizes()[d]));
    tensor sum;
    for (int k = 0; k < n; ++k) {
      int const here = backwards ? n - 1 - k : k;
      tensor const row = vv::select(x, d, here);
      sum = k ? f(sum, row) : row;
      CHECK(same(vv::select(y, d, here), sum));
    }
  };
  auto const both = [&](auto axis) {
    check(axis, std::false_type{}, plus), check(axis, std::true_type{}, plus);
    check(axis, std::false_type{}, times), check(axis, std::true_type{}, times);
  };
  both(std::integral_constant<int, 0>{}), both(std::integral_constant<int, 1>{}),
      both(std::integral_constant<int, 2>{});
}

TEST_CASE("map: rows of which one tree asks for a gradient", "[hop][map][LP-S19]") {
  tensor const x = counted({3, 2}), y = counted({3, 2}) + 1.0;
  auto const f = [](std::pair<tensor, tensor> const& v) {
    return tensor(vv::cos(vv::sin(v.first)) * vv::sin(vv::cos(v.second)));
  };
  x.requires_grad_();
  tensor const mapped = vv::map(f, std::pair{x, y});
  vv::sum(mapped).backward();
  tensor const again = x.detach() * 1.0;
  again.requires_grad_();
  std::vector<tensor> rows;
  for (int k = 0; k < 3; ++k) rows.push_back(f({at(again, k), at(y, k)}));
  CHECK(same(mapped.detach(), vv::stack(rows, 0).detach()));
  vv::sum(vv::stack(rows, 0)).backward();
  CHECK(same(x.grad(), again.grad()));
  CHECK_FALSE(y.grad().defined());
}

TEST_CASE("functions of cond and loops may not write into operands, in a branch of a branch or through a view",
          "[hop][functionalize][exception][MA-S03][MA-S06]") {
  tensor const x = counted({2, 2});
  auto const inner_writes = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0),
        [](tensor const& u) {
          return vv::cond(
              vv::gt(vv::sum(u), 1.0), [](tensor const& w) { return tensor(vv::add_(w, 1.0) * 1.0); },
              [](tensor const& w) { return tensor(w * 1.0); }, u);
        },
        [](tensor const& u) { return tensor(u * 1.0); }, v);
  };
  auto const through_a_view = [](tensor const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0.0),
        [](tensor const& u) {
          tensor const row = vv::reshape(u, dims{-1});
          vv::add_(row, 1.0);
          return tensor(vv::sum(row));
        },
        [](tensor const& u) { return tensor(vv::sum(u)); }, v);
  };
  CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(inner_writes))(vv::clone(x)), ContainsText("writes into"));
  CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(through_a_view))(vv::clone(x)), ContainsText("writes into"));
  CHECK(vv::this_thread_state.quiet());
}

namespace {
/// What a branch returns is its operand, or one tensor twice, and then one of them is written into.
template <class Branch, class After>
auto written_after(Branch const& branch, After const& after) {
  return [=](tensor const& x) {
    tensor const own = x * 1.0;
    auto const y = vv::cond(
        vv::gt(vv::sum(x), 0.0), branch, [](tensor const& u) { return std::pair(tensor(u * 2.0), tensor(u * 3.0)); },
        own);
    return tensor(after(own, y));
  };
}
} // namespace

TEST_CASE("cond: a trace refuses to write where a branch may have returned an operand, or one tensor twice",
          "[hop][cond][functionalize][exception][MA-S02][MA-S07]") {
  auto const passes = [](tensor const& u) { return std::pair(u, tensor(u * 3.0)); };
  auto const a_view = [](tensor const& u) { return std::pair(tensor(vv::reshape(u, dims{2, 2})), tensor(u * 3.0)); };
  auto const twice = [](tensor const& u) {
    tensor const own = u * 2.0;
    return std::pair(own, own);
  };
  auto const writes = [](tensor const& own, auto const& y) { return vv::add_(y.first, 1.0), own * y.second; };
  auto const writes_operand = [](tensor const& own, auto const& y) { return vv::add_(own, 1.0), y.first * 1.0; };
  auto const keeps = [](tensor const& own, auto const& y) { return vv::copy_(own, y.first), own * 2.0; };
  auto const reads = [](tensor const& own, auto const& y) { return own * y.first + y.second; };
  tensor const x = counted({2, 2}) + 1.0;
  auto const refused = [&](auto const& f) {
    CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(f))(x), ContainsText("cond returned"));
    CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(f)(x)), ContainsText("branch of cond"));
    CHECK_THROWS_WITH(vv::compile(f)(x), ContainsText("branch of cond"));
    CHECK(same(vv::functionalize(f)(x), f(x))); // without a trace the branch is run as it stands
    CHECK(vv::this_thread_state.quiet());
  };
  auto const as_it_is = [&](auto const& f) {
    CHECK(same(vv::interpret(vv::make_fx(vv::functionalize(f))(x), vv::boxed_args(x))[0], f(x)));
    CHECK(same(vv::compile(f)(x), f(x)));
  };
  refused(written_after(passes, writes)), refused(written_after(a_view, writes)), refused(written_after(twice, writes));
  refused(written_after(passes, writes_operand)), refused(written_after(a_view, writes_operand));
  as_it_is(written_after(passes, reads)), as_it_is(written_after(a_view, reads)), as_it_is(written_after(twice, reads));
  as_it_is(written_after(twice, writes_operand));
  as_it_is(written_after(passes, keeps)), as_it_is(written_after(a_view, keeps)); // nobody reads it afterwards
}

namespace {
struct unchanged : vv::function<unchanged> {
  static tensor forward(tensor x) { return x; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, auto g) { return g; }
};
struct first_row : vv::function<first_row> {
  static tensor forward(tensor x) { return vv::select(x, 0, 0); }
  static auto setup_context(auto c, auto const& in, auto const&) { return c.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& c, auto g) { return vv::zeros_like(std::get<0>(c.saved())) + g; }
};
} // namespace

TEST_CASE("custom functions and checkpoints that return an operand: the same in a trace",
          "[hop][functionalize][function][exception]") {
  tensor const x = counted({2, 2}) + 1.0;
  auto const overtaken = [](auto const& call) {
    return [=](tensor const& v) {
      tensor const own = v * 1.0, y = call(own);
      vv::add_(own, 1.0);
      return tensor(y * 1.0);
    };
  };
  auto const refused = [&](auto const& call, char const* name) {
    auto const f = overtaken(call);
    CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(f))(x), ContainsText(name) && ContainsText("written into since"));
    CHECK_THROWS_WITH(vv::functionalize(vv::make_fx(f)(x)), ContainsText("written into since"));
    CHECK(vv::this_thread_state.quiet());
  };
  auto const identity = [](tensor const& v) { return tensor(unchanged::apply(v)); };
  auto const row = [](tensor const& v) { return tensor(first_row::apply(v)); };
  auto const again = [](tensor const& v) { return tensor(vv::checkpoint([](tensor const& u) { return u; }, v)); };
  auto const twice = [](tensor const& v) { // one after the other, and one in the other
    auto const keeps = [](tensor const& u) {
      return vv::cond(
          vv::gt(vv::sum(u), 0.0), [](tensor const& w) { return w; }, [](tensor const& w) { return tensor(w * 2.0); },
          u);
    };
    return tensor(keeps(keeps(v)));
  };
  auto const nested = [](tensor const& v) {
    auto const inner = [](tensor const& u) {
      return vv::cond(
          vv::gt(vv::sum(u), 1.0), [](tensor const& w) { return w; }, [](tensor const& w) { return tensor(w * 2.0); },
          u);
    };
    return tensor(vv::cond(vv::gt(vv::sum(v), 0.0), inner, [](tensor const& u) { return tensor(u * 2.0); }, v));
  };
  refused(twice, "cond"), refused(nested, "cond");
  refused(identity, "unchanged"), refused(row, "first_row"), refused(again, "wrap_activation_checkpoint");
  CHECK_THROWS_WITH(vv::functionalize(overtaken(row))(x), ContainsText("first_row returned"));
  CHECK(same(vv::functionalize(overtaken(identity))(x), x + 1.0));
  CHECK(same(vv::compile(overtaken(identity))(x), x + 1.0)); // inlined, for values alone
  CHECK(same(vv::compile(overtaken(row))(x), at(x, 0) + 1.0));
}

TEST_CASE("a function that returns what it was given leaves that what it is, in a trace",
          "[hop][cond][function][make_fx]") {
  auto const captured = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [&](tensor const&) { return w; }, [](tensor const& u) { return tensor(u * 2.0); }, v);
    return tensor(w * 10.0 + y);
  };
  auto const operand = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return u; }, [](tensor const& u) { return tensor(u * 2.0); }, w);
    return tensor(w * 10.0 + y);
  };
  auto const written = [](tensor const& v) {
    tensor const w = v * 1.0;
    tensor const y = vv::cond(
        vv::gt(vv::sum(v), 0.0), [](tensor const& u) { return u; }, [](tensor const& u) { return tensor(u * 2.0); }, w);
    vv::add_(w, 1.0);
    return tensor(y * 1.0);
  };
  tensor const x = counted({2}) + 1.0, y = vv::neg(x);
  auto const check = [&](auto const& f) {
    for (tensor const& at : {x, y})
      for (auto const& g : {vv::make_fx(f)(at), vv::make_fx(f, vv::tracing::fake)(at)})
        for (tensor const& v : {x, y}) CHECK(same(vv::interpret(g, vv::boxed_args(v))[0], f(v)));
  };
  auto const deep = [](tensor const& v) { // of a trace around the one of the branch
    tensor const w = v * 1.0;
    return vv::cond(
        vv::gt(vv::sum(v), -100.0),
        [&](tensor const& u) {
          tensor const z = vv::cond(
              vv::gt(vv::sum(u), 0.0), [&](tensor const&) { return w; },
              [](tensor const& a) { return tensor(a * 2.0); }, u);
          return tensor(w * 10.0 + z);
        },
        [](tensor const& u) { return tensor(u * 1.0); }, v);
  };
  auto const in_a_loop = [](tensor const& v) {
    tensor const w = vv::select(v, 0, 0) * 1.0;
    return vv::map(
        [&](tensor const& u) {
          tensor const z = vv::cond(
              vv::gt(vv::sum(u), 0.0), [&](tensor const&) { return w; },
              [](tensor const& a) { return tensor(a * 2.0); }, u);
          return tensor(w * 10.0 + z);
        },
        v);
  };
  check(captured), check(operand), check(written), check(deep), check(in_a_loop);
  auto const fast = vv::compile(captured);
  for (tensor const& v : {x, y}) CHECK(same(fast(v), captured(v)));
  // what a custom function returned is used there alone: its derivative is not that of all uses
  auto const through = [](tensor const& v) {
    tensor const w = v * 1.0, u = first_row::apply(vv::stack(std::vector{w, w}, 0)), same_w = unchanged::apply(w);
    return tensor(w * 10.0 + u + same_w);
  };
  for (auto const& g : {vv::make_fx(through)(x), vv::make_fx(through, vv::tracing::fake)(x)}) {
    int products = 0;
    for (auto const& n : g)
      if (n.op == &vv::handle<vv::mul_t> && n.count == 2)
        products += g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(n.first)])].function < 0;
    CHECK(products >= 2); // of v and of w, not of what the function gave
    CHECK(same(vv::interpret(g, vv::boxed_args(y))[0], through(y)));
  }
}

TEST_CASE("scan: what its step returns twice are two results", "[hop][scan][functionalize][MA-S04]") {
  tensor const x = counted({3, 2});
  auto const f = [](tensor const& v) {
    auto const [last, rows] = vv::scan([](tensor const&, tensor const& r) { return std::pair(r, r); }, at(v, 0), v);
    vv::add_(last, 10.0);
    return tensor(rows * 1.0);
  };
  CHECK(same(f(x), x));
  CHECK(same(vv::functionalize(f)(x), x));
  CHECK(same(vv::compile(f)(x), x));
  CHECK(same(x, counted({3, 2})));
}
