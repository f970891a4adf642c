// SPDX-License-Identifier: BSL-1.0
// Operators that change the shape of a tensor in place: every world that sees it.
#include "../sample/value.hpp"

#include <varve/autograd/in_place_views.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dims;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k));
  return t;
}
tensor leaf(dims const& sizes) {
  tensor const t = data(sizes);
  t.requires_grad_();
  return t;
}
} // namespace

TEST_CASE("transpose_, t_, squeeze_, unsqueeze_: the tensor is the view of itself", "[autograd][in_place]") {
  tensor const x = data({2, 3}), was = vv::clone(x), other = x;
  auto const version = x.version();
  CHECK(vv::transpose_(x, 0, 1).is(x));
  CHECK(difference(x, vv::transpose(was)) == "");
  CHECK(x.version() == version + 1);
  CHECK((other.is(x) && other.sizes() == dims{3, 2} && !x.is_contiguous()));
  vv::t_(x);
  CHECK((difference(x, was) == "" && x.is_contiguous()));
  vv::unsqueeze_(x, -1);
  CHECK(x.sizes() == dims{2, 3, 1});
  vv::unsqueeze_(x, 0);
  vv::squeeze_(x, 2); // is not of size 1
  CHECK(x.sizes() == dims{1, 2, 3, 1});
  vv::squeeze_(x, 0);
  CHECK(x.sizes() == dims{2, 3, 1});
  vv::squeeze_(x);
  CHECK(difference(x, was) == "");
  tensor const view = vv::slice(x, 1, 0, 2);
  vv::t_(view);
  vv::mul_(view, 2.0);
  CHECK(elements(x) == elements(vv::cat(std::vector{vv::slice(was, 1, 0, 2) * 2.0, vv::slice(was, 1, 2, 3)}, 1)));
  CHECK_THROWS_AS(vv::transpose_(x, 0, 2), vv::error);
  CHECK(x.sizes() == dims{2, 3});
  CHECK_THROWS_AS(vv::t_(data({1, 1, 1})), vv::value_error);
  CHECK_THROWS_AS(vv::t_(tensor()), vv::value_error);
  tensor const v = data({3});
  CHECK(vv::t_(v).sizes() == dims{3});
}

TEST_CASE("resize_: fewer elements, more elements", "[autograd][in_place]") {
  tensor const x = data({4, 4}), was = vv::clone(x);
  vv::resize_(x, {3, 3});
  CHECK(elements(x) == elements(vv::slice(vv::reshape(was, dims{16}), 0, 0, 9)));
  vv::resize_(x, {2, 10});
  CHECK(x.sizes() == dims{2, 10});
  CHECK(elements(vv::slice(vv::reshape(x, dims{20}), 0, 0, 9)) ==
        elements(vv::slice(vv::reshape(was, dims{16}), 0, 0, 9)));
  tensor const base = data({4}), view = vv::slice(base, 0, 0, 2);
  CHECK_THROWS_WITH(vv::resize_(view, {3}), Catch::Contains("shares its memory"));
  CHECK_THROWS_AS(vv::resize_(leaf({3}), {2}), vv::autograd_error);
}

TEST_CASE("in-place views are in the history of a tensor", "[autograd][in_place]") {
  tensor const w = leaf({2, 3}), weights = data({3, 2}, 1);
  CHECK_THROWS_AS(vv::t_(w), vv::autograd_error); // a leaf
  tensor const x = w * 2.0;
  vv::t_(x);
  vv::sum(x * weights).backward();
  CHECK(difference(w.grad(), vv::transpose(weights) * 2.0, 1e-14) == "");
  w.zero_grad();
  tensor const y = w * 1.0, part = vv::slice(y, 1, 0, 2);
  vv::t_(part);
  vv::mul_(part, 5.0); // shows in y, and in its gradient
  vv::sum(y).backward();
  CHECK(elements(w.grad()) == std::vector<double>{5, 5, 1, 5, 5, 1});
  w.zero_grad();
  tensor const turned = vv::t_(w * 1.0), kept = vv::slice(turned, 1, 0, 1); // written where its elements lie apart
  vv::mul_(vv::slice(turned, 0, 1, 3), 5.0);
  vv::sum(turned * 1.0 + kept).backward();
  CHECK(elements(w.grad()) == std::vector<double>{3, 15, 15, 1, 5, 5});
  w.zero_grad();
  tensor const squared = w * 1.0, z = squared * squared;
  vv::t_(squared);
  CHECK_THROWS_WITH(vv::sum(z).backward(), Catch::Contains("modified"));
  {
    vv::no_grad const off;
    CHECK_THROWS_AS(vv::t_(squared), vv::autograd_error);
    vv::unsqueeze_(w, 0);
  }
  CHECK((w.is_leaf() && w.requires_grad() && w.sizes() == dims{1, 2, 3}));
}

