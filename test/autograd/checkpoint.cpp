// SPDX-License-Identifier: BSL-1.0
// Checkpoints and hooks of saved values: what is kept, what runs again, and what is refused.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

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

TEST_CASE("checkpoint: nested, run twice, under no_grad, and with random numbers", "[autograd][checkpoint]") { // CK-3, CK-5
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

TEST_CASE("checkpoint: a function that does something else the second time is refused", "[autograd][checkpoint]") { // CK-4, CK-S03
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

TEST_CASE("checkpoint: under transforms and of static values it is a custom function", "[autograd][checkpoint]") { // CK-9
  static_assert(vv::grad([](auto x) { return vv::checkpoint(layers, x); })(0.5) == vv::grad(layers)(0.5));
  static_assert(vv::jvp([](auto x) { return vv::checkpoint(layers, x); }, std::tuple{0.5}, std::tuple{1.0}).second == vv::jvp(layers, std::tuple{0.5}, std::tuple{1.0}).second);
  tensor const x{{0.3, 0.7}};
  auto const kept = [](auto const& t) { return vv::sum(layers(t)); };
  auto const again = [](auto const& t) { return vv::sum(vv::checkpoint(layers, t)); };
  CHECK(difference(vv::grad(again)(x), vv::grad(kept)(x), 1e-15) == "");
  CHECK(difference(vv::vmap(vv::grad(again))(x), vv::vmap(vv::grad(kept))(x), 1e-15) == "");
  CHECK(difference(vv::jvp(again, std::tuple{x}, std::tuple{x}).second, vv::jvp(kept, std::tuple{x}, std::tuple{x}).second, 1e-15) == "");
}

TEST_CASE("saved values: packed when recorded, unpacked when needed", "[autograd][saved]") { // AG-23
  tensor const x = leaf(tensor{{0.5, 2.0}});
  int packed = 0, unpacked = 0;
  tensor y;
  {
    vv::saved_tensors_hooks const on(
        [&](tensor const& t) {
          ++packed;
          return vv::to(t.detach(), dtype::float32);
        },
        [&](tensor const& t) {
          ++unpacked;
          return vv::to(t, dtype::float64);
        });
    y = vv::sum(vv::mul(vv::sin(x), vv::add(x, 1.0)));
  }
  CHECK(packed == 3); // sin's operand, both of mul; add and sum keep nothing
  CHECK(unpacked == 0);
  y.backward();
  CHECK(unpacked == 3);
  tensor const exact = vv::grad([](auto const& t) { return vv::sum(vv::mul(vv::sin(t), vv::add(t, 1.0))); })(x.detach());
  CHECK(difference(x.grad(), exact, 1e-6) == "");
  CHECK(difference(x.grad(), exact, 0) != "");
}

TEST_CASE("saved values: hooks that write, and hooks around transforms, are refused", "[autograd][saved]") { // AG-23, TR-25, FS-S15
  tensor const x = leaf(tensor{{0.5, 2.0}});
  auto const same = [](tensor const& t) { return t; };
  auto const f = [](auto const& t) { return vv::sum(vv::sin(t)); };
  {
    vv::saved_tensors_hooks const on([](tensor const& t) { vv::no_grad const off; vv::mul_(t, 2.0); return t; }, same);
    CHECK_THROWS_WITH(vv::sin(vv::mul(x, 1.0)), ContainsText("modified its input"));
  }
  {
    vv::saved_tensors_hooks const on(same, same);
    CHECK_THROWS_WITH(vv::grad(f)(x), ContainsText("saved tensor hooks"));
    CHECK_NOTHROW(vv::jvp(f, std::tuple{tensor(x.detach())}, std::tuple{tensor(x.detach())}));
    CHECK_NOTHROW(vv::vmap(f)(x));
    vv::disable_saved_tensors_hooks const off;
    CHECK_NOTHROW(vv::grad(f)(x));
  }
  CHECK_THROWS_WITH(vv::grad([&](auto const& t) {
                      vv::saved_tensors_hooks const on(same, same);
                      return f(t);
                    })(x),
                    ContainsText("saved tensor hooks"));
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
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

TEST_CASE("anomaly mode: a NaN, and a failure, name the operator and the call", "[autograd][anomaly]") { // AG-22, AG-S29
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

TEST_CASE("hooks of several tensors: once in a pass, with what it brings", "[autograd][hooks]") { // AG-12, AG-S30
  tensor const a = leaf(tensor{{1.0}}), b = leaf(tensor{{2.0}}), c = leaf(tensor{{3.0}}), d = leaf(tensor{{4.0}});
  std::vector<std::vector<bool>> calls;
  auto handle = vv::autograd::register_multi_grad_hook(std::vector<tensor>{a, b, c, d}, [&](std::vector<tensor> const& g) {
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
  auto first = vv::autograd::register_multi_grad_hook(std::vector<tensor>{a, b}, [&](tensor const& g) { any += g.defined(); }, vv::autograd::multi_grad_hook_mode::any);
  vv::sum(vv::mul(a, b)).backward();
  CHECK(any == 1);
  first.remove();
}

TEST_CASE("dual levels: tangents without a function, and gradients of both parts", "[autograd][forward_ad]") { // AG-26, AG-S20, S23, S24
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
