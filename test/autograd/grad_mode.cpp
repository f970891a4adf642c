// SPDX-License-Identifier: BSL-1.0
// Grad mode, inference mode, and both around and inside of transforms (semantics FS-6..8, AG-20, AG-21).
#include "autograd_test.hpp"

using namespace autograd_test;

namespace {
tensor grad1(tensor const& y, tensor const& x, bool record = false) {
  return vv::autograd::grad<>({y}, {x}, {}, {.retain_graph = true, .create_graph = record})[0];
}
auto const cube = [](tensor const& x) { return x * x * x; };
} // namespace

TEST_CASE("grad mode: scopes nest, and are left on exceptions", "[autograd][grad_mode]") {
  CHECK(vv::is_grad_enabled());
  {
    vv::no_grad const off;
    CHECK_FALSE(vv::is_grad_enabled());
    {
      vv::enable_grad const on;
      CHECK(vv::is_grad_enabled());
      {
        vv::set_grad_enabled const again(false);
        CHECK_FALSE(vv::is_grad_enabled());
      }
      CHECK(vv::is_grad_enabled());
    }
    CHECK_FALSE(vv::is_grad_enabled());
    CHECK(leaf(1).requires_grad()); // tracking is off, leaves are still leaves (AG-21)
    CHECK_FALSE((leaf(1) * 2).requires_grad());
  }
  try {
    vv::no_grad const off;
    throw 1;
  } catch (int) {}
  CHECK(thread_is_clean());
  tensor const x = leaf(3);
  tensor y = x * x;
  {
    vv::no_grad const off;
    y = y * x; // no longer recorded
  }
  CHECK((!y.requires_grad() && y.is_leaf()));
}

TEST_CASE("inference mode: what is made has neither history nor counter",
          "[autograd][inference][AG-S16][AG-S19]") { // AG-20
  tensor const a = leaf({1, 2}) * 1;
  tensor const out = vv::sum(a * a);
  tensor t, v;
  {
    vv::inference_mode const on;
    CHECK((vv::is_inference_mode_enabled() && !vv::is_grad_enabled()));
    vv::add_(a, 2);
    CHECK_FALSE(a.is_inference());
    t = vec({1, 2});
    v = vv::slice(t, 0, 0, 1);
    vv::add_(t, 1);
    CHECK((t * a).is_inference());
    CHECK_FALSE((t * a).requires_grad());
    vv::enable_grad const inner;
    CHECK_FALSE(vv::is_grad_enabled());
    {
      vv::inference_mode const off(false);
      CHECK(vv::is_grad_enabled());
    }
  }
  CHECK_THROWS_AS(out.backward(), vv::autograd_error); // a was written
  CHECK((t.is_inference() && v.is_inference() && elements(t) == list{2, 3}));
  CHECK_THROWS_AS(vv::add_(t, 1), vv::autograd_error);
  CHECK_THROWS_WITH(vv::add_(t, 1), ContainsText("outside of it"));
  CHECK_THROWS_AS(vv::add_(v, 1), vv::autograd_error);
  CHECK_THROWS_AS(t.requires_grad_(), vv::autograd_error);
  tensor const w = leaf({1, 1});
  CHECK(elements(t + w) == list{3, 4}); // used functionally
  vv::sum(t + w).backward();
  CHECK(grad_of(w) == list{1, 1});
  CHECK_THROWS_AS(t * w, vv::autograd_error); // but not saved
  CHECK_THROWS_WITH(t * w, ContainsText("inference") && ContainsText("saved") && ContainsText("clone"));
  CHECK_NOTHROW(vv::clone(t) * w);
  CHECK(vv::grad([](tensor const& u) { return vv::sum(u * u * u); })(t).sizes() == dims{2}); // transforms take them
  {
    vv::inference_mode const on;
    CHECK(elements(vv::grad([](tensor const& u) { return vv::sum(u * u); })(vec({1, 2}))) == list{2, 4});
    CHECK(elements(vv::vmap(vv::grad(cube))(vec({1, 2}))) == list{3, 12});
  }
  // Inside of a transform it is a constant, as under no_grad.
  auto const partly = [](tensor const& u) {
    tensor const c = [&] {
      vv::inference_mode const on;
      return tensor(u * u);
    }();
    return vv::sum(c * u);
  };
  CHECK(elements(vv::grad(partly)(vec({2, 3}))) == list{4, 9});
  CHECK_FALSE(vv::clone(t).is_inference());
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: no_grad inside counts for the innermost level only",
          "[autograd][grad_mode][transform][FS-S10][FS-S11]") {
  auto const f = [](tensor const& x) {
    tensor const c = [&] {
      vv::no_grad const off;
      return tensor(cube(x));
    }();
    return tensor(cube(x) - c);
  };
  auto const g = [&](tensor const& x) {
    tensor const c = [&] {
      vv::no_grad const off;
      return tensor(vv::grad(f)(x));
    }();
    return tensor(vv::grad(f)(x) - c);
  };
  tensor const x = leaf(2);
  tensor const y = vv::grad(g)(x);
  CHECK(y.item<double>() == 12);
  CHECK(y.requires_grad());
  CHECK(grad1(y, x).item<double>() == 6);
  auto const h = [](tensor const& v) {
    tensor const c = [&] {
      vv::no_grad const off;
      return tensor(vv::value_and_grad(cube)(v).first);
    }();
    return tensor(cube(v) - c);
  };
  tensor const z = leaf(1.6);
  tensor const gz = vv::grad(h)(z);
  CHECK(gz.item<double>() == Approx(7.68));
  CHECK(grad1(gz, z).item<double>() == Approx(9.6));
  CHECK(thread_is_clean());
}