TEST_CASE("in-place views under transforms", "[transform][in_place][TR-S40]") {
  // Per-sample gradients of a loss whose scores are squeezed in place.
  auto const loss = [](tensor w, tensor x, tensor y) {
    tensor scores = vv::matmul(vv::unsqueeze(x, vv::axis<0>), w); // [1, 1]
    vv::squeeze_(scores);
    tensor const d = scores - y;
    return d * d;
  };
  tensor const w = data({3, 1}), xs = data({4, 3}), ys = data({4}, -1);
  tensor const all = vv::vmap(vv::grad(loss), vv::in_dims<vv::none, 0, 0>)(w, xs, ys);
  for (index_t k = 0; k < 4; ++k)
    CHECK(difference(vv::select(all, 0, k), vv::grad(loss)(w, vv::select(xs, 0, k), vv::select(ys, 0, k)), 1e-13) ==
          "");
  auto const f = [](tensor x) {
    tensor y = vv::sin(x);
    vv::t_(y);
    vv::mul_(vv::slice(y, 0, 0, 2), 3.0);
    return y;
  };
  auto const plain = [](tensor x) {
    tensor const y = vv::transpose(vv::sin(x));
    return vv::cat(std::vector{vv::slice(y, 0, 0, 2) * 3.0, vv::slice(y, 0, 2, 3)}, 0);
  };
  tensor const x = data({2, 3}), t = data({2, 3}, 2), g = data({3, 2}, 1);
  auto const [y, dy] = vv::jvp(f, std::tuple(x), std::tuple(t));
  auto const [z, dz] = vv::jvp(plain, std::tuple(x), std::tuple(t));
  CHECK((difference(y, z, 1e-14) == "" && difference(dy, dz, 1e-14) == ""));
  CHECK(difference(std::get<0>(std::get<1>(vv::vjp(f, x))(g)), std::get<0>(std::get<1>(vv::vjp(plain, x))(g)), 1e-14) ==
        "");
  CHECK(difference(vv::vmap(f)(data({5, 2, 3})), vv::vmap(plain)(data({5, 2, 3})), 1e-14) == "");
  // Arguments keep their shape for the caller; captured tensors are refused.
  CHECK_THROWS_AS(vv::grad([](tensor v) { return vv::sum(vv::t_(v)); })(x), vv::autograd_error); // a leaf there
  CHECK(vv::vmap([](tensor v) { return vv::unsqueeze_(v, 0); })(x).sizes() == dims{2, 1, 3});
  CHECK(x.sizes() == dims{2, 3});
  CHECK_THROWS_WITH(vv::grad([&](tensor v) { return vv::sum(vv::t_(x) + vv::transpose(v)); })(x),
                    Catch::Contains("captures"));
  CHECK(x.sizes() == dims{2, 3});
}

TEST_CASE("in-place views without writes", "[functionalize][in_place][FN-S07][FN-S14][FN-S35]") {
  auto const sliced = [](tensor x) {
    vv::transpose_(x, 1, 0);
    tensor const y = vv::slice(x, 0, 0, 2);
    vv::add_(y, vv::full(dims{4}, 1.0));
    return x;
  };
  { // FN-S07
    tensor const x = vv::full(dims{4, 2}, 1.0);
    tensor const y = vv::functionalize(sliced)(x);
    CHECK(y.sizes() == dims{2, 4});
    CHECK(elements(y) == std::vector<double>(8, 2));
    CHECK((x.sizes() == dims{2, 4} && x.strides() == dims{1, 2} && elements(x) == std::vector<double>(8, 2)));
  }
  { // FN-S14
    auto const f = [](tensor w) {
      tensor const x = w + 1.0, y = vv::reshape(x, dims{4, 4});
      vv::resize_(y, {3, 3});
      vv::add_(vv::reshape(y, dims{-1}), 1.0);
      return y + 1.0;
    };
    tensor const w = vv::full(dims{8, 2}, 1.0);
    CHECK(elements(f(w)) == std::vector<double>(9, 4));
    CHECK(elements(vv::functionalize(f)(w)) == std::vector<double>(9, 4));
    vv::graph const g = vv::make_fx(vv::functionalize(f))(w);
    CHECK(!vv::has_mutation(g));
    CHECK(elements(vv::interpret(g, vv::boxed_args(w))[0]) == std::vector<double>(9, 4));
  }
  auto const f = [](tensor x) {
    vv::t_(x);
    return x + 1.0;
  };
  for (dims const& sizes : {dims{4, 2}, dims{3, 3}}) { // FN-S35
    tensor const x = data(sizes), was = vv::clone(x);
    CHECK(difference(vv::functionalize(f)(x), vv::transpose(was) + 1.0) == "");
    CHECK(difference(x, vv::transpose(was)) == "");
  }
  vv::functional_mode mode;
  tensor const original = data({2, 3}), r = vv::transpose(vv::clone(original));
  vv::mul_(vv::select(r, 0, 0), 10.0);
  tensor const value = [&] {
    vv::functional_mode_guard const on(mode);
    tensor const t = mode.to_functional_tensor(original);
    vv::t_(t);
    vv::mul_(vv::select(t, 0, 0), 10.0);
    CHECK(t.sizes() == dims{3, 2});
    return vv::from_functional_tensor(t);
  }();
  CHECK(difference(value, r) == "");
  CHECK(original.sizes() == dims{2, 3});
}

