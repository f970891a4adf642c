// SPDX-License-Identifier: BSL-1.0
// Checkpoints: what is kept, what runs again, and what is refused; and other parts of eager autograd.
#include "../sample/value.hpp"

#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <string_view>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor leaf(tensor const& t) {
  tensor const r = vv::clone(t);
  r.requires_grad_();
  return r;
}
constexpr auto layers = [](auto const& x) { return vv::sin(vv::exp(vv::mul(x, x))); };
} // namespace

TEST_CASE("checkpoint: the gradient of the plain call, by running again once", "[autograd][checkpoint]") { // CK-1, CK-2
  tensor const x = leaf(tensor{{0.3, 0.7}}), w = leaf(tensor{{1.5, 0.5}});
  int runs = 0;
  auto const f = [&](tensor const& t) {
    ++runs;
    return vv::mul(layers(vv::mul(t, w)), t);
  };
  vv::sum(f(x)).backward();
  tensor const gx = x.grad(), gw = w.grad();
  x.zero_grad();
  w.zero_grad();
  runs = 0;
  tensor const y = vv::checkpoint(f, x);
  CHECK(runs == 1);
  vv::sum(y).backward();
  CHECK(runs == 2);
  CHECK(difference(x.grad(), gx, 0) == "");
  CHECK(difference(w.grad(), gw, 0) == "");
}

TEST_CASE("checkpoint: nested, run twice, under no_grad, and with random numbers",
          "[autograd][checkpoint]") { // CK-3, CK-5
  tensor const x = leaf(tensor{{0.3, 0.7}});
  auto const inner = [](tensor const& t) { return vv::sin(vv::exp(t)); };
  auto const outer = [&](tensor const& t) { return vv::mul(vv::checkpoint(inner, vv::mul(t, t)), vv::cos(t)); };
  auto const plain = [&](tensor const& t) { return vv::mul(inner(vv::mul(t, t)), vv::cos(t)); };
  tensor const y = vv::sum(vv::checkpoint(outer, x));
  y.backward({}, true);
  tensor const once = vv::clone(x.grad());
  y.backward();
  CHECK(difference(x.grad(), vv::mul(once, 2.0), 1e-15) == "");
  x.zero_grad();
  vv::sum(plain(x)).backward();
  CHECK(difference(once, x.grad(), 1e-15) == "");
  {
    vv::no_grad const off;
    CHECK_FALSE(vv::checkpoint(outer, x).requires_grad());
  }
  // Random numbers are the same in the second run, and the generator goes on as if there had been none.
  auto const noisy = [](tensor const& t) { return vv::mul(vv::exp(t), vv::randn({2}, dtype::float64)); };
  x.zero_grad();
  vv::manual_seed(7);
  tensor const z = vv::checkpoint(noisy, x);
  tensor const next = vv::randn({2}, dtype::float64);
  vv::sum(z).backward();
  CHECK(difference(x.grad(), z.detach(), 1e-15) == "");
  vv::manual_seed(7);
  (void)noisy(x);
  CHECK(difference(vv::randn({2}, dtype::float64), next, 0) == "");
}

TEST_CASE("checkpoint: a function that does something else the second time is refused",
          "[autograd][checkpoint][CK-S03]") { // CK-4
  tensor const x = leaf(tensor{{0.3, 0.7}});
  int runs = 0;
  auto const fewer = [&](tensor const& t) { return ++runs == 1 ? vv::sin(vv::exp(t)) : vv::exp(t); };
  CHECK_THROWS_WITH(vv::sum(vv::checkpoint(fewer, x)).backward(), ContainsText("different number of values"));
  runs = 0;
  auto const shapes = [&](tensor const& t) { return ++runs == 1 ? vv::sum(vv::exp(t)) : vv::sum(vv::exp(vv::sum(t))); };
  CHECK_THROWS_WITH(vv::checkpoint(shapes, x).backward(), ContainsText("[2]"));
  CHECK(vv::is_grad_enabled());
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
}

