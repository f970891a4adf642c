// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  constexpr auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
struct recording : vv::dispatch_mode<recording> {
  std::vector<std::string> names;
  auto process(auto op, auto const&... args) {
    names.emplace_back(op.name());
    return op(args...);
  }
};
struct doubling : vv::dispatch_mode<doubling> { // its own operators reach the modes below, not itself
  auto process(auto op, auto const&... args) { return op(args...) * 2; }
};
} // namespace

TEST_CASE("modes: one text counts the operators of both worlds alike", "[dispatch][mode]") {
  auto f = [](auto const& v) { return vv::sum(vv::sin(v) * v); };
  counting fixed, dynamic;
  double const y = vv::with(fixed, f, vv::array<double, 3>{0.5, -1, 2});
  tensor const x = from({0.5, -1, 2}, {3});
  tensor z;
  {
    vv::mode_guard const on{dynamic};
    z = f(x);
  }
  CHECK(fixed.calls == 3);
  CHECK(dynamic.calls == 3);
  CHECK(z.item<double>() == Approx(y));
  CHECK(vv::with(dynamic, f, x).item<double>() == Approx(y));
  CHECK(dynamic.calls == 6);
}

TEST_CASE("modes: see what a gradient is made of", "[dispatch][mode]") {
  recording m;
  tensor const x = from({0.5, -1, 2}, {3});
  {
    vv::mode_guard const on{m};
    (void)vv::grad([](auto const& v) { return vv::sum(vv::sin(v)); })(x);
  }
  auto const has = [&](char const* name) { return std::find(m.names.begin(), m.names.end(), name) != m.names.end(); };
  CHECK(has("sin"));
  CHECK(has("sum"));
  CHECK(has("cos"));
  CHECK(has("mul"));
  m.names.clear();
  {
    vv::mode_guard const on{m};
    (void)vv::vmap([](auto const& a, auto const& b) { return vv::dot(a, b); },
                   vv::in_dims<0, vv::none>)(vv::ones({2, 3}), vv::ones({3}));
  }
  CHECK(has("mul"));
}

TEST_CASE("modes: nest, the last first, and run off the stack", "[dispatch][mode]") {
  counting outer, inner;
  doubling twice;
  tensor const x = from({1, 2}, {2});
  tensor y;
  {
    vv::mode_guard const a{outer};
    vv::mode_guard const b{twice};
    vv::mode_guard const c{inner};
    y = x + x;
  }
  CHECK(elements(y) == std::vector<double>{4, 8});
  CHECK(inner.calls == 1);
  CHECK(outer.calls == 2); // the sum, and the doubling
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("operators: are found by name once the program uses them, with their schema", "[dispatch][ops]") {
  counting m;
  vv::mode_guard const on{m};
  tensor const x = from({1, 2}, {2});
  (void)(x + x);
  (void)vv::sum(x, 0);
  auto const* add = vv::ops::find("add");
  REQUIRE(add);
  CHECK(std::string(add->name) == "add");
  CHECK(add->arity == 2);
  CHECK(add->differentiable);
  vv::attributes const none;
  CHECK(elements(vv::boxed_op{add, &none}(vv::boxed_args(x, x))) == std::vector<double>{2, 4});
  auto const* sum = vv::ops::find("sum");
  REQUIRE(sum);
  vv::attributes const at(dims{0}, dims{1});
  CHECK(vv::boxed_op{sum, &at}(vv::boxed_args(x)).sizes() == dims{1});
  CHECK(vv::ops::find("no such operator") == nullptr);
  CHECK(add->handle() == &vv::handle<vv::add_t>);
  CHECK(m.calls == 4);
}

namespace {
// At namespace scope, before and after the operators of this unit are registered.
tensor const early = vv::grad([](auto const& v) { return vv::sum(v * v); })(from({1, 2}, {2}));
} // namespace
TEST_CASE("operators: work in the initializers of a program", "[dispatch][ops]") {
  CHECK(elements(early) == std::vector<double>{2, 4});
}