TEST_CASE("in-place views in traces", "[graph][in_place]") {
  auto const f = [](tensor x) {
    tensor y = x * 2.0, whole = vv::reshape(y, dims{6});
    vv::t_(y);
    vv::add_(vv::select(y, 0, 0), 1.0);
    return std::pair{y, whole};
  };
  tensor const x = data({2, 3});
  auto const want = f(x);
  auto const is_right = [&](vv::graph const& g) {
    vv::boxed_args const y = vv::interpret(g, vv::boxed_args(x));
    CHECK(difference(y[0], want.first) == "");
    CHECK(difference(y[1], want.second) == "");
  };
  is_right(vv::make_fx(f)(x));
  is_right(vv::make_fx(f, vv::tracing::fake)(x));
  auto const [y, whole] = vv::compile(f)(x);
  CHECK((difference(y, want.first) == "" && difference(whole, want.second) == ""));
  // Seen through levels above the trace.
  auto const squares = [&](tensor v) {
    auto const [a, b] = f(v);
    return vv::sum(a * a) + vv::sum(b * b);
  };
  auto const per_sample = vv::vmap(vv::grad(squares));
  tensor const xs = data({4, 2, 3});
  for (vv::graph const& g : {vv::make_fx(per_sample)(xs), vv::make_fx(per_sample, vv::tracing::fake)(xs)})
    CHECK(difference(vv::interpret(g, vv::boxed_args(xs))[0], per_sample(xs), 1e-14) == "");
  auto const of_argument = [](tensor v) { return vv::t_(v) * 2.0; };
  CHECK_THROWS_WITH(vv::make_fx(of_argument)(x), Catch::Contains("changes the shape"));
  CHECK_THROWS_WITH(vv::make_fx(of_argument, vv::tracing::fake)(x), Catch::Contains("changes the shape"));
  CHECK(x.sizes() == dims{2, 3});
}

TEST_CASE("set_: to other memory and back to its own", "[in_place][memory]") {
  for (int k = 0; k < 2; ++k) { // what is lost is found by sanitizers
    tensor const a = data({2}), b = data({2}, 5);
    tensor was = a.detach();
    vv::set_(a, b);
    CHECK(a.shares_storage(b));
    vv::set_(a, was);
    vv::set_(a, was);
    was = tensor();
    vv::add_(a, 1.0);
    CHECK(difference(a, data({2}) + 1.0) == "");
    CHECK(difference(b, data({2}, 5)) == "");
  }
}

TEST_CASE("set_data and set_ in traces: a value is the other one from then on", "[graph][in_place]") {
  auto const same = [](auto const& f) {
    tensor const x = data({2}), y = data({2}, 5);
    tensor const want = f(vv::clone(x), vv::clone(y));
    auto const run = [&](vv::graph const& g) {
      return tensor(vv::interpret(g, vv::boxed_args(vv::clone(x), vv::clone(y)))[0]);
    };
    CHECK(difference(run(vv::make_fx(f)(x, y)), want) == "");
    CHECK(difference(run(vv::make_fx(f, vv::tracing::fake)(x, y)), want) == "");
  };
  same([](tensor a, tensor b) {
    tensor const c = a * 1.0;
    c.set_data(b.data());
    return c * 2.0 + a;
  });
  same([](tensor a, tensor b) {
    tensor const c = a * 1.0;
    vv::set_(c, vv::slice(b, 0, 0, 1));
    return c * 2.0 + a;
  });
  auto const of_argument = [](tensor a, tensor b) {
    a.set_data(b);
    return a * 2.0;
  };
  tensor const x = data({2}), y = data({2}, 5);
  CHECK_THROWS_WITH(vv::make_fx(of_argument)(x, y), Catch::Contains("changes the shape or the memory"));
  CHECK_THROWS_WITH(vv::make_fx(of_argument, vv::tracing::fake)(x, y),
                    Catch::Contains("changes the shape or the memory"));
  CHECK((difference(x, data({2})) == "" && !x.shares_storage(y)));
}