TEST_CASE("checkpoint: values that are more, other, or written over in between",
          "[autograd][checkpoint][CK-S03]") { // CK-2, CK-4
  tensor const x = leaf(tensor{{0.3, 0.7}});
  int runs = 0;
  auto const more = [&](tensor const& t) { return ++runs == 1 ? vv::exp(t) : vv::sin(vv::exp(t)); };
  CHECK_NOTHROW(vv::sum(vv::checkpoint(more, x)).backward()); // it stops before it would be noticed
  CHECK(runs == 2);
  runs = 0;
  {
    vv::set_checkpoint_early_stop const off(false);
    tensor const y = vv::checkpoint(more, x);
    CHECK_THROWS_WITH(vv::sum(y).backward(), ContainsText("trying to save more"));
    runs = 0;
    int finished = 0;
    tensor const z = vv::checkpoint(
        [&](tensor const& t) { return ++runs, [&](tensor const& r) { return ++finished, r; }(vv::sin(t) * 2.0); }, x);
    vv::sum(z).backward();
    CHECK((runs == 2 && finished == 2));
  }
  runs = 0;
  auto const dtypes = [&](tensor const& t) {
    return vv::exp(vv::to(vv::exp(t), ++runs == 1 ? dtype::float32 : dtype::float64));
  };
  CHECK_THROWS_WITH(vv::sum(vv::checkpoint(dtypes, x)).backward(), ContainsText("float32") && ContainsText("float64"));
  tensor const a = vv::mul(x, 1.0);
  tensor const y = vv::checkpoint([](tensor const& t) { return vv::sin(vv::exp(t)); }, a);
  vv::mul_(a, 2.0);
  CHECK_THROWS_WITH(vv::sum(y).backward(),
                    ContainsText("modified by an in-place operator") && ContainsText("checkpoint"));
  CHECK(vv::is_grad_enabled());
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
}

TEST_CASE("checkpoint: what it made again and then wrote over is refused, as without it", "[autograd][checkpoint]") {
  auto const f = [](tensor const& x) {
    tensor const y = vv::exp(x);
    vv::cos_(y); // exp needs its result
    return vv::sum(y * x);
  };
  tensor leaf = vector_of({0.5, 1.0, -0.25});
  leaf.requires_grad_();
  CHECK_THROWS_AS(f(leaf).backward(), vv::autograd_error);
  CHECK_THROWS_AS(vv::checkpoint(f, leaf).backward(), vv::autograd_error);
  CHECK_FALSE(leaf.grad().defined());
}

TEST_CASE("checkpoint: arguments in trees and captured, transforms inside",
          "[autograd][checkpoint][CK-S05][CK-S07]") { // CK-5
  tensor const x = leaf(tensor{{0.3, 0.7}}), w = leaf(tensor{{1.5, 0.5}}), b = leaf(tensor{{0.1, 0.2}});
  auto const gradients = [&](auto const& call) {
    for (auto const& t : {x, w, b}) t.zero_grad();
    vv::sum(call()).backward();
    return std::vector<tensor>{x.grad(), w.grad(), b.grad()};
  };
  auto const f = [&](std::vector<tensor> const& more, tensor const& t, double scale) {
    return vv::sin(vv::exp(t * more[0]) * b * scale);
  };
  auto const kept = gradients([&] { return f({w}, x, 2.0); });
  auto const again = gradients([&] { return vv::checkpoint(f, std::vector<tensor>{w}, x, 2.0); });
  for (std::size_t k = 0; k < 3; ++k) CHECK(difference(again[k], kept[k], 1e-15) == "");
  tensor const m = leaf(vv::reshape(vv::sin(vv::to(vv::arange(6), dtype::float64)), dims{2, 3}));
  auto const mapped = [](tensor const& t) {
    return vv::vmap([](tensor const& row) { return vv::softmax(vv::exp(row), 0) * row; })(t);
  };
  vv::sum(mapped(m) * mapped(m)).backward();
  tensor const want = m.grad();
  m.zero_grad();
  tensor const y = vv::checkpoint(mapped, m);
  vv::sum(y * y).backward();
  CHECK(difference(m.grad(), want, 1e-14) == "");
}

namespace {
struct log_of_operators : vv::dispatch_mode<log_of_operators> {
  std::vector<std::string>* names;
  explicit log_of_operators(std::vector<std::string>* n) : names(n) {}
  tensor process(auto const& op, auto const&... args) {
    names->push_back(op.name());
    return op(args...);
  }
};
auto const count = [](std::vector<std::string> const& v, char const* name) {
  return std::count(v.begin(), v.end(), name);
};
} // namespace

