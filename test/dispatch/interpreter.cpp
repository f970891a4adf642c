// SPDX-License-Identifier: BSL-1.0
// The dynamic layer stack as users see it: levels, lowering, life time, randomness.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("layers: levels, kinds and sizes from the outside in", "[dispatch][interpreter]") { // FS-1, FS-18
  tensor const x = vv::ones({4, 3, 2}, dtype::float64);
  bool looked = false;
  (void)vv::vmap([&](tensor const& a) {
    return vv::grad([&](tensor const& b) {
      return vv::sum(vv::vmap([&](tensor const& c) {
        auto const stack = vv::dynamic_layer_stack();
        REQUIRE(stack.size() == 3);
        CHECK(std::string(stack[0].kind()) == "vmap");
        CHECK(std::string(stack[1].kind()) == "grad");
        CHECK(stack[0].batch_size() == 4);
        CHECK(stack[2].batch_size() == 3);
        for (int k = 0; k < 3; ++k) CHECK(stack[static_cast<std::size_t>(k)].level() == k + 1);
        CHECK_FALSE(stack[0] == stack[2]);
        CHECK(stack[0] == vv::dynamic_layer_stack()[0]);
        looked = true;
        return vv::sum(vv::sin(c));
      })(b));
    })(a);
  })(x);
  CHECK(looked);
  CHECK(vv::dynamic_layer_stack().empty());
}

TEST_CASE("layers: one operator goes through them from the inside out", "[dispatch][interpreter][FS-S23]") {
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(24), dtype::float64)), dims{4, 3, 2});
  std::vector<int> levels;
  int fail_at = -1;
  vv::library lib("mylib");
  lib.def("probe(Tensor x) -> Tensor");
  lib.impl("probe", vv::dispatch_key::cpu, [&](tensor const& v) -> tensor {
    levels.push_back(0);
    return v * 1;
  });
  auto const rule = [&](vv::interpreter in, vv::boxed_op const& op, vv::boxed_args const& a) {
    levels.push_back(in.level());
    if (in.level() == fail_at) throw std::runtime_error("in a rule");
    tensor const y = in.lower([&] { return op(in.unwrap(a)); });
    if (std::string(in.kind()) == "vmap") return in.owns(a[0]) ? in.wrap(y) : y;
    return in.record(y, a, [](tensor const& g) { return vv::boxed_args(g); });
  };
  lib.impl("probe", vv::transform_type::vmap, rule);
  lib.impl("probe", vv::transform_type::grad, rule);
  auto const f = vv::vmap(vv::grad([&](tensor const& b) {
    return vv::sum(vv::vmap([&](tensor const& c) { return vv::sum(vv::sin(vv::ops::call("mylib::probe", c))); })(b));
  }));
  CHECK(difference(f(x), vv::cos(x)) == "");
  CHECK(levels == std::vector<int>{3, 2, 1, 0});
  levels.clear();
  fail_at = 2;
  CHECK_THROWS_AS(f(x), std::runtime_error);
  CHECK(levels == std::vector<int>{3, 2});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("layers: only the innermost can be lowered, several can be taken away for a while",
          "[dispatch][interpreter]") { // FS-5, FS-20
  tensor const x = from({1, 2}, {2});
  (void)vv::vmap([&](tensor const& a) {
    return vv::vmap([&](tensor const& b) {
      auto const stack = vv::dynamic_layer_stack();
      CHECK_THROWS_WITH(stack[0].lower([] { return 0; }), ContainsText("not the innermost"));
      {
        vv::temporarily_popped const off(2);
        CHECK(vv::dynamic_layer_stack().empty());
        CHECK(elements(x + x) == std::vector<double>{2, 4});
      }
      CHECK(vv::dynamic_layer_stack().size() == 2);
      CHECK_THROWS_AS(vv::temporarily_popped(3), vv::transform_error);
      CHECK(vv::dynamic_layer_stack().size() == 2);
      return a + b;
    })(x);
  })(x);
}

