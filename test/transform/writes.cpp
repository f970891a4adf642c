// SPDX-License-Identifier: BSL-1.0
// Writes into recorded values, lanes and views that show elements more than once.
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

TEST_CASE("a quotient that was recorded may be written into", "[op][div]") {
  tensor const x = vector_of({1, 2, 4});
  auto const f = [](tensor const& a) {
    auto q = vector_of({1, 2, 3}) / a;
    vv::mul_(q, 2.0);
    return vv::sum(q);
  };
  CHECK(elements(vv::grad(f)(x)) == doubles({-2, -1, -0.375}));
  tensor const leaf = vector_of({1, 2, 4});
  leaf.requires_grad_();
  tensor const q = 3.0 / leaf;
  vv::mul_(q, 2.0);
  vv::sum(q).backward();
  CHECK(elements(leaf.grad()) == doubles({-6, -1.5, -0.375}));
}

TEST_CASE("a write into lanes refuses operands of more dimensions than a lane has", "[op][in_place]") {
  tensor const x = vector_of({1, 2, 4}), y = vector_of({10, 20, 30}); // as many elements as lanes
  auto const adds = [&](tensor const& a) {
    auto b = a * 1.0;
    return vv::add_(b, y);
  };
  auto const copies = [&](tensor const& a) {
    auto b = a * 1.0;
    return vv::copy_(b, y);
  };
  CHECK_THROWS_AS(adds(vv::full({}, 1.0)), vv::shape_error); // what a lane is, alone
  CHECK_THROWS_WITH(vv::vmap(adds)(x), "varve: add_: shapes [] and [3] do not fit");
  CHECK_THROWS_WITH(vv::vmap(copies)(x), "varve: copy_: shapes [] and [3] do not fit");
  CHECK_THROWS_WITH(vv::vmap(vv::vmap(adds))(vv::reshape(x, dims{1, 3})), ContainsText("add_: shapes"));
  CHECK_THROWS_WITH(vv::vmap(vv::grad([&](tensor const& a) { return vv::sum(adds(a)); }))(x),
                    ContainsText("add_: shapes"));
  CHECK(elements(vv::vmap(adds)(vv::reshape(x, dims{1, 3}))) == doubles({11, 22, 34})); // lanes of three
  auto const number = [](tensor const& a) {
    auto b = a * 1.0;
    return vv::add_(b, 1);
  };
  CHECK(elements(vv::vmap(number)(x)) == doubles({2, 3, 5}));
  auto const pair = [](tensor const& a, tensor const& c) {
    auto b = a * 1.0;
    return vv::mul_(b, c);
  };
  CHECK(elements(vv::vmap(pair)(vv::ones({3, 2}, dtype::float64), x)) == doubles({1, 1, 2, 2, 4, 4}));
}

TEST_CASE("a quotient written in place, and written into again, has its gradient", "[op][div]") {
  tensor const x = vector_of({1, 2, 4}), leaf = vector_of({1, 2, 4});
  leaf.requires_grad_();
  tensor const b = x * 1.0;
  vv::div_(b, leaf);
  vv::mul_(b, 3.0);
  vv::sum(b).backward();
  CHECK(elements(leaf.grad()) == doubles({-3, -1.5, -0.75}));
}

namespace {
/// f on x in every way that takes writing out of programs, with the gradient of sum(f(x)²) as the two have it.
template <class F>
void check_writes(F const& f, tensor const& x, std::vector<double> const& right) {
  auto const squares = [](auto const& g) {
    return [&](tensor const& v) {
      tensor const y = g(v);
      return vv::sum(y * y);
    };
  };
  auto const functional = vv::functionalize(f);
  tensor const slope = vv::grad(squares(f))(x);
  CHECK(elements(f(x)) == right);
  CHECK(elements(functional(x)) == right);
  CHECK(elements(vv::compile(f)(x)) == right);
  CHECK(elements(vv::interpret(vv::functionalize(vv::make_fx(f)(x)), vv::boxed_args(x))[0]) == right);
  CHECK(elements(vv::grad(squares(functional))(x)) == elements(slope));
  CHECK(elements(vv::functionalize([&](tensor const& v) { return vv::grad(squares(f))(v); })(x)) == elements(slope));
  tensor const lanes = vv::stack(std::vector{x, x}, 0);
  std::vector<double> twice = right;
  twice.insert(twice.end(), right.begin(), right.end());
  CHECK(elements(vv::vmap(functional)(lanes)) == twice);
  CHECK(elements(vv::functionalize([&](tensor const& v) { return vv::vmap(f)(v); })(lanes)) == twice);
  CHECK(elements(vv::functionalize(functional)(x)) == right);
  CHECK(elements(vv::jvp(functional, std::tuple(x), std::tuple(x)).second) == right); // f is linear
}
} // namespace

TEST_CASE("a part of a view that shows elements more than once is written exactly", "[transform][functionalize]") {
  tensor const x = vector_of({1, -2, 3, -4, 5});
  check_writes(
      [](tensor const& v) {
        tensor const t = v * 1.0, u = vv::as_strided(t, dims{2, 3}, dims{2, 1}, dims{0});
        vv::mul_(vv::slice(u, 1, 2, 3), 10.0);
        return t;
      },
      x, doubles({1, -2, 30, -4, 50}));
  check_writes(
      [](tensor const& v) {
        tensor const t = v * 1.0, u = vv::expand(vv::reshape(t, dims{1, 5}), dims{3, 5});
        vv::mul_(vv::select(u, 0, 1), 10.0);
        return t;
      },
      x, doubles({10, -20, 30, -40, 50}));
  check_writes(
      [](tensor const& v) { // seen through the view, behind another view
        tensor const t = v * 1.0, u = vv::expand(vv::reshape(vv::slice(t, 0, 1, 4), dims{1, 3}), dims{2, 3});
        vv::mul_(vv::slice(vv::slice(u, 0, 1, 2), 1, 1, 3), 10.0);
        return vv::cat(std::vector<tensor>{t, vv::reshape(u, dims{6})}, 0);
      },
      x, doubles({1, -2, 30, -40, 5, -2, 30, -40, -2, 30, -40}));
}

