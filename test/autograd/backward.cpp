// SPDX-License-Identifier: BSL-1.0
// The engine: backward, autograd::grad, graphs (semantics AG-1..8).
#include "autograd_test.hpp"

#include <sys/resource.h>

using namespace autograd_test;
using vv::autograd::options;
using vv::autograd::unused;

namespace {
struct failing : std::exception {};
options const keep{.retain_graph = true};
options const record{.create_graph = true};
tensor grad1(tensor const& y, tensor const& x, options o = {}) { return vv::autograd::grad<>({y}, {x}, {}, o)[0]; }
} // namespace

TEST_CASE("backward: leaves collect what every run adds", "[autograd]") {
  tensor const x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  CHECK((x.is_leaf() && x.requires_grad() && !x.grad().defined()));
  vv::sum(x * w).backward();
  CHECK(grad_of(x) == list{4, 5, 6});
  CHECK(grad_of(w) == list{1, 2, 3});
  CHECK_FALSE(x.grad().requires_grad());
  tensor const before = x.grad();
  vv::sum(x * 2).backward();
  CHECK(grad_of(x) == list{6, 7, 8});
  CHECK(before.is(x.grad())); // added to in place (AG-8)
  CHECK(grad_of(w) == list{1, 2, 3});
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
  x.set_grad(vec({1, 1, 1}));
  vv::sum(x).backward();
  CHECK(grad_of(x) == list{2, 2, 2});
  CHECK_THROWS_AS(x.set_grad(vec({1})), vv::shape_error);
  CHECK_THROWS_AS(x.set_grad(from({1, 1, 1}, {3}, dtype::float32)), vv::dtype_error);
}

TEST_CASE("backward: shared parts of a graph, and one operand used twice", "[autograd]") {
  tensor const x = leaf(3);
  tensor const a = x * x;
  tensor const b = a + a * a; // x^2 + x^4
  tensor const c = b * a + x; // x^4 + x^6 + x
  c.backward();
  CHECK(grad_of(x) == list{4 * 27 + 6 * 243 + 1});
  tensor const deep = leaf(1.0);
  tensor y = deep;
  for (int k = 0; k < 60; ++k) y = y + y; // 2^60 paths
  y.backward();
  CHECK(grad_of(deep) == list{0x1p60});
}

TEST_CASE("backward: the gradient of a root is made up for one element only, and must fit", "[autograd]") { // AG-1
  tensor const x = leaf({1, 2});
  tensor const y = x * 3;
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("scalar") && ContainsText("[2]"));
  CHECK_THROWS_AS(y.backward(vec({1})), vv::shape_error);
  CHECK_THROWS_WITH(y.backward(vec({1, 1, 1})), ContainsText("mismatch in shape"));
  CHECK_THROWS_AS(y.backward(from({1, 1}, {2}, dtype::float32)), vv::dtype_error);
  CHECK_THROWS_AS(vv::autograd::backward<>({y, y}, {vec({1, 1})}), vv::value_error);
  CHECK_THROWS_AS(vec({1, 2}).backward(vec({1, 1})), vv::autograd_error);
  CHECK_THROWS_WITH(number(1).backward(), ContainsText("requires_grad_"));
  CHECK(grad_of(x).empty());
  y.backward(vec({10, 100}));
  CHECK(grad_of(x) == list{30, 300});
  tensor const one = leaf({5}, {1, 1});
  vv::mul(one, 2).backward(); // one element of any rank
  CHECK(grad_of(one) == list{2});
  tensor const self = leaf(2); // a leaf is its own root
  self.backward();
  self.backward(number(4));
  CHECK(grad_of(self) == list{5});
}

TEST_CASE("backward: several roots", "[autograd]") {
  tensor const x = leaf(2);
  tensor const a = x * x, b = a * 3;
  vv::autograd::backward<>({a, b, a}, {number(1), tensor(), number(10)}); // one root lies on the way of another
  CHECK(grad_of(x) == list{11 * 4 + 12});
}

