// SPDX-License-Identifier: BSL-1.0
// Traces on fake tensors: the graph is that of a trace on real values, and nothing of the user's is touched.
#include "../sample/loop.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor const x = vector_of({0.5, -1.0, 2.0}), w = vector_of({1.0, 2.0, 3.0});

template <class F, class... X>
void check_same(F const& f, X const&... v) {
  vv::graph const real = vv::make_fx(f)(v...), fake = vv::make_fx(f, vv::tracing::fake)(v...);
  CHECK(vv::to_string(fake) == vv::to_string(real));
  CHECK(vv::verify(fake));
}
} // namespace

TEST_CASE("a trace on fake tensors gives the graph of one on real values", "[fake][make_fx]") {
  auto const loss = [](tensor const& a, tensor const& b) { return vv::sum(vv::sin(a * b) + vv::softmax(a, 0)); };
  check_same(loss, x, w);
  check_same(vv::grad(loss), x, w);
  check_same(vv::vmap([](tensor const& v) { return vv::grad([](tensor const& u) { return vv::sum(u * u); })(v); }),
             vv::reshape(x, dims{3, 1}));
  check_same(
      [](tensor const& v) { return vv::jvp([](tensor const& u) { return vv::exp(u); }, std::tuple(v), std::tuple(v)); },
      x);
  check_same(
      [](tensor const& v) {
        tensor const y = v * 1.0;
        vv::mul_(vv::slice(y, 0, 0, 2), 3.0);
        return vv::functionalize([](tensor const& u) { return vv::add_(u * 1.0, 2.0); })(y);
      },
      x);
  check_same(
      [](tensor const& v) {
        return vv::cond(
            vv::sum(v) > 0.0, [](tensor const& u) { return vv::sin(u); }, [](tensor const& u) { return u * 2.0; }, v);
      },
      x);
  check_same(
      [](tensor const& init, tensor const& xs) {
        return vv::scan([](tensor const& c, tensor const& r) { return std::pair(c * 0.5 + r, vv::sum(c)); }, init, xs);
      },
      x, vv::reshape(vv::arange(12, dtype::float64), dims{4, 3}));
  check_same(
      [](tensor const& v) {
        return vv::while_loop([](tensor const& c) { return vv::sum(c) < 100.0; },
                              [](tensor const& c) { return c * 2.0; }, v);
      },
      x);
  check_same([](tensor const& v) { return v + vv::randn(dims{3}, dtype::float64); }, x);
}

