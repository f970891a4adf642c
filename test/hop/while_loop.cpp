// SPDX-License-Identifier: BSL-1.0
#include "while_loop_test.hpp"

#include <varve_test.hpp>

using namespace while_loop_test;

TEST_CASE("while_loop: on tensors in every interpreter, as on static values", "[hop][while_loop]") {
  tensor const w = boxed(weight);
  for (auto const& s : {start, far}) {
    tensor const x = boxed(s);
    CHECK(powers<0>(x, w).item<double>() == Approx(powers_by_hand(s, weight)));
    auto const [gx, gw] = vv::grad<0, 1>(powers<0>)(x, w); // no bound is needed
    auto const [bx, bw] = vv::grad<0, 1>(powers<20>)(x, w);
    CHECK((agree(gx, bx) && agree(gw, bw)));
    check_gradient(s, std::array{at(gx, 0).item<double>(), at(gx, 1).item<double>()},
                   std::array{at(gw, 0).item<double>(), at(gw, 1).item<double>()});
    auto const along = vv::jvp(powers<0>, std::tuple(x, w), std::tuple(vv::ones_like(x), vv::ones_like(w))).second;
    CHECK(along.item<double>() == Approx((vv::sum(gx) + vv::sum(gw)).item<double>()));
    auto const of_w = [&](auto const& v) { return powers<0>(x, v); };
    tensor const second = vv::jacfwd(vv::grad(of_w))(w);
    CHECK(agree(second, vv::jacrev(vv::grad(of_w))(w)));
    CHECK(agree(second, vv::jacrev([&](auto const& v) { return vv::jacfwd(of_w)(v); })(w)));
  }
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("while_loop: mapped, it goes on while any lane does", "[hop][while_loop]") {
  tensor const a = boxed(array<double, 3>{1000, 1, 8});
  tensor const y = vv::vmap(cube_root<0>)(a), g = vv::vmap(vv::grad(cube_root<0>))(a),
               b = vv::vmap(vv::grad(cube_root<50>))(a), gg = vv::vmap(vv::grad(vv::grad(cube_root<0>)))(a);
  tensor const outside = vv::grad([](auto const& v) { return vv::sum(vv::vmap(cube_root<0>)(v)); })(a);
  for (int k = 0; k < 3; ++k) {
    CHECK(agree(at(y, k), cube_root<0>(at(a, k))));
    CHECK(agree(at(g, k), vv::grad(cube_root<0>)(at(a, k))));
    CHECK(agree(at(b, k), at(g, k)));
    CHECK(agree(at(outside, k), at(g, k)));
    CHECK(agree(at(gg, k), vv::grad(vv::grad(cube_root<0>))(at(a, k))));
  }
  tensor const x = vv::stack(std::vector{boxed(start), boxed(far)}, 0), w = boxed(weight);
  auto const both = vv::vmap(vv::grad<0, 1>(powers<0>), vv::in_dims<0, vv::none>)(x, w);
  for (int k = 0; k < 2; ++k) {
    auto const [gx, gw] = vv::grad<0, 1>(powers<0>)(at(x, k), w);
    CHECK(agree(at(std::get<0>(both), k), gx));
    CHECK(agree(at(std::get<1>(both), k), gw));
  }
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("while_loop: what its functions capture is differentiated, mapped and lifted", "[hop][while_loop][graph]") {
  auto const captured = [](auto const& limit, auto const& k) {
    return vv::while_loop([&](auto const& x) { return x < limit; }, [&](auto const& x) { return x * k + limit; },
                          vv::full({}, 1.0, vv::dtype::float64));
  };
  tensor const limit = boxed(20.0), k = boxed(2.0); // 1, 22
  CHECK(captured(limit, k).item<double>() == 22);
  CHECK(vv::grad<1>(captured)(limit, k).item<double>() == 1);
  CHECK(vv::grad<0>(captured)(limit, k).item<double>() == 1);
  tensor const more = vv::vmap(captured, vv::in_dims<0, vv::none>)(boxed(array<double, 2>{0.5, 20}), k);
  CHECK(agree(more, boxed(array<double, 2>{1, 22})));
  auto const g = vv::make_fx(captured)(limit, k), dg = vv::make_fx(vv::grad<1>(captured))(limit, k);
  CHECK(vv::verify(g));
  CHECK(g.regions.size() == 3);
  CHECK(g.regions[1].inputs == 3); // both functions take what either captures
  CHECK(g.regions[2].inputs == 3);
  for (double l : {0.5, 3.0, 100.0}) { // other numbers of steps than were traced
    vv::boxed_args const other(boxed(l), boxed(1.5));
    CHECK(agree(vv::interpret(g, other)[0], captured(other[0], other[1])));
    CHECK(agree(vv::interpret(dg, other)[0], vv::grad<1>(captured)(other[0], other[1])));
  }
}

TEST_CASE("while_loop: compiled, the gradient needs a bound", "[hop][while_loop][graph][exception]") {
  auto const doubled = [](auto bound) {
    return [](auto const& x) {
      return vv::while_loop<decltype(bound)::value>([](auto const& v) { return v < 100.0; },
                                                    [](auto const& v) { return v * 2.0; }, x);
    };
  };
  auto const open = doubled(std::integral_constant<vv::index_t, 0>{});
  CHECK(vv::compile(open)(boxed(1.5)).item<double>() == 192);
  CHECK_THROWS_WITH(vv::compile(vv::grad(open))(boxed(1.5)), ContainsText("give the loop one: while_loop<100>"));
  auto const g = vv::compile(vv::grad(doubled(std::integral_constant<vv::index_t, 20>{})));
  CHECK(g(boxed(1.5)).item<double>() == 128);
  CHECK(g(boxed(150.0)).item<double>() == 1);
}

TEST_CASE("while_loop: a static trace has both functions, with what either captures", "[hop][while_loop][graph]") {
  constexpr auto g = vv::trace(
      [](auto x, auto limit) {
        return vv::while_loop([=](auto y) { return y < limit; }, [=](auto y) { return y * x; }, x);
      },
      vv::spec<double>, vv::spec<double>);
  static_assert(vv::verify(g.thaw()) && g.sizes.regions == 3 && g.regions[1].inputs == 3 && g.regions[2].inputs == 3);
  CHECK(vv::interpret(g.thaw(), vv::boxed_args(boxed(2.0), boxed(100.0)))[0].item<double>() == 128);
  constexpr auto backwards = vv::trace(vv::grad(cube_root<50>), vv::spec<double>);
  static_assert(vv::verify(backwards.thaw()));
  CHECK(vv::interpret(backwards.thaw(), vv::boxed_args(boxed(27.0)))[0].item<double>() == Approx(1.0 / 27));
}

TEST_CASE("while_loop: modes are given one call, and what its functions do, and so of map", "[hop][while_loop][map]") {
  auto const doubled = [](auto const& x) {
    return vv::while_loop([](auto const& y) { return y < 100.0; }, [](auto const& y) { return y * 2.0; }, x);
  };
  counting mode;
  {
    vv::mode_guard const on{mode};
    CHECK(doubled(boxed(5.0)).item<double>() == 160);
    CHECK(agree(vv::map(doubled, boxed(array<double, 2>{60, 30})), boxed(array<double, 2>{120, 120})));
  }
  CHECK((mode.loops == 3 && mode.maps == 1 && mode.products == 5 + 1 + 2));
  counting of_gradient;
  {
    vv::mode_guard const on{of_gradient};
    CHECK(vv::grad(doubled)(boxed(5.0)).item<double>() == 32);
  }
  CHECK(of_gradient.loops == 1);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("while_loop: trees, no step, eager gradients", "[hop][while_loop][LP-S21]") {
  tensor const x = vv::ones({2});
  auto const carried = std::tuple(vv::full({}, 3), std::pair{std::vector{x, x + 1.0}, x});
  auto const [n, rest] = vv::while_loop(
      [](tensor const& n, auto const&) { return n > 0; },
      [](tensor const& n, auto const& v) {
        return std::tuple(tensor(n - 1), std::pair{std::vector<tensor>{v.first[1], v.second}, tensor(v.first[0] * 2)});
      },
      carried);
  CHECK(n.item<std::int64_t>() == 0);
  CHECK(agree(rest.second, vv::full({2}, 2.0f)));
  // no step gives copies
  tensor const same =
      vv::while_loop([](tensor const&) { return false; }, [](tensor const& v) { return tensor(v * 2); }, x);
  CHECK(agree(same, x));
  CHECK_FALSE(same.shares_storage(x));
  CHECK_FALSE(
      vv::while_loop([](tensor const& v) { return vv::sum(v) < 3.0; }, [](tensor const& v) { return v; }, x + 1.0)
          .shares_storage(x));
  tensor const leaf = boxed(27.0);
  leaf.requires_grad_();
  cube_root<0>(leaf).backward();
  CHECK(leaf.grad().item<double>() == Approx(1.0 / 27));
}

TEST_CASE("while_loop: what is wrong is said at once, and leaves every stack as it was",
          "[hop][while_loop][exception][LP-S05]") {
  tensor const x = vv::ones({2}), n = vv::full({}, 2);
  auto const go = [](tensor const& n, tensor const&) { return n > 0; };
  auto const body = [&](auto f) { return [=](tensor const& n, tensor const& v) { return f(n, v); }; };
  CHECK_THROWS_WITH(
      vv::while_loop(go, body([](auto const& n, auto const& v) {
                       return std::tuple(vv::to(n, vv::dtype::int32), tensor(vv::reshape(v, vv::dims{1, 2})));
                     }),
                     std::tuple(n, x)),
      ContainsText("while_loop: the function must give values of the same metadata") &&
          ContainsText("value 0: dtype int64 became int32") && ContainsText("value 1: sizes [2] became [1, 2]."));
  CHECK_THROWS_AS(vv::while_loop(go, body([](auto const& n, auto const& v) {
                                   return std::tuple(tensor(n - 1), tensor(vv::to(v, vv::dtype::float64)));
                                 }),
                                 std::tuple(n, x)),
                  vv::dtype_error);
  CHECK_THROWS_WITH(vv::while_loop([](tensor const& v) { return v > 0; }, [](tensor const& v) { return v; }, x),
                    ContainsText("the condition must give one bool"));
  CHECK_THROWS_WITH(vv::while_loop([](tensor const& v) { return vv::sum(v); }, [](tensor const& v) { return v; }, x),
                    ContainsText("the condition must give one bool"));
  auto const writes = [](tensor const& v) {
    vv::add_(v, 1);
    return v;
  };
  auto const small = [](tensor const& v) { return vv::sum(v) < 10.0; };
  CHECK_THROWS_WITH(vv::while_loop(small, writes, vv::clone(x)),
                    ContainsText("while_loop: the function writes into one of its operands"));
  CHECK_THROWS_WITH(vv::while_loop([&](tensor const& v) { return vv::sum(writes(v)) < 10.0; },
                                   [](tensor const& v) { return v; }, vv::clone(x)),
                    ContainsText("writes into one of its operands"));
  CHECK_THROWS_WITH(vv::while_loop<4>(
                        small, [](tensor const& v) { return v; }, x),
                    ContainsText("while_loop is not done after the 4 steps that bound it"));
  CHECK_THROWS_AS(vv::vmap(vv::grad(cube_root<3>))(boxed(array<double, 2>{1e6, 1})), vv::step_limit_error);
  // of lanes too, where what a body gives is selected, not broadcast or promoted to what is carried
  auto const lanes = [&](auto const& f) {
    return vv::vmap([&](tensor const& v) {
      return vv::while_loop<4>([](tensor const& u) { return vv::sum(u) < 10.0; }, f, v);
    })(vv::stack(std::vector{x, x}, 0));
  };
  CHECK_THROWS_AS(lanes([](tensor const& v) { return tensor(vv::sum(v) + 10.0); }), vv::shape_error);
  CHECK_THROWS_WITH(lanes([](tensor const& v) { return vv::to(v, vv::dtype::bool_); }),
                    ContainsText("value 0: dtype float32 became bool"));
  constexpr auto traced = [](auto v) {
    return vv::vmap([](auto r) {
      return vv::while_loop<4>([](auto u) { return vv::sum(u) < 10.0; }, [](auto u) { return vv::sum(u) + 10.0; }, r);
    })(v);
  };
  CHECK_THROWS_AS(vv::trace_graph(traced, vv::meta{vv::dtype::float32, {2, 3}}), vv::shape_error);
  CHECK_THROWS_AS(vv::grad(cube_root<3>)(boxed(1e6)), vv::step_limit_error);
  CHECK(cube_root<9>(boxed(8.0)).item<double>() == Approx(2));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a loop that makes no step writes nothing and draws nothing", "[hop][while_loop][scan]") {
  tensor const x = vector_of({0.5, 1, 2});
  auto const none = [](tensor const& v) {
    auto const never = [](tensor const& k, tensor const&) { return k < 0; };
    auto const step = [](tensor const& k, tensor const& u) {
      vv::mul_(u, 2.0);
      return std::tuple(k + 1, u * 1.0);
    };
    return std::get<1>(vv::while_loop(never, step, std::tuple(vv::zeros({}, dtype::int64), v)));
  };
  CHECK(elements(none(x)) == elements(x));
  CHECK(elements(vv::vjp(none, x).first) == doubles({0.5, 1, 2}));
  CHECK(elements(vv::jvp(none, std::tuple(x), std::tuple(x)).first) == doubles({0.5, 1, 2}));
  CHECK((elements(x) == doubles({0.5, 1, 2}) && x.version() == 0));
  vv::manual_seed(3);
  tensor const next = vv::randn({2});
  vv::manual_seed(3);
  auto const noisy = [](tensor const& r) { return r + vv::randn({}, dtype::float64); };
  CHECK(vv::map(noisy, vv::zeros({0}, dtype::float64)).sizes() == dims{0});
  CHECK(elements(vv::randn({2})) == elements(next));
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