TEST_CASE("backward: a second run needs retain_graph where values were saved", "[autograd][AG-S09]") { // AG-4
  tensor const x = leaf({1, 2});
  tensor const y = vv::sum(x * x);
  y.backward();
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("retain_graph"));
  CHECK(grad_of(x) == list{2, 4});
  tensor const z = vv::sum(x * x);
  z.backward({}, true);
  z.backward({}, true);
  z.backward();
  CHECK(grad_of(x) == list{8, 16});
  CHECK_THROWS_AS(z.backward(), vv::autograd_error);
  x.zero_grad();
  tensor const linear = vv::sum(vv::reshape(x + x, dims{2, 1}));
  linear.backward();
  linear.backward(); // nothing was saved
  CHECK(grad_of(x) == list{4, 4});
  tensor const a = x.detach() * 1, b = leaf(1); // a write into a part
  tensor const base = x * 1;
  vv::copy_(vv::select(base, 0, 0), b * b);
  tensor const s = vv::sum(base);
  s.backward();
  CHECK_THROWS_WITH(s.backward(), ContainsText("retain_graph"));
  (void)a;
}

TEST_CASE("backward: derivatives of derivatives", "[autograd]") {
  for (double v : {0.5, 2.0}) {
    tensor const x = leaf(v);
    tensor const y = vv::sin(x) * x * x; // x^2 sin x
    tensor const g = grad1(y, x, record);
    CHECK(g.requires_grad());
    CHECK(g.item<double>() == Approx(2 * v * std::sin(v) + v * v * std::cos(v)));
    tensor const h = grad1(g, x, record);
    CHECK(h.item<double>() == Approx(2 * std::sin(v) + 4 * v * std::cos(v) - v * v * std::sin(v)));
    tensor const t = grad1(h, x, record);
    CHECK(t.item<double>() == Approx(6 * std::cos(v) - 6 * v * std::sin(v) - v * v * std::cos(v)));
    CHECK(grad1(t, x).item<double>() == Approx(-12 * std::sin(v) - 8 * v * std::cos(v) + v * v * std::sin(v)));
    CHECK_FALSE(x.grad().defined());
  }
  // through results that were saved (exp, tanh, sigmoid, sqrt, softmax)
  tensor const x = leaf({0.3, -0.2, 0.7});
  auto const second = [&](auto const& f) {
    tensor const g = grad1(vv::sum(f(x)), x, record);
    return elements(grad1(vv::sum(g), x));
  };
  auto const by_transform = [&](auto const& f) {
    auto const total = [&](tensor const& v) {
      return vv::sum(vv::grad([&](tensor const& u) { return vv::sum(f(u)); })(v));
    };
    return elements(vv::grad(total)(x.detach()));
  };
  auto const agree = [&](auto const& f) {
    auto const a = second(f), b = by_transform(f);
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == Approx(b[k]));
  };
  agree([](tensor const& v) { return vv::exp(v); });
  agree([](tensor const& v) { return vv::tanh(v) * v; });
  agree([](tensor const& v) { return vv::sigmoid(v) * vv::exp(v); });
  agree([](tensor const& v) { return vv::sqrt(v * v + 1); });
  agree([](tensor const& v) { return vv::softmax(v, vv::axis<0>) * v * v; });
  agree([](tensor const& v) { return vv::logsumexp(v * v, vv::axis<0>); });
}

TEST_CASE("backward: create_graph leaves gradients that can be differentiated, each leaf its own", "[autograd]") {
  tensor const x = leaf(3);
  (x * x * x).backward({}, false, true);
  CHECK(x.grad().requires_grad());
  tensor const g = x.grad();
  x.zero_grad();
  g.backward();
  CHECK(grad_of(x) == list{18});
  x.zero_grad();
  tensor const a = leaf({1, 2}), b = leaf({3, 4}), seed = vec({5, 6});
  (a + b).backward(seed, false, true);
  CHECK_FALSE(a.grad().is(b.grad()));
  CHECK_FALSE(a.grad().shares_storage(b.grad()));
  CHECK_FALSE(a.grad().shares_storage(seed));
  vv::add_(a.grad(), 1);
  CHECK(grad_of(b) == list{5, 6});
  CHECK(elements(seed) == list{5, 6});
  (a + b).backward(seed);
  CHECK(grad_of(b) == list{10, 12});
  CHECK(elements(seed) == list{5, 6});
}

