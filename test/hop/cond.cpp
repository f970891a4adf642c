// SPDX-License-Identifier: BSL-1.0
#include "../sample/loop.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// log(v) above 0, v * v below: the branch not taken has no value there.
auto const piecewise = [](auto const& v) {
  return vv::cond(v > 0.0, [](auto const& a) { return vv::log(a); }, [](auto const& a) { return a * a; }, v);
};
tensor number(double v) { return from({v}, {}); }
} // namespace

TEST_CASE("cond: on tensors in every interpreter, and mapped by vmap without a trace of the branch not taken",
          "[hop][cond]") {
  tensor const x = from({0.5, -1, 2, 0}, {4});
  CHECK(piecewise(number(2)).item<double>() == Approx(std::log(2.0)));
  CHECK(piecewise(number(-3)).item<double>() == 9);
  CHECK(vv::grad(piecewise)(number(2)).item<double>() == 0.5);
  CHECK(vv::grad(vv::grad(piecewise))(number(2)).item<double>() == -0.25);
  CHECK(vv::jvp(piecewise, std::tuple(number(-3)), std::tuple(number(2))).second.item<double>() == -12);
  CHECK(elements(vv::vmap(vv::grad(piecewise))(x)) == std::vector<double>{2, -2, 0.5, 0}); // not 0 * inf
  CHECK(elements(vv::vmap(vv::grad(vv::grad(piecewise)))(x)) == std::vector<double>{-4, 2, -0.25, 2});
  CHECK(elements(vv::vmap([](tensor const& v) { return vv::jvp(piecewise, std::tuple(v), std::tuple(v)).second; })(
            x)) == std::vector<double>{1, 2, 1, 0});
  auto const total = [](tensor const& v) { return vv::sum(vv::vmap(piecewise)(v)); };
  tensor const g = vv::grad(total)(from({0.5, -1, 2}, {3}));
  CHECK(elements(g) == std::vector<double>{2, -2, 0.5});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("cond: static and dynamic agree", "[hop][cond]") {
  for (double v : {0.5, -1.0, 2.0}) {
    CHECK(vv::grad(piecewise)(number(v)).item<double>() == vv::grad(piecewise)(v));
    CHECK(vv::jvp(piecewise, std::tuple(number(v)), std::tuple(number(1))).second.item<double>() ==
          vv::jvp(piecewise, std::tuple(v), std::tuple(1.0)).second);
  }
  vv::array<double, 3> const a{0.5, -1, 2};
  auto const fixed = vv::vmap(vv::grad(piecewise))(a);
  CHECK(elements(vv::vmap(vv::grad(piecewise))(from({0.5, -1, 2}, {3}))) ==
        std::vector<double>(fixed.data, fixed.data + 3));
}

TEST_CASE("cond: branches of different dtypes are refused as such, traced too", "[hop][cond][exception]") {
  constexpr auto f = [](auto x) {
    return vv::cond(vv::sum(x) > 0.0, [](auto v) { return v; }, [](auto v) { return v > 0.0; }, x);
  };
  CHECK_THROWS_AS(vv::trace_graph(f, vv::meta{vv::dtype::float32, {3}}), vv::dtype_error);
  CHECK_THROWS_AS(vv::make_fx(f)(from({1, 2}, {2})), vv::dtype_error);
}

TEST_CASE("cond: what a branch captures is differentiated, mapped and carried along", "[hop][cond]") {
  tensor const x = from({0.5, -1, 2}, {3}), w = number(3);
  auto const f = [](tensor const& v, tensor const& c) {
    tensor const d = c * 1; // tracked by the same level, but no operand
    return vv::cond(v > 0.0, [&](tensor const& a) { return a * d; }, [&](tensor const& a) { return a * d * d; }, v);
  };
  auto const [gx, gw] = vv::vmap(vv::grad(f, vv::argnums<0, 1>), vv::in_dims<0, vv::none>)(x, w);
  CHECK(elements(gx) == std::vector<double>{3, 9, 3});
  CHECK(elements(gw) == std::vector<double>{0.5, -6, 2});
  CHECK(vv::grad(f, vv::argnums<1>)(number(-1), w).item<double>() == -6);
  // Two levels: the captured value is tracked by the outer gradient through the inner one.
  auto const inner = [&](tensor const& c) {
    return vv::grad([&](tensor const& v) {
      return vv::cond(v > 0.0, [&](tensor const& a) { return a * c * c; }, [&](tensor const& a) { return a; }, v);
    })(number(2));
  };
  CHECK(inner(w).item<double>() == 9);
  CHECK(vv::grad(inner)(w).item<double>() == 6);
  CHECK(vv::jvp(inner, std::tuple(w), std::tuple(number(1))).second.item<double>() == 6);
  auto const both = [](tensor const& v) {
    return vv::grad([&](tensor const& u) {
      tensor const p = u * v;
      return vv::cond(u > 0.0, [&](tensor const& a) { return a * p; }, [&](tensor const& a) { return a; }, u);
    })(v);
  };
  CHECK(both(number(2)).item<double>() == 8);           // d/du u * u * v = 2 u v
  CHECK(vv::grad(both)(number(2)).item<double>() == 8); // of 2 v^2: 4 v
  CHECK(elements(vv::vmap([](tensor const& v) {
          return vv::vmap([&](tensor const& p) {
            return vv::cond(p > 0.0, [&](tensor const& a) { return a * v; }, [&](tensor const& a) { return a; }, p);
          })(from({1, -1}, {2}));
        })(from({5, 7}, {2}))) == std::vector<double>{5, -1, 7, -1});
}

TEST_CASE("cond: in the step of a loop, whose gradient is mapped", "[hop][cond][scan][while_loop]") {
  auto const branch = [](tensor const& v) {
    return vv::cond(v > 0.5, [](tensor const& a) { return a * 2.0; }, [](tensor const& a) { return a * a; }, v);
  };
  auto const in_scan = [&](tensor const& v) {
    return vv::scan([&](tensor const& c, tensor const& row) { return std::pair{branch(c * row), vv::none}; }, v,
                    vv::stack(std::vector{v, v}, 0))
        .first;
  };
  auto const in_loop = [&](tensor const& v) {
    return vv::while_loop<6>([](tensor const& z) { return z < 3.0; }, [&](tensor const& z) { return branch(z) + 1.0; },
                             v);
  };
  tensor const x = from({0.25, 1}, {2}); // x^10 and 4 x^3
  CHECK(elements(vv::vmap(vv::grad(in_scan))(x)) == std::vector<double>{10 * std::pow(0.25, 9), 12});
  CHECK(elements(vv::vmap(vv::grad(vv::grad(in_scan)))(x)) == std::vector<double>{90 * std::pow(0.25, 8), 24});
  CHECK(elements(vv::compile(vv::vmap(vv::grad(in_scan)))(x)) == std::vector<double>{10 * std::pow(0.25, 9), 12});
  CHECK(elements(vv::vmap(vv::grad(in_loop))(x)) == std::vector<double>{1, 2}); // 2 (x x + 1) + 1, 2 x + 1
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("cond: a trace holds branches of one shape and dtype", "[hop][cond][graph][exception]") {
  CHECK_THROWS_WITH(vv::make_fx([](tensor const& v) {
                      return vv::cond(
                          vv::sum(v) > 0.0, [](tensor const& a) { return vv::sum(a); },
                          [](tensor const& a) { return a; }, v);
                    })(from({1, 2}, {2})),
                    ContainsText("cond (results of the branches)"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("cond: several results, of other dtypes too", "[hop][cond]") {
  auto const f = [](tensor const& v) {
    auto const [a, b, n] = vv::cond(
        v > 0.0, [](tensor const& u) { return std::tuple(u * 2, u * u, vv::ones({}, dtype::int64)); },
        [](tensor const& u) { return std::tuple(u, vv::neg(u), vv::zeros({}, dtype::int64)); }, v);
    return a + b * n;
  };
  CHECK(elements(vv::vmap(f)(from({1, -1, 3}, {3}))) == std::vector<double>{3, -1, 15});
  CHECK(elements(vv::vmap(vv::grad(f))(from({1, -1, 3}, {3}))) == std::vector<double>{4, 1, 8});
  auto const bad = [](tensor const& v) {
    return vv::cond(
        v > 0.0, [](tensor const& u) { return u; }, [](tensor const& u) { return vv::reshape(u, dims{1}); }, v);
  };
  CHECK_NOTHROW(bad(number(1)));
  CHECK_THROWS_AS(vv::vmap(bad)(from({1, 2}, {2})), vv::shape_error);
  CHECK_THROWS_AS(
      vv::cond(
          from({1, 2}, {2}) > 0.0, [](tensor const& u) { return u; }, [](tensor const& u) { return u; }, number(1)),
      vv::shape_error);
}

namespace {
struct silent : vv::dispatch_mode<silent> {
  std::string names;
  tensor process(vv::boxed_op op, vv::boxed_args const& args) {
    names += std::string(names.empty() ? "" : " ") + op.name();
    return op(args);
  }
};
struct noting : vv::dispatch_mode<noting> {
  static constexpr bool supports_higher_order_operators = true;
  std::vector<std::string> names;
  auto process(auto op, auto const& args) {
    names.emplace_back(op.name());
    return op(args);
  }
};
struct interrupted {};
} // namespace

TEST_CASE("cond: modes are given one call, or have a rule, or see what the branch does", "[hop][cond][mode]") { // HO-5
  noting n;
  {
    vv::mode_guard const on{n};
    CHECK(piecewise(number(-3)).item<double>() == 9);
    CHECK(n.names == std::vector<std::string>{"gt", "cond", "mul"});
    n.names.clear();
    CHECK(vv::grad(piecewise)(number(-3)).item<double>() == -6);
    CHECK(std::count(n.names.begin(), n.names.end(), "cond") == 2); // forward, and the pullback is one as well (HO-12)
  }
  silent s;
  {
    vv::mode_guard const on{s};
    CHECK(piecewise(number(-3)).item<double>() == 9);
    CHECK(s.names == "gt mul");
    CHECK(vv::grad(piecewise)(number(-3)).item<double>() == -6);
    s.names.clear();
    auto const walked = [](tensor const& x) {
      auto const step = [](tensor const& c, tensor const& r) {
        tensor const product = c * r; // before the sum, whatever the order of arguments
        return std::pair(product, c + r);
      };
      return vv::scan(step, number(1), x).second;
    };
    CHECK(elements(walked(from({2, 3}, {2}))) == std::vector<double>{3, 5});
    CHECK(s.names == "mul add mul add");
  }
  struct ruled : vv::dispatch_mode<ruled> {
    int calls = 0;
    tensor process(vv::boxed_op op, vv::boxed_args const& args) { return op(args); }
  } r;
  vv::cond_operator().impl_mode<ruled>([](ruled& m, vv::boxed_hop const& op, vv::boxed_args const& x) {
    ++m.calls;
    return op(x);
  });
  CHECK_THROWS_WITH(vv::cond_operator().impl_mode<ruled>(
                        [](ruled&, vv::boxed_hop const& op, vv::boxed_args const& x) { return op(x); }),
                    ContainsText("already"));
  vv::mode_guard const on{r};
  CHECK(piecewise(number(-3)).item<double>() == 9);
  CHECK(r.calls == 1);
}

namespace {
struct two : vv::tensor_subclass<two> { // HO-S04
  tensor a, b;
  two(tensor p, tensor q) : a(std::move(p)), b(std::move(q)) {}
  auto parts() const { return std::tie(a, b); }
  two with_parts(tensor const& p, tensor const& q) const { return {p, q}; }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    return vv::make_subclass(two(op(vv::unwrap_all<two>(x, 0)), op(vv::unwrap_all<two>(x, 1))));
  }
};
} // namespace

TEST_CASE("cond: on a subclass, without a rule and with one", "[hop][cond][subclass][HO-S04]") {
  tensor const t = vv::make_subclass(two(number(2), number(-3)));
  auto const f = [](tensor const& v) {
    return vv::cond(
        vv::ones({}), [](tensor const& a) { return vv::sin(a); }, [](tensor const& a) { return vv::cos(a); }, v);
  };
  CHECK(vv::unwrap<two>(f(t)).b.item<double>() == Approx(std::sin(-3.0))); // it sees what the branch does
  int calls = 0;
  vv::cond_operator().impl_subclass(vv::detail::subclass_type_of<two>,
                                    [&](vv::boxed_hop const& op, vv::boxed_args const& x) {
                                      ++calls;
                                      auto const a = op(vv::unwrap_all<two>(x, 0)), b = op(vv::unwrap_all<two>(x, 1));
                                      return vv::boxed_args(vv::make_subclass(two(a[0], b[0])));
                                    });
  tensor const y = f(t);
  CHECK(calls == 1);
  CHECK(vv::unwrap<two>(y).a.item<double>() == Approx(std::sin(2.0)));
  CHECK(vv::unwrap<two>(y).b.item<double>() == Approx(std::sin(-3.0)));
}

TEST_CASE("cond: a run-time trace holds both branches, with captured values as inputs", "[hop][cond][graph]") {
  auto const f = [](tensor const& v, tensor const& w) {
    tensor const s = v * w;
    return vv::cond(v > 0.0, [&](tensor const& a) { return a * s; }, [&](tensor const& a) { return a - w; }, v);
  };
  auto const g = vv::make_fx(f)(number(2), number(3));
  CHECK(g.regions.size() == 3);
  CHECK_NOTHROW(vv::verify(g));
  CHECK(vv::interpret(g, vv::boxed_args(number(2), number(3)))[0].item<double>() == 12);
  CHECK(vv::interpret(g, vv::boxed_args(number(-2), number(3)))[0].item<double>() ==
        -5); // the branch the trace did not take
  auto const run = [&](tensor const& v) { return vv::interpret(g, vv::boxed_args(v, number(3)))[0]; };
  CHECK(elements(vv::vmap(vv::grad(run))(from({2, -2}, {2}))) == std::vector<double>{12, 1});
  auto const nested = [](tensor const& v) {
    return vv::cond(
        v > 0.0,
        [&](tensor const& a) {
          return vv::cond(a > 1.0, [&](tensor const& b) { return b * v; }, [](tensor const& b) { return b; }, a);
        },
        [](tensor const& a) { return vv::neg(a); }, v);
  };
  auto const h = vv::make_fx(nested)(number(-1));
  CHECK(vv::interpret(h, vv::boxed_args(number(3)))[0].item<double>() == 9);
  CHECK(vv::interpret(h, vv::boxed_args(number(0.5)))[0].item<double>() == 0.5);
  CHECK(vv::interpret(h, vv::boxed_args(number(-4)))[0].item<double>() == 4);
}

TEST_CASE("cond: an exception in a branch leaves every stack as it was", "[hop][cond][exception]") {
  auto const f = [](tensor const& v) {
    return vv::cond(
        v > 0.0, [](tensor const&) -> tensor { throw interrupted{}; }, [](tensor const& a) { return a; }, v);
  };
  noting n;
  vv::mode_guard const on{n};
  CHECK_THROWS_AS(f(number(1)), interrupted);
  CHECK_THROWS_AS(vv::vmap(vv::grad(f))(from({1, -1}, {2})), interrupted);
  CHECK_THROWS_AS(
      vv::vmap([&](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(v)).second; })(from({1, -1}, {2})),
      interrupted);
  CHECK_THROWS_AS(vv::make_fx(f)(number(-1)), interrupted);
  CHECK(vv::this_thread_state.transforms.top == nullptr);
  CHECK(vv::current_modes().size() == 1);
}

TEST_CASE("branches of cond return vectors in every world of tensors", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1}), rows = vv::stack(std::vector<tensor>{x, x * -1.0}, 0);
  auto const f = [](tensor const& v) {
    std::vector<tensor> const r = vv::cond(
        vv::sum(v) > 0, [](tensor const& a) { return std::vector<tensor>{a * 2.0, a + 1.0}; },
        [](tensor const& a) { return std::vector<tensor>{a, a}; }, v);
    return vv::sum(r.at(0) * r.at(1));
  };
  CHECK(f(x).item<double>() == 40);
  CHECK(vv::compile(f)(x).item<double>() == 40);
  CHECK(vv::functionalize(f)(x).item<double>() == 40);
  CHECK(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0].item<double>() == 40);
  CHECK(elements(vv::vmap(f)(rows)) == doubles({40, 17}));
  CHECK(elements(vv::vmap(vv::grad(f))(rows)) == doubles({18, 2, -2, -8, 0, 2}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(rows)) ==
        doubles({18, 2, -2, -8, 0, 2}));
  auto const uneven = [](tensor const& v) {
    return vv::cond(
               vv::sum(v) > 0, [](tensor const& a) { return std::vector<tensor>{a * 2.0, a + 1.0}; },
               [](tensor const& a) { return std::vector<tensor>{a}; }, v)
        .at(0);
  };
  auto const refused = ContainsText("cond: both functions must return the same number of values: 2 and 1");
  CHECK_THROWS_WITH(vv::make_fx(uneven)(x), refused);
  CHECK_THROWS_WITH(vv::compile(uneven)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(uneven)(rows), ContainsText("number of values"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a branch of cond returns a plain number", "[hop][cond]") {
  tensor const x = vector_of({4, 0, -1});
  auto const f = [](auto const& v) {
    return vv::cond(v > 0, [](auto const& a) { return a * 2.0; }, [](auto const&) { return 0.0; }, v);
  };
  auto const total = [&](auto const& v) { return vv::sum(vv::vmap(f)(v)); };
  CHECK(f(vv::sum(x)).item<double>() == 6);
  CHECK_FALSE(f(vv::sum(x) * -1.0).is_number());
  CHECK(elements(vv::vmap(f)(x)) == doubles({8, 0, 0}));
  CHECK(elements(vv::grad(total)(x)) == doubles({2, 0, 0}));
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == doubles({2, 0, 0}));
  CHECK(elements(vv::jvp(vv::vmap(f), std::tuple(x), std::tuple(x)).second) == doubles({8, 0, 0}));
  CHECK(elements(vv::compile(f)(vv::sum(x) * -1.0)) == doubles({0}));
  CHECK(elements(vv::compile(vv::vmap(f))(x)) == doubles({8, 0, 0}));
  CHECK(elements(vv::functionalize(f)(vv::sum(x))) == doubles({6}));
  CHECK(elements(vv::interpret(vv::make_fx(f)(vv::sum(x)), vv::boxed_args(vv::sum(x) * -1.0))[0]) == doubles({0}));
  auto const signs = [](tensor const& v) {
    return vv::cond(v > 0, [](tensor const&) { return 1.0; }, [](tensor const&) { return -1.0; }, v);
  };
  CHECK(elements(vv::vmap(signs)(x)) == doubles({1, -1, -1}));
  auto const pair = [](tensor const& v) {
    return std::get<1>(vv::cond(
        v > 0, [](tensor const& a) { return std::tuple(a, 1.0); }, [](tensor const& a) { return std::tuple(0.0, a); },
        v));
  };
  CHECK(elements(vv::vmap(pair)(x)) == doubles({1, 0, -1}));
  vv::array<double, 3> const s{4, 0, -1};
  CHECK(vv::equal(vv::vmap(f)(s), vv::array<double, 3>{8, 0, 0}));
  CHECK(vv::equal(vv::grad(total)(s), vv::array<double, 3>{2, 0, 0}));
}

namespace {
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