TEST_CASE("layers: keys that the caller excluded do not stop transforms", "[dispatch][interpreter][FS-S18]") { // FS-19
  tensor const x = from({0.5, -1}, {2});
  vv::exclude_keys const off(vv::dispatch_key::autograd);
  CHECK(difference(vv::grad([](auto const& v) { return vv::sum(vv::sin(v)); })(x), vv::cos(x)) == "");
  CHECK(vv::this_thread_state.excluded.has(vv::dispatch_key::autograd_functionality));
}

TEST_CASE("layers: random operators under vmap", "[dispatch][interpreter][TR-S19]") {
  tensor const x = vv::zeros({5}, dtype::float64);
  auto const f = [](tensor const& v) { return v + vv::randn({2}, dtype::float64); };
  CHECK_THROWS_WITH(vv::vmap(f)(x), ContainsText("randn") && ContainsText("randomness"));
  vv::manual_seed(1);
  tensor const same = vv::vmap(f, vv::randomness::same)(x);
  vv::manual_seed(1);
  tensor const different = vv::vmap(f, vv::in_dims<0>, vv::out_dims<0>, vv::randomness::different)(x);
  CHECK(same.sizes() == dims{5, 2});
  CHECK(different.sizes() == dims{5, 2});
  for (int k = 1; k < 5; ++k) {
    CHECK(element(same, 2 * k) == element(same, 0));
    CHECK(element(different, 2 * k) != element(different, 0));
  }
  vv::manual_seed(1);
  CHECK(elements(vv::randn({5, 2}, dtype::float64)) == elements(different));
  tensor const nested = vv::vmap([&](tensor const& v) { return vv::vmap(f, vv::randomness::different)(v); },
                                 vv::randomness::different)(vv::zeros({3, 5}, dtype::float64));
  CHECK(nested.sizes() == dims{3, 5, 2});
  CHECK(element(nested, 0) != element(nested, 10));
  CHECK(vv::this_thread_state.quiet());
}

namespace {
struct counting : vv::dispatch_mode<counting> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
} // namespace

TEST_CASE("layers: a pullback runs under the modes that are on when it is called",
          "[dispatch][interpreter][mode]") { // MD-23
  tensor const x = from({0.5, -1}, {2});
  counting forward, backward;
  auto const run = [&] {
    vv::mode_guard const on{forward};
    return vv::vjp([](tensor const& v) { return vv::sum(vv::sin(v)); }, x);
  }();
  int const seen = forward.calls;
  CHECK(seen == 2);
  vv::mode_guard const on{backward};
  (void)run.second(vv::ones({}, dtype::float64));
  CHECK(forward.calls == seen);
  CHECK(backward.calls > 2);
}

TEST_CASE("layers: exceptions at every operator of a program of three modes and two levels",
          "[dispatch][interpreter][exception]") {
  struct interrupted {};
  struct throwing : vv::dispatch_mode<throwing> {
    int left;
    explicit throwing(int n) : left(n) {}
    tensor process(vv::boxed_op op, vv::boxed_args const& args) {
      if (left-- == 0) throw interrupted{};
      return op(args);
    }
  };
  tensor const x = from({0.5, -1, 2}, {3});
  for (int where = 0; where < 4; ++where) { // a user's mode, the one below it, an infra mode, a function mode
    int n = 0;
    for (;; ++n) {
      tensor const y = vv::clone(x);
      throwing at(n), never(1 << 30);
      bool thrown = false;
      int completed = 0;
      try {
        vv::infra_mode_guard const a{vv::infra_mode::fake, where == 2 ? at : never};
        vv::function_mode_guard const f{where == 3 ? at : never};
        vv::mode_guard const b{where == 1 ? at : never};
        vv::mode_guard const c{where == 0 ? at : never};
        vv::add_(y, x);
        ++completed;
        (void)vv::vmap(vv::grad([](tensor const& v) { return vv::sum(vv::softmax(v * v, vv::axis<0>)); }))(
            vv::reshape(y, dims{3, 1}));
        vv::mul_(y, x);
        ++completed;
      } catch (interrupted const&) { thrown = true; }
      REQUIRE(vv::this_thread_state.quiet());
      REQUIRE(vv::this_thread_state.transforms.top == nullptr);
      REQUIRE(vv::current_modes().empty());
      REQUIRE(y.version() == static_cast<std::uint32_t>(completed));
      if (!thrown) break;
    }
    CHECK(n > 5);
  }
}