TEST_CASE("what shows elements more than once is not written into as a whole", "[transform][functionalize]") {
  tensor const x = vector_of({1, -2, 3, -4, 5});
  auto const overlapping = [](tensor const& v) {
    tensor const t = v * 1.0;
    vv::mul_(vv::as_strided(t, dims{2, 3}, dims{2, 1}, dims{0}), 10.0);
    return t;
  };
  auto const slices = [](tensor const& v) {
    tensor const t = v * 1.0;
    vv::mul_(vv::slice(vv::expand(vv::reshape(t, dims{1, 5}), dims{3, 5}), 0, 1, 3), 10.0);
    return t;
  };
  auto const check = [&](auto const& f) {
    auto const refused = ContainsText("mul_: the tensor shows elements of its memory more than once");
    CHECK_THROWS_WITH(f(x), refused);
    CHECK_THROWS_WITH(vv::functionalize(f)(x), refused);
    CHECK_THROWS_WITH(vv::compile(f)(x), refused);
    CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(x), refused);
    CHECK_THROWS_WITH(vv::vmap(f)(vv::stack(std::vector{x, x}, 0)), refused);
    CHECK(vv::this_thread_state.quiet());
  };
  check(overlapping);
  check(slices);
  CHECK_THROWS_WITH(vv::add_(vv::as_strided(x, dims{2, 2}, dims{1, 1}, dims{0}), 1.0), ContainsText("more than once"));
  CHECK(elements(x) == doubles({1, -2, 3, -4, 5}));
  CHECK(x.version() == 0);
  vv::add_(vv::as_strided(x, dims{2, 2}, dims{1, 2}, dims{0}), 0.0); // strange, but each element once
  vv::add_(vv::as_strided(x, dims{2, 2}, dims{3, 1}, dims{0}), 0.0);
  CHECK(x.version() == 2);
}

TEST_CASE("what has no elements shows none twice", "[op][in_place]") {
  auto const body = [](tensor const& v) {
    tensor const t = v * 1.0, e = vv::expand(t, dims{3, 0});
    vv::copy_(e, e);
    vv::add_(e, 1.0);
    return t;
  };
  tensor const none = vv::zeros({1, 0}, dtype::float64), lanes = vv::zeros({0, 5}, dtype::float64);
  CHECK(body(none).sizes() == dims{1, 0});
  CHECK(vv::functionalize(body)(none).sizes() == dims{1, 0});
  CHECK(vv::compile(body)(none).sizes() == dims{1, 0});
  CHECK(vv::grad([&](tensor const& v) { return vv::sum(body(v)); })(none).sizes() == dims{1, 0});
  auto const region = [](tensor const& v) {
    tensor const t = v * 1.0;
    vv::mul_(vv::as_strided(t, dims{2, 2}, dims{2, 1}, dims{0}), 3.0);
    return vv::as_strided(t, dims{2, 2}, dims{1, 1}, dims{1});
  };
  CHECK(vv::vmap(region)(lanes).sizes() == dims{0, 2, 2});
  CHECK(vv::vmap(vv::grad([&](tensor const& v) { return vv::sum(region(v)); }))(lanes).sizes() == dims{0, 5});
  CHECK(vv::vmap(vv::functionalize(region))(lanes).sizes() == dims{0, 2, 2});
  CHECK(vv::jacfwd([&](tensor const& v) { return vv::vmap(region)(v); })(lanes).sizes() == dims{0, 2, 2, 0, 5});
  CHECK(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(region)(v)); })(lanes).sizes() == dims{0, 5});
}

TEST_CASE("the tangent of a write is recorded by what is around", "[transform][jvp][in_place]") {
  tensor const x = vector_of({0.5, 1, 2}), one = vector_of({1, 1, 1});
  auto const check = [&](auto const& f) {
    auto const slope = [&](tensor const& v) { return vv::sum(vv::jvp(f, std::tuple(v), std::tuple(one)).second); };
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    slope(leaf).backward();
    CHECK(difference(leaf.grad(), vv::grad(slope)(x), 1e-12) == "");
    CHECK(difference(leaf.grad(), vv::grad([&](tensor const& v) {
                       return vv::sum(vv::grad([&](tensor const& u) { return vv::sum(f(u)); })(v));
                     })(x),
                     1e-12) == "");
  };
  check([](tensor const& v) { return vv::tanh_(v * 1.0); });
  check([](tensor const& v) { return vv::exp_(v * v); });
  check([](tensor const& v) {
    tensor const c = v * v;
    vv::sqrt_(vv::slice(c, 0, 0, 2));
    return c * c;
  });
}

TEST_CASE("linearize refuses a write into what its derivative needs", "[transform][linearize]") {
  tensor const x = vector_of({0.5, 1, 2});
  auto const f = [](tensor const& v) {
    tensor const c = vv::cos(v), y = c * c;
    vv::mul_(c, 3.0);
    return y;
  };
  CHECK_THROWS_WITH(vv::linearize(f, x), ContainsText("linearize: a value that the derivative needs was written into"));
  auto const own = [](tensor const& v) { return vv::mul_(vv::cos(v), 3.0); };
  CHECK(difference(vv::linearize(own, x).second(x), vv::jvp(own, std::tuple(x), std::tuple(x)).second, 1e-12) == "");
}
