// SPDX-License-Identifier: BSL-1.0
// Functions that are traced for their gradients: what they detach, hook and ask for.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("what is detached in place is detached at every level, and in functions that become graphs", "[hop][grad]") {
  tensor const x = vector_of({3, 4});
  auto const f = [](tensor const& a) {
    tensor y = a * a;
    return y.detach_(), y * a;
  };
  auto const total = [](auto const& h) { return [h](tensor const& v) { return vv::sum(h(v)); }; };
  auto const mapped = [&](tensor const& v) { return vv::map(f, v); };
  auto const carried = [&](tensor const& v) {
    auto const step = [&](tensor const& c, tensor const& r) { return std::pair(c, f(r)); };
    return vv::scan(step, vv::zeros({}, dtype::float64), v).second;
  };
  auto const branched = [&](tensor const& v) { return vv::cond(vv::sum(v) > 0.0, f, f, v); };
  std::vector<double> const right{9, 16};
  CHECK(elements(vv::grad(total(f))(x)) == right);
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) == right);
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == right);
  for (std::function<tensor(tensor const&)> const& h :
       {std::function<tensor(tensor const&)>(mapped), std::function<tensor(tensor const&)>(carried),
        std::function<tensor(tensor const&)>(branched)}) {
    CHECK(elements(vv::grad(total(h))(x)) == right);
    CHECK(elements(vv::interpret(vv::make_fx(vv::grad(total(h)))(x), vv::boxed_args(x))[0]) == right);
    CHECK(elements(vv::compile(vv::grad(total(h)))(x)) == right);
    CHECK(elements(vv::jvp(h, std::tuple(x), std::tuple(x)).second) == doubles({27, 64}));
    CHECK(elements(vv::linearize(h, x).second(x)) == doubles({27, 64}));
    tensor const a = vv::clone(x);
    a.requires_grad_();
    vv::sum(h(a)).backward();
    CHECK(elements(a.grad()) == right);
  }
  CHECK(elements(vv::jvp([&](tensor const& v) { return vv::vmap(f)(v); }, std::tuple(x), std::tuple(x)).second) ==
        doubles({27, 64}));
  // A leaf outside of a transform stays one.
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  auto const own = [](tensor v) { return v.detach_(), vv::sum(v); };
  CHECK_THROWS_WITH(vv::grad(own)(leaf), ContainsText("stays a leaf; use detach"));
  CHECK(leaf.requires_grad());
  // An argument would stay attached for who calls the program.
  CHECK_THROWS_WITH(vv::make_fx(own)(x), ContainsText("detaches its argument in place"));
  CHECK_THROWS_WITH(vv::compile(own)(x), ContainsText("detaches its argument in place"));
}

TEST_CASE("hooks of a gradient that is to come are not traced", "[hop][make_fx]") {
  tensor const x = vector_of({1, 2});
  x.requires_grad_();
  auto const hooked = [](tensor const& v) {
    tensor const y = v * v;
    y.register_hook([](tensor const& g) { return g * 10.0; });
    return vv::sin(y);
  };
  CHECK_THROWS_WITH(vv::make_fx(hooked)(x), ContainsText("hooks were registered in a function that is traced"));
  auto const inner = [](tensor const& v) { // the gradient is in the graph
    tensor const a = v.detach();
    a.requires_grad_();
    tensor const y = a * a;
    y.register_hook([](tensor const& g) { return g * 10.0; });
    return vv::autograd::grad({vv::sum(vv::sin(y))}, {a})[0];
  };
  tensor const plain = x.detach();
  CHECK(elements(vv::interpret(vv::make_fx(inner)(plain), vv::boxed_args(plain))[0]) == elements(inner(plain)));
}