TEST_CASE("checkpoint: modes that are on in one run or the other", "[autograd][checkpoint][mode][CK-S06]") {
  tensor const x = leaf(tensor{{0.3, 0.7}});
  auto const f = [](tensor const& t) { return vv::exp(t); };
  std::vector<std::string> seen;
  log_of_operators const log(&seen);
  tensor const y = vv::checkpoint(vv::checkpoint_contexts{log, vv::none}, f, x);
  CHECK(seen == std::vector<std::string>{"exp"});
  vv::sum(y).backward();
  CHECK(seen == std::vector<std::string>{"exp"});
  seen.clear();
  tensor const z = vv::checkpoint(vv::checkpoint_contexts{vv::none, log}, f, x);
  CHECK(seen.empty());
  vv::sum(z).backward();
  CHECK(seen == std::vector<std::string>{"exp"});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("checkpoint: results of chosen operators are kept", "[autograd][checkpoint][mode][CK-S09]") { // CK-6
  tensor const x = leaf(tensor{{0.3, 0.7}});
  auto const f = [](tensor const& t) { return vv::exp(vv::sin(t)); };
  vv::sum(f(x)).backward();
  tensor const plain = x.grad();
  x.zero_grad();
  std::vector<std::string> seen;
  log_of_operators log(&seen);
  vv::mode_guard const on{log};
  auto const saves_exp = [](std::string_view op) { return op == "exp"; };
  tensor const y = vv::checkpoint(vv::selective_checkpoint(saves_exp), f, x);
  CHECK((count(seen, "sin") == 1 && count(seen, "exp") == 1));
  seen.clear();
  vv::sum(y).backward({}, true);
  CHECK((count(seen, "sin") == 1 && count(seen, "exp") == 0));
  CHECK(difference(x.grad(), plain, 0) == "");
  vv::sum(y).backward(); // again
  CHECK((count(seen, "sin") == 2 && count(seen, "exp") == 0));
  tensor const z = vv::checkpoint(vv::selective_checkpoint(saves_exp), f, x);
  {
    vv::no_grad const off;
    vv::mul_(z, 2.0); // the result that was kept
  }
  CHECK_THROWS_WITH(vv::sum(z * 1.0).backward(),
                    ContainsText("modified by an in-place operator") && ContainsText("exp"));
  int runs = 0;
  auto const other = [&](tensor const& t) { return ++runs == 1 ? vv::exp(vv::sin(t)) : vv::sin(vv::exp(vv::exp(t))); };
  CHECK_THROWS_AS(vv::sum(vv::checkpoint(vv::selective_checkpoint(saves_exp), other, x)).backward(),
                  vv::autograd_error);
}

TEST_CASE("checkpoint: under transforms and of static values it is a custom function",
          "[autograd][checkpoint]") { // CK-9
  static_assert(vv::grad([](auto x) { return vv::checkpoint(layers, x); })(0.5) == vv::grad(layers)(0.5));
  static_assert(vv::jvp([](auto x) { return vv::checkpoint(layers, x); }, std::tuple{0.5}, std::tuple{1.0}).second ==
                vv::jvp(layers, std::tuple{0.5}, std::tuple{1.0}).second);
  tensor const x{{0.3, 0.7}};
  auto const kept = [](auto const& t) { return vv::sum(layers(t)); };
  auto const again = [](auto const& t) { return vv::sum(vv::checkpoint(layers, t)); };
  CHECK(difference(vv::grad(again)(x), vv::grad(kept)(x), 1e-15) == "");
  CHECK(difference(vv::vmap(vv::grad(again))(x), vv::vmap(vv::grad(kept))(x), 1e-15) == "");
  CHECK(difference(vv::jvp(again, std::tuple{x}, std::tuple{x}).second,
                   vv::jvp(kept, std::tuple{x}, std::tuple{x}).second, 1e-15) == "");
}

TEST_CASE("checkpoint: under one run-time grad the function runs again too", "[autograd][checkpoint]") {
  tensor const x{{0.3, 0.7}}, w{{1.5, -0.5}};
  static int runs;
  runs = 0;
  auto const f = [](tensor const& t) { return ++runs, layers(t); };
  auto const kept = [](tensor const& t) { return vv::sum(layers(t) * t); };
  auto const again = [&](tensor const& t) { return vv::sum(vv::checkpoint(f, t) * t); };
  CHECK(difference(vv::grad(again)(x), vv::grad(kept)(x), 0) == "");
  CHECK(runs == 2);
  // What a function captures by reference may be gone, so that it is not run again.
  runs = 0;
  auto const local = [](tensor const& t) {
    tensor const u = t * 2.0;
    return vv::sum(vv::checkpoint([&u](tensor const& s) { return ++runs, layers(s * u); }, t));
  };
  CHECK(difference(vv::grad(local)(x), vv::grad([](tensor const& t) { return vv::sum(layers(t * (t * 2.0))); })(x),
                   0) == "");
  CHECK(runs == 1);
  // Levels on one another keep what they need.
  runs = 0;
  CHECK(difference(vv::hessian(again)(x), vv::hessian(kept)(x), 0) == "");
  auto const second = [](auto const& g) { return [g](tensor const& t) { return vv::sum(vv::grad(g)(t)); }; };
  CHECK(difference(vv::grad(second(again))(x), vv::grad(second(kept))(x), 0) == "");
  CHECK(runs == 2);
  // What is captured is of the level; pullbacks are called later, more than once, under other transforms.
  auto const scaled = [](tensor const& t, tensor const& u) {
    return vv::checkpoint(vv::closure([](tensor const& a, tensor const& b) { return vv::exp(a * b) * b; }, u), t);
  };
  auto const run = vv::vjp(scaled, x, w);
  auto const plain = vv::vjp([](tensor const& t, tensor const& u) { return vv::exp(t * u) * u; }, x, w);
  for (int k = 0; k < 2; ++k) {
    auto const [a, b] = run.second(w);
    auto const [c, d] = plain.second(w);
    CHECK(difference(a, c, 0) == "");
    CHECK(difference(b, d, 0) == "");
  }
  auto const one = [](auto const& r) { return [&r](tensor const& g) { return std::get<1>(r.second(g)); }; };
  tensor const many = vv::reshape(tensor{{1.0, 2.0, 3.0, 4.0}}, dims{2, 2});
  CHECK(difference(vv::vmap(one(run))(many), vv::vmap(one(plain))(many), 0) == "");
  auto const squared = [](auto const& r) { return [r](tensor const& g) { return vv::sum(r(g * g)); }; };
  CHECK(difference(vv::grad(squared(one(run)))(x), vv::grad(squared(one(plain)))(x), 0) == "");
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("checkpoint: under a run-time grad, with leaves, gradients and random numbers inside",
          "[autograd][checkpoint]") {
  tensor const x{{0.3, 0.7}};
  tensor const l = leaf(x);
  // Eager autograd below the level has its own history of what runs.
  auto const both = [&](auto const& f) {
    l.zero_grad();
    tensor const g = vv::grad([&](tensor const& t) { return vv::sum(f(t * l)); })(l);
    vv::sum(g * g).backward();
    return std::pair(g.detach(), l.grad());
  };
  auto const with_leaf = vv::closure([](tensor const& t, tensor const& v) { return layers(t * v); }, l);
  auto const kept = both(with_leaf), again = both([&](tensor const& t) { return vv::checkpoint(with_leaf, t); });
  CHECK(difference(again.first, kept.first, 0) == "");
  CHECK(difference(again.second, kept.second, 0) == "");
  auto const same = [&](auto const& f) {
    vv::manual_seed(3);
    tensor const a = vv::grad([&](tensor const& t) { return vv::sum(f(t) * t); })(x);
    vv::manual_seed(3);
    return difference(vv::grad([&](tensor const& t) { return vv::sum(vv::checkpoint(f, t) * t); })(x), a, 0);
  };
  CHECK(same([](tensor const& t) { return vv::exp(t * vv::randn({2}, dtype::float64)); }) == "");
  CHECK(same([](tensor const& t) {
          return vv::grad([](tensor const& s) { return vv::sum(vv::exp(s * s)); })(t) * vv::sin(t);
        }) == "");
  CHECK(same([](tensor const& t) { return vv::checkpoint(layers, t * 2.0) * vv::cos(t); }) == "");
  CHECK(same([](tensor const& t) { return vv::vmap([](tensor const& r) { return vv::exp(r) * r; })(t); }) == "");
  CHECK(same([](tensor const& t) { return vv::jvp(layers, std::tuple{t}, std::tuple{t}).second; }) == "");
  CHECK(same([](tensor const& t) { return vv::softmax(vv::layer_norm(t, dims{2}), 0); }) == "");
  CHECK(same([](tensor const& t) {
          tensor const y = t * 2.0;
          vv::mul_(y, t);
          return vv::sin(y);
        }) == "");
  // Gradients asked for inside of the level are differentiated.
  auto const penalty = [](auto const& f) {
    return [f](tensor const& t) {
      auto const g =
          vv::autograd::grad({vv::sum(f(t))}, {t}, std::vector<tensor>{}, {.retain_graph = true, .create_graph = true});
      return vv::sum(g[0] * g[0]);
    };
  };
  auto const checkpointed = [](tensor const& t) { return vv::checkpoint(layers, t); };
  CHECK(difference(vv::grad(penalty(checkpointed))(x), vv::grad(penalty(layers))(x), 0) == "");
  static int runs;
  runs = 0;
  auto const fewer = [](tensor const& t) { return ++runs == 1 ? vv::sin(vv::exp(t)) : vv::exp(t); };
  CHECK_THROWS_WITH(vv::grad([&](tensor const& t) { return vv::sum(vv::checkpoint(fewer, t)); })(x),
                    ContainsText("different number of values"));
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("gradcheck: right gradients pass, wrong ones are found", "[autograd][gradcheck]") { // AG-31
  using many = std::vector<tensor>;
  many const x{leaf(tensor{{0.3, 0.7}}), leaf(tensor{{1.2, 0.4}})};
  auto const right = [](many const& v) { return vv::mul(vv::tanh(v[0]), vv::exp(v[1])); };
  CHECK(vv::gradcheck(right, x));
  CHECK(vv::gradgradcheck(right, x));
  auto const cut = [](many const& v) { return vv::mul(vv::tanh(v[0]), vv::exp(v[1].detach())); };
  CHECK_THROWS_AS(vv::gradcheck(cut, x), vv::gradcheck_error);
  CHECK_FALSE(vv::gradcheck(cut, x, {.raise_exception = false}));
  CHECK(difference(x[0].detach(), tensor{{0.3, 0.7}}, 0) == "");
  CHECK_THROWS_AS(vv::gradcheck(right, many{leaf(vv::ones({2}, dtype::float32)), x[1]}), vv::dtype_error);
  CHECK_THROWS_AS(vv::gradcheck(right, many{tensor{{0.3, 0.7}}, tensor{{0.3, 0.7}}}), vv::value_error);
}

TEST_CASE("anomaly mode: a NaN, and a failure, name the operator and the call",
          "[autograd][anomaly][AG-S29]") { // AG-22
  tensor const x = leaf(tensor{{1.0, 2.0}}), zero = leaf(tensor{{0.0, 0.0}});
  auto const run = [&] { return vv::sum(vv::div(vv::mul(x, 0.0), zero)); };
  CHECK_NOTHROW(run().backward());
  {
    vv::anomaly_mode const on;
    CHECK_THROWS_WITH(run().backward(), ContainsText("DivBackward0 returned nan") && ContainsText("recorded at"));
  }
  tensor const outside = run();
  {
    vv::anomaly_mode const on;
    CHECK_THROWS_WITH(outside.backward(), ContainsText("returned nan") && ContainsText("outside of anomaly_mode"));
    tensor const y = vv::exp(x), s = vv::sum(y);
    {
      vv::no_grad const off;
      vv::mul_(y, 2.0);
    }
    CHECK_THROWS_WITH(s.backward(), ContainsText("in-place") && ContainsText("ExpBackward0"));
  }
  CHECK_FALSE(vv::this_thread_state.anomaly);
}

TEST_CASE("hooks of several tensors: once in a pass, with what it brings", "[autograd][hooks][AG-S30]") { // AG-12
  tensor const a = leaf(tensor{{1.0}}), b = leaf(tensor{{2.0}}), c = leaf(tensor{{3.0}}), d = leaf(tensor{{4.0}});
  std::vector<std::vector<bool>> calls;
  auto handle =
      vv::autograd::register_multi_grad_hook(std::vector<tensor>{a, b, c, d}, [&](std::vector<tensor> const& g) {
        std::vector<bool> there;
        for (auto const& t : g) there.push_back(t.defined());
        calls.push_back(there);
      });
  vv::sum(vv::mul(vv::mul(b, c), b)).backward();
  CHECK(calls == std::vector<std::vector<bool>>{{false, true, true, false}});
  vv::sum(vv::add(vv::add(a, b), vv::add(c, d))).backward();
  CHECK(calls.size() == 2);
  CHECK(calls.back() == std::vector<bool>{true, true, true, true});
  handle.remove();
  handle.remove();
  vv::sum(a).backward();
  CHECK(calls.size() == 2);
  int any = 0;
  auto first = vv::autograd::register_multi_grad_hook(
      std::vector<tensor>{a, b}, [&](tensor const& g) { any += g.defined(); }, vv::autograd::multi_grad_hook_mode::any);
  vv::sum(vv::mul(a, b)).backward();
  CHECK(any == 1);
  first.remove();
}

TEST_CASE("dual levels: tangents without a function, and gradients of both parts",
          "[autograd][forward_ad][AG-S20][AG-S23][AG-S24]") { // AG-26
  namespace fa = vv::forward_ad;
  tensor const x = leaf(tensor{{1.0, 2.0}}), t = leaf(tensor{{3.0, 4.0}});
  tensor kept;
  {
    fa::dual_level const on;
    CHECK_THROWS_WITH(fa::dual_level(), ContainsText("nested"));
    tensor const d = fa::make_dual(x, t);
    CHECK(d.version() == x.version());
    CHECK_THROWS_AS(fa::make_dual(d, t), vv::value_error);
    tensor const y = vv::mul(vv::sin(d), d);
    auto const u = fa::unpack_dual(y);
    tensor const expected = vv::mul(vv::add(vv::mul(vv::cos(x.detach()), x.detach()), vv::sin(x.detach())), t.detach());
    CHECK(difference(u.tangent.detach(), expected, 1e-15) == "");
    vv::sum(u.tangent).backward();
    CHECK(difference(t.grad(), vv::add(vv::mul(vv::cos(x.detach()), x.detach()), vv::sin(x.detach())), 1e-15) == "");
    CHECK(x.grad().defined());
    CHECK_FALSE(fa::unpack_dual(vv::detach(y)).tangent.defined());
    {
      vv::no_grad const off;
      CHECK(fa::unpack_dual(vv::mul(d, 2.0)).tangent.defined()); // AG-28
    }
    tensor const z = vv::mul(d, 1.0);
    vv::mul_(z, 3.0);
    CHECK(difference(fa::unpack_dual(z).tangent.detach(), tensor{{9.0, 12.0}}, 1e-15) == "");
    kept = y;
  }
  CHECK_THROWS_AS(fa::unpack_dual(kept), vv::transform_error);
  fa::dual_level const again;
  CHECK_FALSE(fa::unpack_dual(vv::mul(kept, 1.0)).tangent.defined());
  CHECK_THROWS_AS(fa::make_dual(x, vv::ones({2}, dtype::int64)), vv::value_error);
  CHECK_THROWS_AS(fa::make_dual(vv::ones({2}, dtype::int64), t), vv::value_error);
  CHECK_THROWS_AS(fa::make_dual(x, vv::ones({3}, dtype::float64)), vv::shape_error);
}

TEST_CASE("dual levels: versions, no_grad, and gradients of both parts apart",
          "[autograd][forward_ad][AG-S21]") { // AG-29
  namespace fa = vv::forward_ad;
  tensor const foo = leaf(tensor{{1.0, 2.0}}), bar = leaf(tensor{{3.0, 4.0}});
  fa::dual_level const on;
  tensor const primal = vv::mul(foo, 1.0);
  tensor const dual = fa::make_dual(primal, bar);
  CHECK(dual.version() == primal.version());
  vv::mul_(dual, 1.0);
  CHECK((dual.version() == 1 && primal.version() == 1));
  CHECK_FALSE(fa::unpack_dual(dual.detach()).tangent.defined());
  {
    vv::no_grad const off;
    tensor const three = vv::mul(fa::make_dual(primal, bar), 3.0);
    CHECK(difference(fa::unpack_dual(three).tangent, vv::mul(bar.detach(), 3.0), 0) == "");
  }
  auto const [p, t] = fa::unpack_dual(vv::mul(fa::make_dual(foo, bar), 1.0));
  vv::sum(p).backward({}, true);
  CHECK((elements(foo.grad()) == std::vector<double>{1, 1} && !bar.grad().defined()));
  foo.zero_grad();
  vv::sum(t).backward();
  CHECK((elements(bar.grad()) == std::vector<double>{1, 1} && !foo.grad().defined()));
}

TEST_CASE("anomaly mode: a NaN found inside of another backward names both", "[autograd][anomaly][AG-S31]") {
  struct inner : vv::function<inner> {
    static tensor forward(tensor x) { return vv::clone(x); }
    static auto setup_context(vv::function_context<1> ctx, std::tuple<tensor> const&, tensor const&) { return ctx; }
    static tensor backward(vv::function_context<1>&, tensor g) { return vv::div(vv::mul(g, 0.0), 0.0); }
  };
  struct outer : vv::function<outer> {
    static tensor forward(tensor x) { return vv::clone(x); }
    static auto setup_context(vv::function_context<1> ctx, std::tuple<tensor> const& in, tensor const&) {
      return ctx.save_for_backward(std::get<0>(in));
    }
    static tensor backward(vv::function_context<1, std::tuple<tensor>>&, tensor g) { return inner::apply(g); }
  };
  tensor const x = leaf(tensor{{1.0, 2.0}});
  vv::anomaly_mode const on;
  tensor const g = vv::autograd::grad<>({vv::sum(vv::mul(outer::apply(x), x))}, {x}, {}, {.create_graph = true})[0];
  CHECK_THROWS_WITH(vv::sum(g).backward(), ContainsText("innerBackward returned nan in its 0th output") &&
                                               ContainsText("outerBackward ran backward"));
}

TEST_CASE("hooks of several tensors: the first gradient, before those of what it was made of",
          "[autograd][hooks][AG-S06]") {
  tensor const w1 = leaf(tensor{{2.0}}), w2 = leaf(tensor{{3.0}}), x = tensor{{1.0}};
  std::vector<int> order;
  auto const run = [&](bool keep_any, bool keep_tensor) {
    order.clear();
    tensor const h1 = vv::mul(w1, x), h2 = vv::mul(w2, h1);
    tensor const o1 = vv::mul(h1, 2.0), o2 = vv::mul(h2, 2.0);
    auto a = h1.register_hook([&](tensor const&) { order.push_back(0); });
    auto c = h2.register_hook([&](tensor const&) { order.push_back(2); });
    auto b = vv::autograd::register_multi_grad_hook(
        std::vector<tensor>{h1, h2}, [&](tensor const&) { order.push_back(1); },
        vv::autograd::multi_grad_hook_mode::any);
    auto d = vv::autograd::register_multi_grad_hook(
        std::vector<tensor>{o1, o2}, [&](tensor const&) { order.push_back(3); },
        vv::autograd::multi_grad_hook_mode::any);
    if (!keep_any) b.remove(), d.remove();
    if (!keep_tensor) a.remove();
    vv::sum(vv::add(o1, o2)).backward();
    return order;
  };
  CHECK(run(true, true) == std::vector<int>{3, 2, 1, 0});
  CHECK(run(false, true) == std::vector<int>{2, 0});
  CHECK(run(false, false) == std::vector<int>{2});
}

TEST_CASE("checkpoint: an argument that is no tensor yet", "[autograd][checkpoint]") {
  tensor const x = leaf(tensor{{0.3, 0.7}});
  vv::sum(vv::checkpoint([](tensor const& a, tensor const& b) { return b.defined() ? vv::mul(a, b) : layers(a); }, x,
                         tensor()))
      .backward();
  tensor const got = x.grad();
  x.zero_grad();
  vv::sum(layers(x)).backward();
  CHECK(difference(got, x.grad()) == "");
}

TEST_CASE("checkpoint: a function that draws from a generator of its own draws the same again",
          "[autograd][checkpoint]") {
  vv::generator g{7};
  auto const inner = [&](tensor const& t) { return vv::sin(t * vv::rand({3}, g, dtype::float64)); };
  auto const f = [&](tensor const& t) {
    tensor const noise = vv::randn({3}, g, dtype::float64);
    return vv::sum(vv::exp(vv::checkpoint(inner, t * noise)) * vv::rand({3}, g, dtype::float64));
  };
  tensor const x = leaf(from({0.5, -1, 2}, {3})), y = leaf(x.detach());
  f(x).backward();
  vv::generator const after = g;
  g = {7};
  tensor const loss = vv::checkpoint(f, y);
  (void)vv::rand({3}, g); // the generator moves on before the backward pass
  vv::generator const before = g;
  loss.backward();
  CHECK(elements(y.grad()) == elements(x.grad()));
  CHECK((g.seed == before.seed && g.offset == before.offset && g.offset > after.offset));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("checkpoint: a function that takes a gradient of its own runs again while it runs", "[checkpoint][random]") {
  tensor const x = from({-1.25, 0.5}, {2}).requires_grad_();
  auto const gradient = [](tensor const& v) {
    tensor const leaf = vv::detach(v).requires_grad_();
    vv::sum(leaf * leaf).backward();
    return leaf.grad();
  };
  auto const twice = [&](tensor const& v) { return vv::checkpoint(gradient, v); };
  CHECK(elements(vv::checkpoint(twice, x)) == std::vector<double>{-2.5, 1});
  CHECK(elements(vv::checkpoint(twice, x)) == std::vector<double>{-2.5, 1});
  // Numbers that are drawn before and behind it are the same when it runs once more.
  vv::generator g{7};
  std::vector<std::vector<double>> drawn;
  auto const draws = [&](tensor const& v) {
    tensor const a = vv::rand({2}, g);
    tensor const leaf = vv::detach(v).requires_grad_();
    vv::sum(leaf * leaf * a).backward();
    tensor const b = vv::rand({2}, g);
    drawn.push_back(elements(a)), drawn.push_back(elements(b));
    return vv::sin(v * a) * b * leaf.grad();
  };
  tensor const y = vv::checkpoint(draws, x);
  std::vector<double> const a = drawn[drawn.size() - 2], b = drawn.back();
  x.zero_grad();
  vv::sum(y).backward();
  std::vector<double> const v = elements(vv::detach(x)), slope = elements(x.grad());
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(slope[k] ==
          Approx(std::cos(v[k] * a[k]) * a[k] * b[k] * 2 * v[k] * a[k])); // what the gradient gave is a constant
}

TEST_CASE("checkpoint: eager gradients through vmap and jvp around it", "[autograd][checkpoint][transform]") {
  tensor const x = leaf(tensor{{{0.3, 0.7}, {1.1, -0.4}}}), t = leaf(tensor{{{1.0, -2.0}, {0.5, 0.25}}});
  auto const same = [&](auto const& f) {
    auto const gradients = [&](auto const& g) {
      x.zero_grad(), t.zero_grad();
      vv::sum(f(g)).backward();
      return std::pair(x.grad(), t.grad());
    };
    auto const plain = gradients([](tensor const& v) { return layers(v); });
    auto const saved = gradients([](tensor const& v) { return vv::checkpoint(layers, v); });
    CHECK(difference(saved.first, plain.first, 1e-14) == "");
    CHECK(difference(saved.second, plain.second, 1e-14) == "");
  };
  same([&](auto const& g) { return vv::vmap(g)(x) * t; });
  same([&](auto const& g) { return vv::jvp(g, std::tuple(x), std::tuple(t)).second; });
  same([&](auto const& g) { return vv::jacfwd(g)(vv::select(x, 0, 0)) * t; });
  same([&](auto const& g) { return vv::vmap([&](tensor const& v) { return v * g(t); })(x); });
  same([&](auto const& g) { return vv::functionalize(g)(x) * t; });
}

TEST_CASE("checkpoint: of gradients of gradients, whose pullbacks end in the middle of a recomputation",
          "[autograd][checkpoint]") {
  auto const slope = [](auto const& f) {
    return [f](tensor const& x) {
      tensor const y = f(x);
      return vv::autograd::grad<>({vv::sum(y * y)}, {x}, {}, {.retain_graph = true, .create_graph = true})[0];
    };
  };
  auto const twice = slope(slope([](tensor const& x) { return vv::softmax(x, 0); }));
  tensor const a = tensor{0.0, 1.25}.requires_grad_(), b = tensor{0.0, 1.25}.requires_grad_();
  vv::sum(vv::square(vv::checkpoint(twice, a))).backward();
  vv::sum(vv::square(twice(b))).backward();
  CHECK(vv::allclose(a.grad(), b.grad()));
}
