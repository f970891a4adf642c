// SPDX-License-Identifier: BSL-1.0
// Results that were once silently wrong.
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

namespace {
/// The result of joining one value is written into: sum(3 b * b) with b = x.
constexpr auto joins_a_vector = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::cat(std::vector{b}, 0);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
constexpr auto joins_a_tuple = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::cat(std::tuple{b}, vv::axis<0>);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
constexpr auto stacks = [](auto const& x) {
  auto b = x * 1.0;
  auto v = vv::stack(std::vector{b}, 0);
  vv::mul_(v, 3.0);
  return vv::sum(v * b);
};
} // namespace

TEST_CASE("cat and stack of one value are copies", "[op][cat]") {
  tensor const x = vector_of({1, 2, 3});
  for (tensor const& joined : {vv::cat(std::vector{x}, 0), vv::cat(std::tuple{x}, 0), vv::stack(std::vector{x}, 0),
                               vv::stack(std::tuple{x}), vv::cat(std::vector{x, from({}, {0}, dtype::float64)}, 0)}) {
    CHECK_FALSE(joined.shares_storage(x));
    CHECK(elements(joined) == doubles({1, 2, 3}));
  }
  auto const check = [&](auto const& f) {
    CHECK(elements(f(x)) == doubles({42}));
    CHECK(elements(vv::grad(f)(x)) == doubles({6, 12, 18}));
    CHECK(elements(vv::vmap(vv::grad(f))(vv::reshape(x, dims{1, 3}))) == doubles({6, 12, 18}));
    CHECK(elements(vv::functionalize(f)(x)) == doubles({42}));
    CHECK(elements(vv::compile(f)(x)) == doubles({42}));
    CHECK(elements(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0]) == doubles({42}));
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(vector_of({1, 0, 0}))).second) == doubles({6}));
  };
  check(joins_a_vector);
  check(joins_a_tuple);
  check(stacks);
  CHECK(elements(vv::fuse<vv::spec<double, 3>>(joins_a_vector)(x)) == doubles({42}));
  CHECK(elements(vv::fuse<vv::spec<double, 3>>(joins_a_tuple)(x)) == doubles({42}));
  CHECK(elements(x) == doubles({1, 2, 3}));
}

TEST_CASE("cat joins no values of rank 0, as lanes neither", "[op][cat]") {
  tensor const x = vector_of({1, 2, 3}), one = vv::full({}, 1.0);
  auto const refused = ContainsText("cat: values of rank 0 have no axis");
  CHECK_THROWS_WITH(vv::cat(std::vector{one}, 0), refused);
  CHECK_THROWS_WITH(vv::cat(std::tuple{one}, 0), refused);
  CHECK_THROWS_WITH(vv::cat(std::vector{one, one}, 0), refused);
  auto const alone = [](tensor const& a) { return vv::cat(std::vector{a}, 0); };
  auto const pair = [](tensor const& a) { return vv::cat(std::vector{a, a}, 0); };
  auto const beside = [&](tensor const& a) { return vv::cat(std::vector{a, x}, 0); };
  CHECK_THROWS_WITH(vv::vmap(alone)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(pair)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(beside)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(vv::vmap(pair))(vv::reshape(x, dims{1, 3})), refused);
  CHECK(vv::vmap([](tensor const& a) { return vv::stack(std::vector{a, a}, 0); })(x).sizes() == dims{3, 2});
}

TEST_CASE("jacrev and hessian run a function of tensors once", "[transform][jacrev]") {
  tensor const x = vector_of({1, 2, 3});
  int calls = 0;
  auto const counted = [&](tensor const& a) {
    ++calls;
    return a * a;
  };
  CHECK(elements(vv::jacrev(counted)(x)) == doubles({2, 0, 0, 0, 4, 0, 0, 0, 6}));
  CHECK(calls == 1);
  auto const summed = [&](tensor const& a) { return vv::sum(counted(a) * a); };
  calls = 0;
  CHECK(elements(vv::hessian(summed)(x)) == doubles({6, 0, 0, 0, 12, 0, 0, 0, 18}));
  CHECK(calls == 1);
  CHECK(elements(vv::jacrev(vv::jacrev(summed))(x)) == doubles({6, 0, 0, 0, 12, 0, 0, 0, 18}));

  tensor const b = vector_of({10, 20, 30}); // what it writes is written once
  auto const writes = [](tensor const& a, tensor const& w) {
    vv::mul_(w, 2.0);
    return a * w;
  };
  CHECK(elements(vv::jacrev(writes)(x, b)) == doubles({20, 0, 0, 0, 40, 0, 0, 0, 60}));
  CHECK(elements(b) == doubles({20, 40, 60}));
  CHECK(elements(vv::jacrev([](tensor const&) { return vv::ones({2}); })(x)) == doubles({0, 0, 0, 0, 0, 0}));
}

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

TEST_CASE("sizes of a result that is a temporary are kept", "[core][dims]") {
  double product = 1;
  for (auto const size : vv::to_dims(vv::ones({2, 3}).sizes() == dims{} ? dims{} : dims{2, 3})) product *= size;
  CHECK(product == 6);
  STATIC_REQUIRE_FALSE(std::is_reference_v<decltype(vv::to_dims(dims{2, 3}))>);
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

TEST_CASE("a region of a region in lanes of lanes is a view", "[transform][vmap]") {
  auto const f = [](tensor const& v) {
    tensor const t = vv::clone(vv::expand(v, dims{3, 2})), a = vv::as_strided(t, dims{}, dims{}, dims{1}),
                 b = vv::as_strided(a, dims{3}, dims{0}, dims{0});
    vv::mul_(a, 10.0);
    return b;
  };
  tensor const x = vector_of({1, 2, 3, 4, 5, 6, 7, 8});
  auto const lanes = [&](tensor const& v) { return vv::vmap(f)(v); };
  std::vector<double> right;
  for (double e : {2, 4, 6, 8}) right.insert(right.end(), 3, e * 10);
  CHECK(elements(vv::vmap(f)(vv::reshape(x, dims{4, 2}))) == right);
  CHECK(elements(vv::vmap(lanes)(vv::reshape(x, dims{2, 2, 2}))) == right);
  CHECK(elements(vv::vmap([&](tensor const& v) { return vv::vmap(lanes)(v); })(vv::reshape(x, dims{1, 2, 2, 2}))) ==
        right);
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