TEST_CASE("a function that is traced for its gradient does not know what needs one", "[hop][loop]") {
  tensor const x = vector_of({0.5, -1.25, 2});
  auto const asks = [](tensor const& r) {
    tensor const u = r * 2.0;
    return u.requires_grad() ? tensor(u * r) : u;
  };
  auto const mapped = [&](tensor const& v) { return vv::sum(vv::map(asks, v)); };
  CHECK(mapped(x).item() == 2.5);
  tensor const leaf = vv::clone(x);
  leaf.requires_grad_();
  CHECK(mapped(leaf).item() == 11.625);
  CHECK(vv::compile(mapped)(leaf).item() == 11.625);
  CHECK_THROWS_WITH(vv::grad(mapped)(x), ContainsText("requires_grad: the function of a higher-order operator"));
  auto const hooked = [](tensor const& v) {
    return vv::sum(vv::map(
        [](tensor const& r) {
          tensor const u = r * 2.0;
          u.register_hook([](tensor const& g) { return g * 10.0; });
          return u;
        },
        v));
  };
  CHECK_THROWS_WITH(vv::grad(hooked)(x), ContainsText("requires_grad: the function of a higher-order operator"));
  // Truth values need none; functions that run as they are know it.
  auto const truth = [](tensor const& r) { return (r > 0.0).requires_grad() ? r : tensor(r * r); };
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::map(truth, v)); })(x)) == doubles({1, -2.5, 4}));
  auto const chosen = [&](tensor const& v) { return vv::sum(vv::cond(vv::sum(v) > 0.0, asks, asks, v)); };
  CHECK(elements(vv::grad(chosen)(x)) == doubles({2, -5, 8}));
}

TEST_CASE("writes through detach in a function that is traced for its gradient are refused", "[hop][functionalize]") {
  tensor const x = vector_of({0.5, -1.25, 2});
  auto const writes = [](tensor const& v) {
    tensor const u = v * 2.0;
    vv::mul_(vv::detach(u), 3.0);
    return u * 1.0;
  };
  auto const functional = [&](tensor const& v) { return vv::functionalize(writes)(v); };
  CHECK(elements(vv::map(functional, x)) == doubles({3, -7.5, 12}));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::map(writes, v)); })(x)) == doubles({2, 2, 2}));
  auto const mapped = [&](tensor const& v) { return vv::sum(vv::map(functional, v)); };
  auto const scanned = [&](tensor const& v) {
    return vv::scan([&](tensor const& c, tensor const& r) { return std::pair(c + functional(r), vv::none); },
                    vv::sum(v) * 0.0, v)
        .first;
  };
  auto const looped = [&](tensor const& v) {
    return vv::sum(vv::while_loop<3>([](tensor const& c) { return vv::sum(c) < 10.0; }, functional, v));
  };
  auto const reason = ContainsText("is read after it was written in no_grad mode or through detach");
  CHECK_THROWS_WITH(vv::grad(mapped)(x), reason);
  CHECK_THROWS_WITH(vv::grad(scanned)(x), reason);
  CHECK_THROWS_WITH(vv::grad(looped)(x), reason);
  CHECK_THROWS_WITH(vv::compile(vv::grad(mapped))(x), reason);
}

TEST_CASE("a captured number is differentiated as any tensor", "[hop][scan][map]") {
  tensor const xs{1.0, 2.0};
  using function = std::function<tensor(tensor)>;
  std::vector<function> const all{
      [&](tensor a) { return vv::sum(vv::map([a](tensor x) { return tensor(x * a); }, xs)); },
      [&](tensor a) {
        auto const step = [a](tensor s, tensor x) { return std::pair(tensor(s * 1.0), tensor(x * a)); };
        return vv::sum(vv::scan(step, tensor(1.0), xs).second);
      },
      [&](tensor a) { return vv::sum(vv::checkpoint([a](tensor x) { return tensor(x * a); }, xs)); },
      [&](tensor a) {
        auto const f = [a](tensor x) { return tensor(x * a); };
        return vv::sum(vv::cond(vv::sum(xs) > 0.0, f, [a](tensor x) { return tensor(x + a); }, xs));
      }};
  for (function const& f : all)
    for (bool number : {false, true}) {
      tensor const a = number ? tensor::from_number(4.0) : tensor(4.0);
      CHECK(vv::grad(f)(a).item() == 3);
      CHECK(vv::jvp(f, std::tuple(a), std::tuple(vv::ones_like(a))).second.item() == 3);
      CHECK(vv::grad([&](tensor v) { return f(v) * v; })(a).item() == 24);
      CHECK(vv::vmap(vv::grad(f))(vv::stack(std::vector{a, a}))[1].item() == 3);
      tensor const leaf = (number ? tensor::from_number(4.0) : tensor(4.0)).requires_grad_();
      f(leaf).backward();
      CHECK(leaf.grad().item() == 3);
      CHECK(vv::compile(vv::grad(f))(a).item() == 3);
    }
}
