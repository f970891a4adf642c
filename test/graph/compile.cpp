// SPDX-License-Identifier: BSL-1.0
// Compiled functions: what they read, keep and take, and where threads call them.
#include "../sample/apart.hpp"
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;

namespace {
tensor number(double v) { return vv::full({}, v, dtype::float64); }
} // namespace

TEST_CASE("a trace touches nothing of the user's", "[graph][compile]") { // A4
  tensor const x = vector_of({1, 2, 3}), w = vector_of({1, 1, 1});
  auto const branches = [&](tensor const& v) {
    return vv::cond(
        vv::full({}, true), [](tensor const& u) { return vv::sin(u); },
        [&](tensor const& u) {
          vv::add_(u, u);
          vv::add_(w, 1.0);
          return u * 1.0;
        },
        v);
  };
  (void)vv::make_fx([&](tensor const& v, tensor const& z) {
    return vv::cond(
        vv::full({}, true), [](tensor const& u, tensor const&) { return vv::sin(u); },
        [](tensor const& u, tensor const& a) {
          vv::add_(u, u);
          vv::add_(a, 1.0);
          return u * 1.0;
        },
        v, z);
  })(x, w);
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK_THROWS(vv::compile(branches)(x)); // such a branch has no functional form
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  auto const fails = vv::compile([&](tensor const& v) {
    vv::add_(v, 1.0);
    vv::add_(w, 1.0);
    (void)vv::randn({3});
    if (v.dim() == 1) throw std::runtime_error("mine");
    return v * 1.0;
  });
  vv::manual_seed(3);
  tensor const next = vv::randn({});
  vv::manual_seed(3);
  CHECK_THROWS_WITH(fails(x), "mine");
  CHECK(elements(x) == doubles({1, 2, 3}));
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK((x.version() == 0 && w.version() == 0));
  CHECK(elements(vv::randn({})) == elements(next));
  // prepare writes into nothing that is captured either; a call does, once.
  auto const counts = vv::compile([&](tensor const& v) {
    vv::add_(w, 1.0);
    return v * w;
  });
  counts.prepare(x);
  CHECK(elements(w) == doubles({1, 1, 1}));
  CHECK(elements(counts(x)) == doubles({2, 4, 6}));
  CHECK(elements(counts(x)) == doubles({3, 6, 9}));
  CHECK(elements(w) == doubles({3, 3, 3}));
  // A step that may not write into what it captures has not done so while it was traced.
  auto const sums = [&](tensor const& v) {
    return vv::sum(vv::map(
        [&](tensor const& r) {
          vv::add_(w, 1.0);
          return r * vv::sum(w);
        },
        v));
  };
  CHECK_THROWS(vv::grad(sums)(x));
  CHECK(elements(vv::slice(w, 0, 0, 1, 1))[0] <= 4); // the loop is refused when it has made a step
}

TEST_CASE("compile reads captured tensors anew", "[compile]") { // A10
  tensor const x = vector_of({1, 2, 3}), w = number(1);
  auto const by_number = vv::compile([&](tensor const& v) { return v * w.item<double>(); });
  auto const by_truth = vv::compile([&](tensor const& v) { return (w > 0.5 ? v * 2.0 : v * 3.0); });
  auto const deep = vv::compile(vv::grad([&](tensor const& v) {
    return vv::sum(vv::map([&](tensor const& r) { return static_cast<bool>(w) ? r * 2.0 : r * 3.0; }, v));
  }));
  CHECK(elements(by_number(x)) == doubles({1, 2, 3}));
  CHECK(elements(deep(x)) == doubles({2, 2, 2}));
  vv::fill_(w, 0);
  CHECK(elements(by_number(x)) == doubles({0, 0, 0}));
  CHECK(elements(deep(x)) == doubles({3, 3, 3}));
  vv::fill_(w, 4);
  CHECK(elements(by_number(x)) == doubles({4, 8, 12}));
  CHECK(elements(deep(x)) == doubles({2, 2, 2}));
  CHECK(by_number.versions() == 1);
  CHECK_THROWS_AS(by_truth(x), vv::transform_error); // an operator's result is a value of the trace
  CHECK_THROWS_WITH(vv::compile([&](tensor const& v) { return v * w.data<double>()[0]; })(x),
                    ContainsText("memory of a tensor"));
  constexpr auto fused = vv::fuse<vv::spec<double>>([](auto const& v) { return vv::exp(v); });
  CHECK_THROWS_WITH(vv::compile([&](tensor const& v) { return v * fused(w); })(x), ContainsText("being compiled"));
  // What it asks of arguments.
  auto const layout = vv::compile([](tensor const& v) { return v.is_contiguous() ? v * 1.0 : v * 2.0; });
  tensor const m = from({1, 1, 1, 1}, {2, 2}, dtype::float64);
  CHECK(elements(layout(m)) == doubles({1, 1, 1, 1}));
  CHECK(elements(layout(vv::transpose(m, 0, 1))) == doubles({2, 2, 2, 2}));
  auto const mode = vv::compile([](tensor const& v) { return vv::is_grad_enabled() ? v * 1.0 : v * 2.0; });
  CHECK(elements(mode(x)) == doubles({1, 2, 3}));
  vv::no_grad const off;
  CHECK(elements(mode(x)) == doubles({2, 4, 6}));
  auto const leaf_or_not = vv::compile([](tensor const& v) { return v.requires_grad() ? v * 1.0 : v * 2.0; });
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK(elements(leaf_or_not(x)) == doubles({2, 4, 6}));
  CHECK(elements(leaf_or_not(leaf)) == doubles({1, 2, 3}));
  CHECK(elements(leaf_or_not(x)) == doubles({2, 4, 6}));
}