namespace {
struct my_sum : vv::function<my_sum> { // a higher-order operator: every level sees it whole
  static auto forward(auto x) { return vv::sum(x); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto g) { return vv::broadcast_to(g, vv::shape_of(std::get<0>(ctx.saved()))); }
};
} // namespace

TEST_CASE("transforms: no_grad inside counts for higher-order operators alike",
          "[autograd][grad_mode][transform][hop][FS-S21]") {
  auto const f = [](tensor const& x) {
    tensor const constant = [&] {
      vv::no_grad const off;
      return my_sum::apply(x * x);
    }();
    return tensor(my_sum::apply(x * x) - constant);
  };
  tensor const x = vec({1, -2, 0.5});
  CHECK(elements(vv::grad(f)(x)) == list{2, -4, 1});
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(f)(v)); })(x)) == list{2, 2, 2});
  tensor const l = leaf({1, -2, 0.5});
  vv::sum(vv::grad(f)(l)).backward();
  CHECK(grad_of(l) == list{2, 2, 2});
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: second derivatives by every pair of them", "[autograd][transform][FS-S01][FS-S25]") {
  tensor const x = number(0.5), one = number(1);
  auto const sine = [](tensor const& v) { return vv::sin(v); };
  auto const tangent = [&](auto const& f) {
    return [&one, f](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(one)).second; };
  };
  CHECK(vv::grad(vv::grad(sine))(x).item<double>() == Approx(-std::sin(0.5)));
  CHECK(vv::grad(tangent(sine))(x).item<double>() == Approx(-std::sin(0.5)));
  CHECK(tangent(tangent(sine))(x).item<double>() == Approx(-std::sin(0.5)));
  auto const [first, second] = vv::jvp(vv::grad(sine), std::tuple(x), std::tuple(one));
  CHECK(first.item<double>() == Approx(0.8775825618903728));
  CHECK(second.item<double>() == Approx(-0.479425538604203));
}

TEST_CASE("transforms: a pullback called, or made, in no_grad",
          "[autograd][grad_mode][transform][FS-S12][FS-S13]") { // TR-16
  auto const square = [](tensor const& x) { return x * x; };
  tensor const x = leaf(3.14);
  {
    auto const made = vv::vjp(square, x);
    tensor const& out = made.first;
    tensor const g = [&] {
      vv::no_grad const off;
      return std::get<0>(made.second(number(1)));
    }();
    CHECK(g.item<double>() == Approx(6.28));
    CHECK_FALSE(g.requires_grad());
    CHECK(out.requires_grad());
    CHECK(grad1(out, x).item<double>() == Approx(6.28));
  }
  {
    auto const made = [&] {
      vv::no_grad const off;
      return vv::vjp(square, x);
    }();
    CHECK_FALSE(made.first.requires_grad());
    tensor const g = std::get<0>(made.second(number(1)));
    CHECK(g.item<double>() == Approx(6.28));
    CHECK(g.requires_grad());
    CHECK(grad1(g, x).item<double>() == Approx(2));
  }
}

TEST_CASE("transforms: no_grad outside of grad counts for the levels below",
          "[autograd][grad_mode][transform]") { // FS-8
  tensor const x = leaf(2);
  vv::no_grad const off;
  tensor const g = vv::grad(cube)(x);
  CHECK(g.item<double>() == 12);
  CHECK_FALSE(g.requires_grad());
  auto const outer = [&](tensor const& v) {
    vv::enable_grad const on;
    return vv::grad(cube)(v);
  };
  CHECK(vv::grad(outer)(x).item<double>() == 12);
  auto const blind = [&](tensor const& v) {
    vv::no_grad const inner;
    return vv::grad(cube)(v);
  };
  CHECK(vv::grad(blind)(x).item<double>() == 0); // to the outer level a constant
}