TEST_CASE("a trace on fake tensors writes, draws and reads nothing", "[fake][make_fx]") { // B2 of second-half.md
  tensor const a = vector_of({1.0, 2.0});
  int branches = 0;
  auto const f = [&](tensor const& v) {
    return vv::cond(
        vv::sum(v) > 0.0, [&](tensor const& u) { return ++branches, vv::sin(u); },
        [&](tensor const& u) { return ++branches, vv::add_(u * 1.0, 1.0); },
        vv::add_(v, vv::randn(dims{2}, dtype::float64)));
  };
  vv::generator const before = vv::default_generator;
  vv::graph const g = vv::make_fx(f, vv::tracing::fake)(a);
  CHECK(branches == 2);
  CHECK(elements(a) == doubles({1.0, 2.0}));
  CHECK(a.version() == 0);
  CHECK(vv::default_generator.offset == before.offset);
  CHECK(vv::default_generator.seed == before.seed);
  tensor const expected = vector_of({1.0, 2.0}), b = vector_of({1.0, 2.0});
  tensor y, z;
  {
    vv::generator_guard const same(before);
    y = f(expected);
  }
  {
    vv::generator_guard const same(before);
    z = vv::interpret(g, vv::boxed_args(b))[0];
  }
  CHECK(elements(z) == elements(y));
  CHECK(elements(b) == elements(expected));
  CHECK_THROWS_AS(vv::make_fx([](tensor const& v) { return v * vv::sum(v).item<double>(); }, vv::tracing::fake)(a),
                  vv::data_dependent_error);
  CHECK_THROWS_AS(vv::make_fx([&](tensor const& v) { return v * x; }, vv::tracing::fake)(a), vv::value_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("a trace on fake tensors may run inside of transforms", "[fake][make_fx]") {
  auto const f = [](tensor const& v) {
    vv::graph const g = vv::make_fx([](tensor const& u) { return vv::sin(u) * u; }, vv::tracing::fake)(v);
    return vv::sum(vv::interpret(g, vv::boxed_args(v))[0]);
  };
  auto const plain = [](tensor const& v) { return vv::sum(vv::sin(v) * v); };
  CHECK(elements(vv::grad(f)(x)) == elements(vv::grad(plain)(x)));
  tensor const rows = vv::reshape(vv::arange(6, dtype::float64), dims{2, 3});
  CHECK(elements(vv::vmap(f)(rows)) == elements(vv::vmap(plain)(rows)));
}

TEST_CASE("a trace on fake tensors refuses loops whose functions write into operands", "[fake][make_fx]") {
  auto const f = [](tensor const& v) { return vv::map([](tensor const& r) { return vv::add_(r, 1.0) * 2.0; }, v); };
  tensor const rows = vv::reshape(vv::arange(6, dtype::float64), dims{2, 3});
  CHECK_THROWS_AS(vv::make_fx(f)(rows), vv::transform_error);
  CHECK_THROWS_AS(vv::make_fx(f, vv::tracing::fake)(rows), vv::transform_error);
}

TEST_CASE("a value that is detached in place has no derivative in the graph either", "[fake][make_fx]") {
  auto const f = [](tensor const& a) {
    tensor const y = a * a;
    y.detach_();
    return vv::sum(y * a);
  };
  std::vector<double> const want = elements(vv::grad(f)(x));
  check_same(f, x);
  for (vv::graph const& g : {vv::make_fx(f)(x), vv::make_fx(f, vv::tracing::fake)(x)}) {
    CHECK(elements(vv::grad([&](tensor const& a) { return vv::interpret(g, vv::boxed_args(a))[0]; })(x)) == want);
    tensor const a = vv::clone(x);
    a.requires_grad_();
    vv::interpret(g, vv::boxed_args(a))[0].backward();
    CHECK(elements(a.grad()) == want);
  }
}

TEST_CASE("a trace has what a write saves for its gradient", "[fake][make_fx][autograd]") {
  tensor const x = from({0.5, -1, 2}, {3}, dtype::float64);
  auto const f = [](tensor const& v) {
    tensor const leaf = v.detach();
    leaf.requires_grad_();
    tensor const y = leaf * 1.0;
    vv::sin_(y);
    vv::sum(y).backward();
    return leaf.grad();
  };
  vv::graph const g = vv::make_fx(f)(x);
  CHECK(elements(vv::interpret(g, vv::boxed_args(x * 2.0))[0]) == elements(f(x * 2.0)));
}

namespace {
int calls(vv::graph const& g, char const* name) {
  int n = 0;
  for (auto const& node : g) n += std::string(node.op->name) == name;
  return n;
}
} // namespace

TEST_CASE("make_fx: a constant that is written into is made anew in every run", "[graph][make_fx][MX-S01]") {
  auto const f = [](tensor const& x) {
    tensor const v = vv::full({}, 1.0, dtype::float64);
    vv::add_(v, 2.0);
    return x * v;
  };
  tensor const x = counted({3});
  for (auto const& g : {vv::make_fx(f)(x), vv::make_fx(f, vv::tracing::fake)(x)})
    for (int run = 0; run < 2; ++run) CHECK(same(vv::interpret(g, vv::boxed_args(x))[0], x * 3.0));
}

TEST_CASE("make_fx: a number that is drawn cannot be asked for", "[graph][make_fx][exception][MX-S02]") {
  auto const f = [](tensor const& x) {
    tensor const v = vv::randn({1}, dtype::float64);
    return vv::sum(v).item<double>() > 2.1 ? x * 2.0 : x;
  };
  CHECK_THROWS_AS(vv::make_fx(f, vv::tracing::fake)(counted({2})), vv::error);
  CHECK_THROWS_AS(vv::make_fx(f)(counted({2})), vv::error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("make_fx: a trace in a trace keeps its operators to itself, until its graph runs",
          "[graph][make_fx][MX-S03]") {
  vv::graph inner;
  auto const square = [](tensor const& v) { return vv::sin(v * v); };
  auto const alone = [&](tensor const& x) {
    inner = vv::make_fx(square, vv::tracing::fake)(vv::ones({2}, dtype::float64));
    return x + 1.0;
  };
  auto const called = [&](tensor const& x) {
    auto const g = vv::make_fx(square, vv::tracing::fake)(vv::ones({2}, dtype::float64));
    return tensor(vv::interpret(g, vv::boxed_args(x))[0]) + 1.0;
  };
  tensor const x = counted({2});
  vv::graph const g = vv::make_fx(alone)(x), h = vv::make_fx(called)(x);
  CHECK(calls(g, "sin") == 0);
  CHECK(calls(g, "mul") == 0);
  CHECK(calls(inner, "sin") == 1);
  CHECK(calls(inner, "add") == 0);
  CHECK(calls(h, "sin") == 1);
  CHECK(same(vv::interpret(g, vv::boxed_args(x))[0], x + 1.0));
  CHECK(same(vv::interpret(h, vv::boxed_args(x))[0], called(x)));
}
