// SPDX-License-Identifier: BSL-1.0
// Captured tensors, and what is made at a level.
#include "../sample/value.hpp"

#include <varve/autograd/backward.hpp>
#include <varve/compile/compile.hpp>
#include <varve/dispatch/thread_snapshot.hpp>
#include <varve/functional/functionalize.hpp>
#include <varve/fuse/tensors.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/op/all.hpp>
#include <varve/trace/linearize.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vmap.hpp>

#include <thread>
#include <tuple>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;

TEST_CASE("captured tensors are not written into by a function that is differentiated", "[transform][grad]") {
  tensor const x = vector_of({1, 2, 3}), w = vector_of({1, 1, 1});
  auto const writes = [&](tensor const& a) {
    vv::add_(w, 1.0);
    return vv::sum(a * w);
  };
  auto const through_view = [&](tensor const& a) {
    vv::add_(vv::slice(w, 0, 0, 2), 1.0);
    return vv::sum(a * w);
  };
  auto const detached = [&](tensor const& a) {
    vv::mul_(vv::detach(w), 2.0);
    return vv::sum(a * w);
  };
  auto const nested = [&](tensor const& a) { return vv::sum(a * vv::grad(writes)(a)); };
  auto const check = [&](auto const& f, char const* op) {
    auto const refused = ContainsText(op + std::string(": a captured tensor is written into; pass it as an argument"));
    CHECK_THROWS_WITH(vv::grad(f)(x), refused);
    CHECK_THROWS_WITH(vv::vjp(f, x), refused);
    CHECK_THROWS_WITH(vv::jvp(f, std::tuple(x), std::tuple(x)), refused);
    CHECK_THROWS_WITH(vv::jacrev(f)(x), refused);
    CHECK_THROWS_WITH(vv::jacfwd(f)(x), refused);
    CHECK_THROWS_WITH(vv::vmap(vv::grad(f))(vv::reshape(x, dims{1, 3})), refused);
    CHECK_THROWS_WITH(vv::functionalize([&](tensor const& a) { return vv::grad(f)(a); })(x), ContainsText("captured"));
    CHECK(elements(w) == doubles({1, 1, 1}));
    CHECK(w.version() == 0);
    CHECK(vv::this_thread_state.quiet());
  };
  check(writes, "add_");
  check(through_view, "add_");
  check(detached, "mul_");
  check(nested, "add_");

  // What the function made itself, was given, or declares, it may write into.
  auto const own = [](tensor const& a) {
    tensor const c{{1.0, 1.0, 1.0}}, n = vv::zeros({3}, dtype::int64);
    vv::add_(c, 1.0);
    vv::add_(n, 2);
    return vv::sum(a * c * n);
  };
  CHECK(elements(vv::grad(own)(x)) == doubles({4, 4, 4}));
  CHECK(elements(vv::vmap(vv::grad(own))(vv::reshape(x, dims{1, 3}))) == doubles({4, 4, 4}));
  CHECK(vv::jvp(own, std::tuple(x), std::tuple(x)).second.item<double>() == 24);
  auto const given = [](tensor const& a, tensor const& b) {
    vv::add_(b, 1.0);
    return vv::sum(a * b);
  };
  CHECK(elements(vv::grad(given)(x, w)) == doubles({2, 2, 2}));
  CHECK(elements(vv::jacrev(given)(x, w)) == doubles({3, 3, 3}));
  CHECK(elements(vv::jacfwd(given)(x, w)) == doubles({4, 4, 4}));
  CHECK(elements(vv::grad(vv::closure(given, w))(x)) == doubles({5, 5, 5}));
  CHECK(elements(w) == doubles({5, 5, 5}));
}

