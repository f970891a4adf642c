// SPDX-License-Identifier: BSL-1.0
// Higher-order operators and custom functions under functionalize: one rule for all of the former (HO-14), the
// functional form of the latter (AF-19, FN-24).
#include "../transform/functional_test.hpp"

using namespace functional_test;

namespace {
tensor row(tensor const& t, index_t i) { return vv::select(t, 0, i); }
tensor over(tensor const& v, double s) {
  tensor const t = v * 1;
  vv::mul_(row(t, 0), s), vv::sin_(t);
  return t;
}
program const with_cond = [](tensor const& x) {
  tensor const y = x * 1;
  vv::add_(row(y, 1), 0.5); // not done when the branch reads it
  return vv::cond(
      vv::gt(vv::sum(x), 0.0), [&](tensor const& v) { return over(v, 2.0) + y; },
      [&](tensor const& v) { return over(v, 3.0) * y; }, x);
};
program const with_scan = [](tensor const& x) {
  auto const [last, all] = vv::scan(
      [](tensor const& c, tensor const& r) {
        tensor const next = c * 0.5;
        vv::add_(next, r), vv::sin_(vv::slice(next, 0, 0, 1));
        return std::pair{next, next * r};
      },
      row(x, 0), x);
  return all + last;
};
program const with_map = [](tensor const& x) {
  return vv::map([](tensor const& r) { return over(vv::stack(std::vector<tensor>{r, r}, 0), 1.5); }, x);
};
program const with_loop = [](tensor const& x) {
  auto const [n, y] = vv::while_loop([](tensor const& k, tensor const&) { return vv::lt(k, 3.0); },
                                     [](tensor const& k, tensor const& v) {
                                       tensor const next = v * 0.9;
                                       vv::add_(row(next, 0), k);
                                       return std::tuple(k + 1.0, next);
                                     },
                                     std::tuple(vv::full({}, 0.0, dtype::float64), x));
  return y * n;
};

struct cube : vv::function<cube> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) {
    auto y = x * 1;
    vv::mul_(y, x), vv::mul_(y, x);
    return y;
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static auto backward(auto& ctx, auto g) { return slope(std::get<0>(ctx.saved()), g); }
  static auto jvp(auto& ctx, auto t) { return slope(std::get<0>(ctx.saved_for_forward()), t); }
  static tensor slope(tensor const& x, tensor const& g) {
    tensor const r = g * 3;
    vv::mul_(r, x), vv::mul_(r, x);
    return r;
  }
};
/// exp, written over its operand.
struct exp_over : vv::function<exp_over> {
  static tensor forward(tensor x) { return vv::exp_(x), x; }
  static auto setup_context(auto ctx, auto const&, auto const& y) {
    return ctx.template mark_dirty<0>().save_for_backward(y).save_for_forward(y);
  }
  static auto backward(auto& ctx, tensor g) { return g * std::get<0>(ctx.saved()); }
  static auto jvp(auto& ctx, tensor t) { return t * std::get<0>(ctx.saved_for_forward()); }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) { return std::pair(exp_over::apply(x), true); }
};
struct adds_over : vv::function<adds_over> {
  static std::tuple<tensor, tensor> forward(tensor a, tensor b) {
    vv::add_(a, b);
    return {a, a * b};
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.template mark_dirty<0>()
        .save_for_backward(std::get<0>(in), std::get<1>(in))
        .save_for_forward(std::get<0>(in), std::get<1>(in));
  }
  static auto backward(auto& ctx, tensor ga, tensor gp) {
    auto const [a, b] = ctx.saved(); // a as it is written
    return std::tuple(ga + gp * b, ga + gp * (a + b));
  }
  static auto jvp(auto& ctx, tensor ta, tensor tb) {
    auto const [a, b] = ctx.saved_for_forward();
    return std::tuple(ta + tb, (ta + tb) * b + a * tb);
  }
  static auto vmap(vv::vmap_info const&, auto const&, tensor a, tensor b) {
    return std::pair(adds_over::apply(a, b), std::tuple(true, true));
  }
};
struct hidden_write : vv::function<hidden_write> {
  static tensor forward(tensor x) { return vv::exp_(x), x * 1; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
};
struct first_of : vv::function<first_of> {
  static tensor forward(tensor x) { return row(x, 0); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
};
program const with_cube = [](tensor const& x) { return cube::apply(vv::sin(x)) * x; };
program const with_dirty = [](tensor const& x) {
  tensor const y = x * 0.5, r = row(y, 1);
  tensor const z = exp_over::apply(r);
  CHECK(z.is(r));
  return y * y + z;
};
program const with_two = [](tensor const& x) {
  tensor const y = x * 0.5;
  auto const [a, p] = adds_over::apply(y, vv::cos(x));
  CHECK(a.is(y));
  vv::mul_(row(p, 0), a.defined() ? row(a, 1) : x);
  return y + p;
};
tensor const x0 = from({0.5, 1.5, 0.25, 0.75, 1.25, 0.35}, {3, 2});
} // namespace

TEST_CASE("functionalize: higher-order operators", "[hop][functionalize]") { // HO-14, HO-22
  functional_everywhere("cond", with_cond, x0);
  functional_everywhere("cond, the other branch", with_cond, vv::neg(x0));
  functional_everywhere("scan", with_scan, x0);
  functional_everywhere("map", with_map, x0);
  functional_everywhere("while_loop", with_loop, x0);
  // In a trace they stay what they are, with functional functions.
  vv::graph const g = vv::make_fx(vv::functionalize(with_cond))(x0);
  CHECK(vv::to_string(g).find("cond") != std::string::npos);
}

TEST_CASE("functionalize: functions of higher-order operators write into what they make, and nothing else",
          "[hop][functionalize]") { // MA-2, MA-7
  auto const refused = [](program const& f, auto const& text) {
    tensor const x = vv::clone(x0);
    CHECK_THROWS_WITH(vv::make_fx(vv::functionalize(f))(x), text);
    CHECK(difference(x, x0) == "");
    CHECK(thread_is_clean());
  };
  auto const branch = [](auto const& f) -> program {
    return [f](tensor const& x) {
      return vv::cond(
          vv::gt(vv::sum(x), 0.0), [&](tensor const& v) { return f(v, x); }, [](tensor const& v) { return v * 1; }, x);
    };
  };
  refused(branch([](tensor const& v, tensor const&) { return vv::mul_(v, 2.0) * 1; }),
          ContainsText("cond") && ContainsText("operands"));
  refused(branch([](tensor const& v, tensor const&) { return vv::mul_(row(v, 0), 2.0) * 1; }),
          ContainsText("cond") && ContainsText("view"));
  refused(branch([](tensor const& v, tensor const& x) { return vv::add_(x, 1.0) * v; }),
          ContainsText("add_") && ContainsText("captures"));
  refused(branch([](tensor const& v, tensor const& x) { return exp_over::apply(x) * v; }),
          ContainsText("exp_over") && ContainsText("captures"));
  refused(
      [](tensor const& x) {
        return vv::scan([](tensor const& c, tensor const& r) { return std::pair{vv::add_(c, r) * 1, vv::none}; },
                        row(x, 0), x)
            .first;
      },
      ContainsText("scan") && ContainsText("operands"));
}

TEST_CASE("functionalize: custom functions", "[hop][functionalize][function]") { // AF-19, FN-24
  functional_everywhere("cube", with_cube, x0);
  functional_everywhere("written over its operand", with_dirty, x0);
  functional_everywhere("an operand and a product", with_two, x0);
  // An argument of the program.
  tensor const x = vv::clone(x0);
  (void)vv::functionalize([](tensor const& v) { return exp_over::apply(v); })(x);
  CHECK(difference(x, vv::exp(x0)) == "");
  CHECK(x.version() == 1);
  // Under the generated vmap rule, which has no dirty operands, the functional form has none.
  CHECK_THROWS_WITH(vv::functionalize([](tensor const& v) { return hidden_write::apply(v); })(x),
                    ContainsText("hidden_write") && ContainsText("return it, marked dirty"));
  CHECK_THROWS_WITH(vv::functionalize([](tensor const& v) { return vv::add_(first_of::apply(v), 1.0); })(x),
                    ContainsText("first_of") && ContainsText("clone"));
  tensor const captured = vv::clone(x0);
  CHECK_THROWS_WITH(vv::functionalize([&](tensor const& v) { return std::get<0>(adds_over::apply(captured, v)); })(x),
                    ContainsText("captured"));
  CHECK(difference(captured, x0) == "");
  CHECK(thread_is_clean());
}