TEST_CASE("the first call of a compiled function is as all others", "[compile][random]") { // A11
  tensor const x = vector_of({1, 2, 3});
  auto const noisy = [](tensor const& v) { return v * vv::randn({3}, dtype::float64); };
  vv::manual_seed(5);
  auto const a = elements(noisy(x)), b = elements(noisy(x));
  auto const fast = vv::compile(noisy);
  vv::manual_seed(5);
  CHECK(elements(fast(x)) == a);
  CHECK(elements(fast(x)) == b);
  auto const doubled = vv::compile([](tensor v) {
    vv::mul_(v, 2.0);
    return v;
  });
  for (double want : {2.0, 4.0}) {
    tensor const y = vector_of({want / 2});
    tensor const z = doubled(y);
    CHECK(elements(z) == doubles({want}));
    CHECK(elements(y) == doubles({want}));
    CHECK_FALSE(z.shares_storage(y));
  }
}

TEST_CASE("compile and make_fx take trees and numbers, and functions that return nothing", "[compile][make_fx]") { // C7
  tensor const x = vector_of({1, 2, 3}), y = vector_of({1, 1, 1});
  auto const affine = [](std::vector<tensor> const& l, double k, std::pair<tensor, int> const& p) {
    return std::tuple(l[0] * k + l[1], p.first * p.second);
  };
  auto const fast = vv::compile(affine);
  for (double k : {2.0, 3.0, 2.0}) {
    auto const [a, b] = fast(std::vector{x, y}, k, std::pair(x, 4));
    CHECK(elements(a) == doubles({k + 1, 2 * k + 1, 3 * k + 1}));
    CHECK(elements(b) == doubles({4, 8, 12}));
  }
  CHECK(fast.versions() == 2);
  (void)fast(std::vector{x, y, y}, 2.0, std::pair(x, 4));
  CHECK(fast.versions() == 3);
  vv::graph const g = vv::make_fx(affine)(std::vector{x, y}, 2.0, std::pair(x, 4));
  CHECK(vv::verify(g));
  CHECK(elements(vv::interpret(g, boxed_args(x, y, x))[0]) == doubles({3, 5, 7}));
  auto const writes = [](tensor const& v, double k) { vv::add_(v, k); };
  auto const step = vv::compile(writes);
  step(y, 1.0), step(y, 2.0);
  CHECK(elements(y) == doubles({4, 4, 4}));
  tensor const z = vector_of({0, 0, 0});
  (void)vv::interpret(vv::make_fx(writes)(vv::clone(z), 1.0), boxed_args(z));
  CHECK(elements(z) == doubles({1, 1, 1}));
  // A graph has no place for what a function captures: compile makes it an input, make_fx refuses it.
  auto const captures = [&](tensor const& v) { return v * z; };
  CHECK(elements(vv::compile(captures)(x)) == doubles({1, 2, 3}));
  CHECK_THROWS_WITH(vv::make_fx(captures)(x), ContainsText("captures a tensor; pass it as an argument"));
}

TEST_CASE("threads that call a compiled function first together make its program once", "[graph][compile][threads]") {
  std::atomic<int> traced = 0;
  auto const f = vv::compile([&](tensor const& v) {
    traced += vv::detail::watches_reads != nullptr; // not where the function runs as it is
    return v * 2.0 + 1.0;
  });
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> threads;
  for (auto& r : results) threads.emplace_back([&] { r = elements(f(vector_of({1, 2}))); });
  for (auto& t : threads) t.join();
  for (auto const& r : results) CHECK(r == doubles({3, 5}));
  CHECK(traced == 1);
  CHECK(f.versions() == 1);
}

TEST_CASE("compile keeps the programs that were called last", "[graph][compile]") {
  int traced = 0;
  auto const f = vv::compile([&](tensor const& v) {
    traced += vv::detail::watches_reads != nullptr; // not where the function runs as it is
    return vv::sum(v);
  });
  auto const call = [&](int n) { return f(vv::ones(vv::dims{n}, dtype::float64)).item<double>(); };
  for (int n = 1; n <= 64; ++n) CHECK(call(n) == n);
  CHECK((traced == 64 && f.versions() == 64));
  CHECK(call(1) == 1);
  CHECK(call(65) == 65); // in place of that for 2
  CHECK((traced == 65 && f.versions() == 64));
  CHECK(call(1) == 1);
  CHECK(traced == 65);
  CHECK(call(2) == 2);
  CHECK(traced == 66);
}

TEST_CASE("compile: values of small and complex dtypes on the way", "[compile][graph]") {
  tensor const x({1.0, 2.0, -3.0});
  for (vv::dtype type : {vv::dtype::float16, vv::dtype::bfloat16, vv::dtype::int8, vv::dtype::int16}) {
    auto const f = [type](tensor const& v) {
      return vv::to(vv::to(v, type) * vv::to(v + 1.0, type), vv::dtype::float64);
    };
    auto const c = vv::compile(f);
    CHECK(c(x).to_vector() == f(x).to_vector());
    CHECK(c(x + 1.0).to_vector() == f(x + 1.0).to_vector());
    auto const writes = [type](tensor const& v) { return vv::add_(v, vv::to(v, type)), vv::to(v, type); };
    tensor const a = vv::clone(x), b = vv::clone(x);
    tensor const y = vv::compile(writes)(a), z = writes(b);
    CHECK(y.dtype() == type);
    CHECK(vv::to(y, vv::dtype::float64).to_vector() == vv::to(z, vv::dtype::float64).to_vector());
    CHECK(a.to_vector() == b.to_vector());
  }
}