TEST_CASE("backward: gradients of two leaves never share memory", "[autograd]") { // AG-8
  tensor const a = leaf({1, 2}), b = leaf({1, 2}), seed = vec({1, 1});
  (a + b).backward(seed);
  CHECK_FALSE(a.grad().shares_storage(b.grad()));
  CHECK_FALSE(a.grad().shares_storage(seed));
  tensor const m = leaf({1, 2, 3, 4}, {2, 2});
  vv::transpose(m).backward(from({1, 2, 3, 4}, {2, 2}));
  CHECK(grad_of(m) == list{1, 3, 2, 4});
  vv::sum(m).backward(); // an expanded gradient
  vv::sum(m).backward();
  CHECK(grad_of(m) == list{3, 5, 4, 6});
  CHECK(m.grad().is_contiguous());
}

TEST_CASE("backward: inputs= restricts what is added to", "[autograd]") {
  tensor const x = leaf(2), y = leaf(3);
  vv::autograd::backward<>({x * y}, {}, {}, {x});
  CHECK(grad_of(x) == list{3});
  CHECK_FALSE(y.grad().defined());
  vv::autograd::backward<>({x * y}, {}, {}, {x, x}); // named twice, added once
  CHECK(grad_of(x) == list{6});
  CHECK_THROWS_AS(vv::autograd::backward<>({x * y}, {}, {}, {number(1)}), vv::autograd_error);
  tensor const z = leaf(1);
  vv::autograd::backward<>({x * y}, {}, {}, {z}); // plays no part: nothing happens
  CHECK_FALSE(z.grad().defined());
  CHECK(thread_is_clean());
}

TEST_CASE("grad: unused inputs are errors, undefined or zeros", "[autograd]") { // AG-2
  tensor const x = leaf({1, 2}), z = leaf({1, 2, 3});
  tensor const y = vv::sum(x * x);
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {x, z}, {}, keep), vv::autograd_error);
  CHECK_THROWS_WITH(vv::autograd::grad<>({y}, {x, z}, {}, keep), ContainsText("input 1"));
  auto const g = vv::autograd::grad<>({y}, {x, z}, {}, keep, unused::undefined);
  CHECK(elements(g[0]) == list{2, 4});
  CHECK_FALSE(g[1].defined());
  auto const h = vv::autograd::grad<>({y}, {x, z}, {}, keep, unused::zeros);
  CHECK(elements(h[1]) == list{0, 0, 0});
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {vec({1})}, {}, keep), vv::autograd_error);
  CHECK_FALSE(x.grad().defined());
  int after = 0;
  x.register_post_accumulate_grad_hook([&](tensor const&) { ++after; });
  (void)vv::autograd::grad<>({y}, {x});
  CHECK(after == 0);
  // inputs that are no leaves, and an output that is an input
  tensor const a = x * 2, b = vv::sum(a * a);
  CHECK(elements(grad1(b, a, keep)) == list{4, 8});
  CHECK(grad1(b, b, keep).item<double>() == 1);
  auto const both = vv::autograd::grad<>({b}, {a, x});
  CHECK(elements(both[0]) == list{4, 8});
  CHECK(elements(both[1]) == list{8, 16});
}

TEST_CASE("grad: only what leads to the inputs runs", "[autograd]") { // AG-5
  tensor const x = leaf(2), w = leaf(3);
  tensor const a = x * x, b = w * w;
  int ran = 0;
  b.grad_fn().register_prehook([&](vv::boxed_args&) { ++ran; });
  tensor const y = a * b;
  CHECK(grad1(y, x, keep).item<double>() == 36);
  CHECK(ran == 0);
  CHECK(grad1(y, w, keep).item<double>() == 24);
  CHECK(ran == 1);
}