TEST_CASE("transforms: eager gradients flow through grad, vjp, jvp, vmap, jacrev", "[autograd][transform][FS-S24]") {
  tensor const x = leaf({0.5, -1, 2}), y = leaf({1, 2, 3});
  tensor const j = vv::jvp([](tensor const& v) { return vv::sin(v); }, std::tuple(x), std::tuple(y)).second;
  auto const g = vv::autograd::grad<>({vv::sum(j)}, {x, y}, {}, {.retain_graph = true});
  for (index_t k = 0; k < 3; ++k) {
    CHECK(element(g[0], k) == Approx(-std::sin(element(x, k)) * element(y, k)));
    CHECK(element(g[1], k) == Approx(std::cos(element(x, k))));
  }
  tensor const m = vv::vmap([](tensor const& a, tensor const& b) { return vv::sin(a) * b; })(x, y);
  CHECK(elements(grad1(vv::sum(m), y)) == elements(vv::sin(x.detach())));
  tensor const c = vv::vmap(vv::grad(cube))(x);
  for (index_t k = 0; k < 3; ++k) CHECK(element(grad1(vv::sum(c), x), k) == Approx(6 * element(x, k)));
  tensor const jac = vv::jacrev([](tensor const& v) { return vv::sin(v); })(x);
  for (index_t k = 0; k < 3; ++k) CHECK(element(grad1(vv::sum(jac), x), k) == Approx(-std::sin(element(x, k))));
  // y -> vjp(sin, x).pull(y)
  auto const pulled = [&](tensor const& v) {
    return vv::sum(std::get<0>(vv::vjp([](tensor const& u) { return vv::sin(u); }, x).second(v)));
  };
  CHECK(elements(vv::grad(pulled)(y)) == elements(vv::cos(x.detach())));
  CHECK(elements(grad1(pulled(y), y)) == elements(vv::cos(x.detach())));
  // what a transformed function captures
  tensor const w = leaf(3);
  tensor const cg = vv::grad([&](tensor const& v) { return v * v * w; })(number(2));
  CHECK(cg.item<double>() == 12);
  CHECK(grad1(cg, w).item<double>() == 4);
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: writing in place", "[autograd][transform][in_place][FS-S05][FS-S27]") {
  tensor const captured = vec({5, 6}), x = vec({1, 1});
  auto const onto = [&](tensor const& v) {
    vv::copy_(captured, v);
    return vv::sum(v * captured);
  };
  CHECK_THROWS_AS(vv::grad(onto)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::vjp(onto, x), vv::transform_error);
  CHECK_THROWS_AS(vv::jvp(onto, std::tuple(x), std::tuple(x)), vv::transform_error);
  CHECK((elements(captured) == list{5, 6} && captured.version() == 0));
  auto const argument = [](tensor const& v) {
    vv::mul_(v, 3);
    return vv::sum(v);
  };
  CHECK_THROWS_AS(vv::grad(argument)(x), vv::autograd_error);
  CHECK_THROWS_WITH(vv::grad(argument)(x), ContainsText("leaf"));
  CHECK((elements(x) == list{1, 1} && x.version() == 0));
  auto const computed = [](tensor const& v) {
    tensor const a = v * 1;
    vv::mul_(a, 3);
    return vv::sum(a * a);
  };
  CHECK(elements(vv::grad(computed)(x)) == list{18, 18});
  // Memory that no level sees is free to be written.
  auto const scratch = [](tensor const& v) {
    tensor const s = vec({1, 2});
    vv::mul_(s, 2);
    return vv::sum(v * s);
  };
  CHECK(elements(vv::grad(scratch)(x)) == list{2, 4});
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: requires_grad_, retain_grad and register_hook inside", "[autograd][transform][FS-S14]") {
  tensor const x = number(1), xs = vec({1, 2});
  auto const f = [](tensor const& v) {
    v.requires_grad_();
    return v * 1;
  };
  auto const fresh = [](tensor const& v) {
    number(1).requires_grad_();
    return v * 1;
  };
  auto const refused = [](auto const& call) {
    CHECK_THROWS_AS(call(), vv::transform_error);
    CHECK_THROWS_WITH(call(), ContainsText("requires_grad_"));
  };
  refused([&] { vv::vmap(f)(xs); });
  refused([&] { vv::grad(f)(x); });
  refused([&] { vv::vmap(vv::grad(f))(xs); });
  refused([&] { vv::grad(vv::grad(f))(x); });
  refused([&] { vv::grad(fresh)(x); });
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: grad works where the autograd key is excluded", "[autograd][transform][dispatch][FS-S18]") {
  tensor const x = leaf(0.5);
  auto const& excluded = vv::this_thread_state.excluded;
  {
    vv::exclude_keys const guard{vv::dispatch_key::autograd_cpu};
    auto const before = excluded.bits;
    CHECK(vv::grad([](tensor const& v) { return vv::sin(v); })(x).item<double>() == Approx(std::cos(0.5)));
    CHECK(excluded.bits == before);
  }
  CHECK(thread_is_clean());
}

TEST_CASE("transforms: values that escape their grad behave like what is inside of them",
          "[autograd][transform]") { // FS-10
  tensor kept;
  tensor const x = leaf(2);
  (void)vv::grad([&](tensor const& v) {
    kept = v * v;
    return kept * 1;
  })(x);
  tensor const y = kept * 3;
  CHECK(y.item<double>() == 12);
  y.backward();
  CHECK(grad_of(x) == list{12});
}