TEST_CASE("what another thread made is captured too, and what a carried function made is not", "[transform][grad]") {
  tensor const x = vector_of({1, 2, 3}), early = vector_of({1, 1, 1});
  tensor late;
  auto const elsewhere = [](auto const& f) { std::thread(f).join(); };
  auto const writes = [&x](tensor const& w) {
    CHECK_THROWS_WITH(vv::grad([&](tensor const& a) {
                        vv::add_(w, 1.0);
                        return vv::sum(a * w);
                      })(x),
                      ContainsText("a captured tensor is written into"));
  };
  auto const square = [](tensor const& a) { return vv::sum(a * a); };
  elsewhere([&] {
    writes(early);
    for (int k = 0; k < 50; ++k) (void)vv::grad(square)(x);
    (void)vv::grad([&](tensor const& a) { return late = vector_of({1, 1, 1}), square(a); })(x);
  });
  writes(late);
  CHECK(elements(late) == doubles({1, 1, 1}));

  auto const own = [&](tensor const& a) { // also below a transform of its own
    auto const inside = [](tensor const& v) {
      tensor const b = vv::zeros({3}, dtype::float64);
      vv::add_(b, 2.0);
      return vv::sum(v * v * b);
    };
    tensor made, slope;
    elsewhere(vv::carry([&] {
      made = vv::ones({3}, dtype::float64);
      vv::add_(made, 1.0);
      slope = vv::grad(inside)(a);
    }));
    vv::add_(made, 1.0);
    return vv::sum(made * slope * a); // 3 * 4 a * a
  };
  for (int k = 0; k < 3; ++k) (void)vv::grad(square)(x);
  CHECK(elements(vv::grad(own)(x)) == doubles({24, 48, 72}));
}

TEST_CASE("what is made at a level is the level's own, whatever made it", "[transform][in_place]") {
  tensor const x = vector_of({1, 2, 3}), one = vector_of({1, 1, 1});
  auto const check = [&](auto const& f, std::vector<double> const& value, std::vector<double> const& slope) {
    CHECK(elements(f(x)) == value);
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).first) == value);
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(one)).second) == slope);
    auto const summed = [&](tensor const& a) { return vv::sum(f(a)); };
    CHECK(elements(vv::grad(summed)(x)) == slope);
    CHECK(elements(vv::vmap(vv::grad(summed))(vv::reshape(x, dims{1, 3}))) == slope);
    CHECK(elements(vv::functionalize([&](tensor const& a) { return vv::grad(summed)(a); })(x)) == slope);
    CHECK(elements(vv::compile([&](tensor const& a) { return vv::grad(summed)(a); })(x)) == slope);
    CHECK(elements(vv::sum(vv::jacrev(f)(x), vv::axis<0>)) == slope);
    CHECK(elements(vv::sum(vv::jacfwd(f)(x), vv::axis<0>)) == slope);
  };
  check([](tensor const& a) { return vv::mul_(vv::detach(a * 1.0), a); }, doubles({1, 4, 9}), doubles({1, 2, 3}));
  check(
      [](tensor const& a) {
        tensor const b = a > 1.5;
        vv::copy_(b, a - 1.0);
        return b * a;
      },
      doubles({0, 2, 3}), doubles({0, 1, 1}));
  check(
      [](tensor const& a) {
        tensor const b = vv::to(a, dtype::int64);
        vv::copy_(b, a * 2.0);
        return b * a;
      },
      doubles({2, 8, 18}), doubles({2, 4, 6}));
}

TEST_CASE("a write through a view that a branch makes of a captured tensor is no write into a copy", "[linearize]") {
  tensor const x = vv::full({}, 0.25, dtype::float64);
  auto const with = [&](auto const& write) {
    return [write](tensor const& v) {
      tensor const w = vv::reshape(vv::clone(v), dims{1});
      auto const same = [](tensor const& u) { return vv::clone(u); };
      (void)vv::cond(v > 0.0, [&](tensor const& u) { return write(w), vv::clone(u); }, same, v);
      return vv::sum(w);
    };
  };
  auto const check = [&](auto const& f) {
    CHECK(vv::grad(f)(x).template item<double>() == 0.5);
    CHECK(vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x))).second.template item<double>() == 0.5);
    CHECK_THROWS_AS(vv::linearize(f, x), vv::transform_error);
    CHECK(vv::this_thread_state.quiet());
  };
  check(with([](tensor const& w) { vv::mul_(w, w); }));
  check(with([](tensor const& w) {
    tensor const p = vv::slice(w, 0, 0, 1);
    vv::mul_(p, p);
  }));
  check(with([](tensor const& w) {
    tensor const p = vv::as_strided(w, dims{1}, dims{3}, dims{0});
    vv::mul_(p, p);
  }));
}