TEST_CASE("grad: batched gradients are rows of the jacobian", "[autograd][vmap]") {
  tensor const x = leaf({0.5, -1, 2}), w = leaf({1, 2, 3});
  tensor const y = vv::sin(x) * w;
  tensor const eye = from({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  options const batched{.retain_graph = true, .is_grads_batched = true};
  auto const j = vv::autograd::grad<>({y}, {x, w}, {eye}, batched);
  CHECK(j[0].sizes() == dims{3, 3});
  for (int r = 0; r < 3; ++r) {
    list e(3, 0);
    e[static_cast<std::size_t>(r)] = 1;
    auto const row = vv::autograd::grad<>({y}, {x, w}, {vec(e)}, keep);
    CHECK(elements(slice_of(j[0], 0, r)) == elements(row[0]));
    CHECK(elements(slice_of(j[1], 0, r)) == elements(row[1]));
  }
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {x}, {}, batched), vv::value_error);
  CHECK_THROWS_AS(vv::autograd::grad<>({y, y}, {x}, {eye, tensor()}, batched), vv::error);
  CHECK_THROWS_AS(vv::autograd::grad<>({y, y}, {x}, {eye, from({1, 0, 0}, {1, 3})}, batched), vv::value_error);
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {x}, {from({1, 0, 0, 1}, {2, 2})}, batched), vv::shape_error);
  tensor const z = leaf(1);
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {z}, {eye}, batched), vv::autograd_error);
  CHECK_FALSE(vv::autograd::grad<>({y}, {z}, {eye}, batched, unused::undefined)[0].defined());
  CHECK(elements(vv::autograd::grad<>({y}, {z}, {eye}, batched, unused::zeros)[0]) == list{0, 0, 0});
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {vv::autograd::get_gradient_edge(z)}, {eye}, batched, unused::zeros),
                  vv::error);
  CHECK(thread_is_clean());
  // recorded: the jacobian is differentiated again
  auto const jg = vv::autograd::grad<>({y}, {x}, {eye}, {.create_graph = true, .is_grads_batched = true})[0];
  CHECK(jg.requires_grad());
  auto const h = grad1(vv::sum(jg), x);
  for (int k = 0; k < 3; ++k) CHECK(element(h, k) == Approx(-std::sin(element(x, k)) * element(w, k)));
}

TEST_CASE("grad: edges of the graph stand for tensors", "[autograd][AG-S08]") { // AG-3
  tensor const x = leaf({1, 2, 3});
  tensor const a = x * x;
  auto const at = vv::autograd::get_gradient_edge(a);
  CHECK(at.node == a.grad_fn());
  tensor const y = vv::sum(a * a);
  tensor const whole = grad1(y, x, keep);
  tensor const ga = vv::autograd::grad<>({y}, {at}, {}, keep)[0];
  tensor const in_two = vv::autograd::grad<>({at}, {x}, {ga}, keep)[0];
  CHECK(elements(whole) == elements(in_two));
  CHECK(elements(vv::autograd::grad<>({y}, {vv::autograd::get_gradient_edge(x)}, {}, keep)[0]) == elements(whole));
  CHECK_THROWS_WITH(vv::autograd::grad<>({at}, {x}, {}, keep), ContainsText("scalar"));
  CHECK_THROWS_AS(vv::autograd::grad<>({y}, {vv::autograd::get_gradient_edge(leaf(1))}, {}, keep, unused::zeros),
                  vv::autograd_error);
  CHECK_THROWS_AS(vv::autograd::get_gradient_edge(vec({1})), vv::autograd_error);
  vv::autograd::backward<>({at}, {vec({1, 1, 1})});
  CHECK(grad_of(x) == list{2, 4, 6});
}

TEST_CASE("graph: names, next functions and numbers of nodes", "[autograd]") {
  tensor const x = leaf(2), c = number(3);
  CHECK_FALSE(static_cast<bool>(x.grad_fn()));
  tensor const y = x * c;
  tensor const z = vv::sum(vv::log_softmax(vv::reshape(y, dims{1}), vv::axis<0>)) + 1;
  CHECK(y.grad_fn().name() == "MulBackward0");
  CHECK(z.grad_fn().name() == "AddBackward0");
  auto const next = y.grad_fn().next_functions();
  REQUIRE(next.size() == 2);
  CHECK(next[0].first.name() == "AccumulateGrad");
  CHECK_FALSE(static_cast<bool>(next[1].first));
  CHECK(z.grad_fn().sequence_nr() > y.grad_fn().sequence_nr());
  CHECK(z.output_nr() == 0);
  CHECK((!y.is_leaf() && c.is_leaf() && x.is_leaf()));
}

TEST_CASE("requires_grad_: on leaves of floating dtype only", "[autograd]") { // AG-19
  tensor const x = vec({1, 2});
  CHECK(x.requires_grad_().is(x));
  x.requires_grad_();
  tensor const y = x * 2;
  CHECK_THROWS_AS(y.requires_grad_(false), vv::autograd_error);
  CHECK_NOTHROW(y.requires_grad_());
  CHECK_THROWS_AS(from({1}, {1}, dtype::int64).requires_grad_(), vv::dtype_error);
  CHECK_THROWS_AS(from({1}, {1}, dtype::bool_).requires_grad_(), vv::dtype_error);
  CHECK_NOTHROW(from({1}, {1}, dtype::int64).requires_grad_(false));
  x.requires_grad_(false);
  CHECK_FALSE(x.requires_grad());
  tensor const z = x * 2;
  CHECK_FALSE(z.requires_grad());
  CHECK_FALSE((y > 1).requires_grad()); // a comparison is a constant
  CHECK_FALSE(vv::to(y, dtype::int64).requires_grad());
}

TEST_CASE("backward: dtypes of gradients are those of the leaves", "[autograd][dtype]") {
  tensor const x = leaf({1, 2}, {2}, dtype::float32), y = leaf(3);
  vv::sum(vv::to(x, dtype::float64) * y).backward();
  CHECK(x.grad().dtype() == dtype::float32);
  CHECK(grad_of(x) == list{3, 3});
  CHECK(y.grad().dtype() == dtype::float64);
  CHECK(grad_of(y) == list{3});
  x.zero_grad();
  y.zero_grad();
  tensor const wide = leaf({1, 2});
  vv::sum(x * wide).backward(); // promoted
  CHECK(x.grad().dtype() == dtype::float32);
  CHECK(wide.grad().dtype() == dtype::float64);
  CHECK(wide.grad().sizes() == dims{2});
  tensor const i = from({2, 3}, {2}, dtype::int64), half = leaf({1, 2}, {2}, dtype::float32);
  vv::sum(half * i).backward();
  CHECK(grad_of(half) == list{2, 3});
}

TEST_CASE("backward: operators of many operands", "[autograd]") {
  std::vector<tensor> xs;
  for (int k = 0; k < 6; ++k) xs.push_back(leaf({1.0 * k, 2.0 * k}));
  tensor const y = vv::cat(std::tuple(xs[0], xs[1], xs[2], xs[3], xs[4], xs[5], xs[1]), vv::axis<0>);
  tensor const w = vv::arange(14, dtype::float64);
  vv::sum(y * w).backward();
  CHECK(grad_of(xs[0]) == list{0, 1});
  CHECK(grad_of(xs[1]) == list{2 + 12, 3 + 13});
  CHECK(grad_of(xs[5]) == list{10, 11});
}

TEST_CASE("backward: a chain of a million nodes runs and is freed in little stack", "[autograd]") {
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  CHECK((stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur <= 1024u * 1024 * 1024));
  constexpr int n = 1'000'000;
  tensor const x = leaf(1);
  {
    tensor y = x;
    for (int k = 0; k < n; ++k) y = y + 1;
    y.backward({}, true);
    CHECK(grad_of(x) == list{1});
    CHECK(grad1(y, x, keep).item<double>() == 1); // the search for what is needed does not recurse either
    CHECK(y.item<double>() == n + 1);
  } // freed with its saved values
  {
    tensor y = x;
    for (int k = 0; k < 100'000; ++k) y = y * x; // saved values hold the nodes too
  }
  CHECK(x.requires_grad());
}

TEST_CASE("backward: the error of a kernel in the middle leaves the thread as it was", "[autograd]") {
  tensor const x = leaf({1, 2});
  for (bool retain : {false, true}) {
    tensor const a = x * x;
    a.register_hook([](tensor const&) -> tensor { throw failing{}; });
    tensor const y = vv::sum(a * a);
    CHECK_THROWS_AS(y.backward({}, retain, retain), failing);
    CHECK(thread_is_clean());
    {
      vv::no_grad const off;
      CHECK_THROWS_AS(y.backward({}, retain, retain), std::exception); // freed, or the hook again
      CHECK_FALSE(vv::is_grad_enabled());
    }
    tensor const b = x * x;
    vv::sum(b).backward();
  }
  CHECK(grad_of(x) == list{4, 8});
  // mapped: the layer of the batch is taken off as well
  tensor const c = x * x;
  c.register_hook([](tensor const&) -> tensor { throw failing{}; });
  CHECK_THROWS_AS(vv::autograd::grad<>({c}, {x}, {from({1, 0, 0, 1}, {2, 2})}, {.is_grads_batched = true}), failing);
  CHECK(thread_is_clean());
}

TEST_CASE("backward: backward inside of a hook, of another graph and of a part of this one", "[autograd]") { // AG-6
  tensor const x = leaf(2), w = leaf(5);
  tensor const a = x * x;
  tensor const shared = w * w;
  int depth = 0, deepest = 0;
  a.register_hook([&](tensor const& g) {
    vv::enable_grad const on; // hooks run in the grad mode of the run
    deepest = std::max(deepest, ++depth);
    (w * 3).backward();
    shared.backward({}, true);
    --depth;
    return g * 1;
  });
  tensor const y = a * shared;
  y.backward({}, true);
  CHECK(grad_of(x) == list{4 * 25});
  CHECK(grad_of(w) == list{3 + 10 + 4 * 10});
  CHECK(deepest == 1);
  // to a depth of some hundred
  tensor v = leaf(1);
  tensor const first = v;
  tensor inner;
  for (int k = 0; k < 200; ++k) {
    tensor const root = inner;
    v = first * 1;
    v.register_hook([root](tensor const&) {
      if (root.defined()) root.backward({}, true);
    });
    inner = v * 1;
  }
  inner.backward();
  CHECK(grad_of(first) == list{200});
  CHECK(thread_is_clean());
}

TEST_CASE("backward: inside of a transform it is refused by name", "[autograd][FS-S28]") { // FS-12
  tensor const x = number(1);
  auto const named = [&](auto const& f, char const* name) {
    CHECK_THROWS_AS(vv::grad(f)(x), vv::transform_error);
    CHECK_THROWS_WITH(vv::grad(f)(x), ContainsText(name));
    CHECK_THROWS_WITH(vv::vmap(f)(vec({1, 2})), ContainsText(name));
  };
  named(
      [](tensor const& v) {
        vv::sin(v).backward();
        return v * 1;
      },
      "backward");
  named(
      [](tensor const& v) {
        v.retain_grad();
        return v * 1;
      },
      "retain_grad");
  named(
      [](tensor const& v) {
        v.requires_grad_();
        return v * 1;
      },
      "requires_grad_");
  CHECK(thread_is_clean());
}

TEST_CASE(
    "autograd grad: inside of transforms it gives gradients of what is seen there, and they can be differentiated",
    "[autograd][transform][FS-S28]") {
  vv::autograd::options create;
  create.create_graph = true;
  auto const slope = [&](tensor const& y, tensor const& v) {
    return tensor(vv::autograd::grad<>({y}, {v}, {}, create)[0]);
  };
  auto const cosine = [&](tensor const& v) { return slope(vv::sin(v), v); };
  tensor const x = number(1), many = vec({1, -2, 3});
  auto const same = [](tensor const& a, tensor const& b) { return difference(a, b) == ""; };
  CHECK(same(vv::grad(cosine)(x), -vv::sin(x)));
  CHECK(same(vv::grad([&](tensor const& v) { return v * cosine(v); })(x), vv::cos(x) - vv::sin(x)));
  CHECK(same(vv::grad([&](tensor const& v) { return slope(cosine(v), v); })(x), -vv::cos(x)));
  CHECK(same(vv::grad(vv::grad(cosine))(x), -vv::cos(x)));
  CHECK(same(vv::vmap(vv::grad(cosine))(many), -vv::sin(many)));
  CHECK(same(vv::jvp(vv::grad([&](tensor const& v) { return vv::sum(slope(vv::sum(vv::sin(v)), v)); }),
                     std::tuple(many), std::tuple(vv::ones_like(many)))
                 .second,
             -vv::cos(many)));
  // Not asked to be differentiable, it is a constant of the level.
  CHECK(same(vv::grad([](tensor const& v) { return vv::autograd::grad<>({vv::sin(v)}, {v})[0] * v; })(x), vv::cos(x)));
  // A result that is kept, and read again by the recorded gradient.
  CHECK(same(vv::grad([&](tensor const& v) {
               tensor const y = vv::exp(v);
               return slope(y, v) * y;
             })(x),
             vv::exp(x) * vv::exp(x) * 2));
  // What was written in place, through a view.
  CHECK(same(vv::grad([&](tensor const& v) {
               tensor y = vv::clone(v);
               vv::mul_(y, v);
               tensor const r = vv::reshape(y, vv::dims{3, 1});
               vv::mul_(r, vv::reshape(v, vv::dims{3, 1}));
               return vv::sum(slope(vv::sum(y), v));
             })(many),
             many * 6));
  // Of a level below the innermost, of eager tensors, and of batches.
  CHECK(same(vv::grad([&](tensor const& v) {
               tensor const y = vv::sin(v);
               return vv::grad([&](tensor const& w) { return slope(y, v) * w; })(v);
             })(x),
             -vv::sin(x)));
  tensor leaf = number(2);
  leaf.requires_grad_();
  tensor const of_leaf = vv::grad([&](tensor const& v) { return slope(leaf * leaf * leaf, leaf) * v; })(x);
  CHECK(of_leaf.template item<double>() == 12);
  of_leaf.backward();
  CHECK(grad_of(leaf) == list{12});
  vv::autograd::options batched = create;
  batched.is_grads_batched = true;
  CHECK(same(vv::grad([&](tensor const& v) {
               return vv::sum(vv::autograd::grad<>({vv::sin(v)}, {v}, {vec({1, 2})}, batched)[0]);
             })(x),
             vv::sin(x) * -3));
  CHECK(thread_is_clean());
}

TEST_CASE("autograd grad: what it cannot do inside of transforms is refused", "[autograd][transform]") {
  vv::autograd::options create;
  create.create_graph = true;
  tensor const x = number(1);
  auto const slope = [&](tensor const& y, tensor const& v) {
    return tensor(vv::autograd::grad<>({y}, {v}, {}, create)[0]);
  };
  tensor escaped;
  (void)vv::grad([&](tensor const& v) { return escaped = vv::sin(v); })(x);
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return slope(escaped, v); })(x), ContainsText("has ended"));
  CHECK_THROWS_WITH(vv::vmap([&](tensor const& v) { return slope(vv::sin(v), v); })(vec({1, 2})),
                    ContainsText("does not require grad"));
  auto const through_record = [&](tensor const& v) {
    auto const level = vv::dynamic_layer_stack().back();
    tensor const y = level.record(vv::sin(tensor(level.unwrap(v))), vv::boxed_args(v),
                                  [](tensor const& g) { return vv::boxed_args(g); });
    return slope(y, v);
  };
  CHECK_THROWS_AS(vv::grad(through_record)(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::grad(through_record)(x), ContainsText("create_graph cannot pass"));
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) {
                    tensor const a = vv::sin(v);
                    return vv::grad(
                        [&](tensor const& w) { return vv::autograd::grad<>({a, vv::sin(w)}, {v}, {}, create)[0]; })(v);
                  })(x),
                  vv::transform_error);
  CHECK(thread_is_clean());
}
