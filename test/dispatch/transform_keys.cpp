// SPDX-License-Identifier: BSL-1.0
// What kernels of a library at the keys between `transform` and `transform_back` see of a call under transforms, as
// PyTorch's do (FS-3, FS-4, FS-19).
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dispatch_key;
using vv::dispatch_key_set;

namespace {
using entered = std::vector<std::pair<std::string, int>>;

int level_now() {
  auto const stack = vv::dynamic_layer_stack();
  return stack.empty() ? 0 : stack.back().level();
}
/// A kernel that notes its key and the level of the layer that it works for, and hands the call on.
auto noting(entered& log, dispatch_key at) {
  return [&log, at](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& x) -> tensor {
    log.emplace_back(vv::name(at), level_now());
    return vv::redispatch(op, keys.below(at == dispatch_key::autograd ? dispatch_key::autograd_cpu : at), x);
  };
}
struct thread_keys {
  dispatch_key_set included = vv::this_thread_state.included, excluded = vv::this_thread_state.excluded;
  vv::layer* top = vv::this_thread_state.transforms.top;
  bool grad_mode = vv::this_thread_state.grad_mode;
  bool operator==(thread_keys const&) const = default;
};
} // namespace

TEST_CASE("transform keys: each layer lets a call stop at the keys that implement it and at autocast",
          "[dispatch][interpreter][library]") { // FS-3
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(24), dtype::float64)), dims{4, 3, 2});
  entered log;
  vv::library lib("aten");
  for (dispatch_key k : {dispatch_key::autocast, dispatch_key::inplace_or_view, dispatch_key::functionalize})
    lib.impl("sin", k, noting(log, k));
  auto const f = vv::vmap(vv::grad(
      [](tensor const& b) { return vv::sum(vv::vmap([](tensor const& c) { return vv::sum(vv::sin(c)); })(b)); }));
  {
    vv::include_keys const on({dispatch_key::autocast, dispatch_key::functionalize});
    thread_keys const before;
    CHECK(difference(f(x), vv::cos(x)) == "");
    CHECK(log == entered{{"autocast", 3},
                         {"autocast", 2},
                         {"inplace_or_view", 2},
                         {"autocast", 1},
                         {"autocast", 0},
                         {"inplace_or_view", 0},
                         {"functionalize", 0}});
    CHECK(before == thread_keys());
  }
  log.clear();
  (void)vv::jvp([](tensor const& v) { return vv::vmap([](tensor const& c) { return vv::sin(c); })(v); }, std::tuple(x),
                std::tuple(x));
  CHECK(log == entered{{"inplace_or_view", 1},
                       {"inplace_or_view", 0}}); // vmap has no part in it, and nobody switched autocast on
}

TEST_CASE("transform keys: a kernel at autograd stands in the place of a level's own gradient",
          "[dispatch][interpreter][library]") {
  tensor const x = from({0.5, -1}, {2});
  (void)vv::sin(x);
  auto const f = [](tensor const& v) { return vv::sum(vv::sin(v) + v); };
  entered log;
  {
    vv::library lib("aten");
    lib.impl("sin", dispatch_key::autograd, noting(log, dispatch_key::autograd));
    // It hands the call on and records nothing: the result is a constant, at the level as for eager tensors.
    CHECK(elements(vv::grad(f)(x)) == std::vector<double>{1, 1});
    CHECK(log == entered{{"autograd", 1}, {"autograd", 0}});
    log.clear();
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x))).second) == std::vector<double>{2});
    CHECK(log == entered{{"autograd", 1}, {"autograd", 0}});
    log.clear();
    (void)vv::vmap(vv::grad([&](tensor const& v) { return vv::grad(f)(v); }))(x);
    CHECK(log == entered{{"autograd", 3}, {"autograd", 2}, {"autograd", 0}});
  }
  {
    // It records a gradient of its own with the layer it works for: twice the true one, at each of two levels.
    vv::library lib("aten");
    lib.impl("sin", dispatch_key::autograd,
             [](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
               tensor const y = vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), a);
               auto const stack = vv::dynamic_layer_stack();
               if (stack.empty()) return y;
               return stack.back().record(y, a, [v = tensor(stack.back().unwrap(a[0]))](tensor const& g) {
                 return vv::boxed_args(tensor(g * vv::cos(v) * 2));
               });
             });
    auto const g = [](tensor const& v) { return vv::sum(vv::sin(v)); };
    CHECK(difference(vv::grad(g)(x), vv::cos(x) * 2) == "");
    CHECK(difference(vv::vmap(vv::grad(g))(vv::reshape(x, dims{2, 1})), vv::reshape(vv::cos(x) * 2, dims{2, 1})) == "");
    CHECK(difference(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(g)(v)); })(x), vv::sin(x) * -2) == "");
    // Other operators of a kernel are processed by the layer, those below autograd pass it.
    lib.impl("cos", dispatch_key::autograd, [](tensor const& a) -> tensor {
      tensor const recorded = a * 3;
      vv::exclude_keys const off(dispatch_key::autograd);
      return recorded + a * 5;
    });
    CHECK(elements(vv::grad([](tensor const& v) { return vv::sum(vv::cos(v)); })(x)) ==
          std::vector<double>{0, 0}); // the sum itself was made below autograd
    (void)vv::grad([&](tensor const& v) {
      tensor const y = vv::cos(v);
      CHECK(elements(vv::dynamic_layer_stack().back().unwrap(y)) == std::vector<double>{4, -8});
      return vv::sum(v);
    })(x);
  }
  CHECK(difference(vv::grad(f)(x), vv::cos(x) + 1) == "");
}

namespace {
/// exp with half its gradient.
struct halved : vv::function<halved> {
  static auto forward(auto x) {
    vv::exclude_keys const off(dispatch_key::autograd);
    return vv::exp(x);
  }
  static auto setup_context(auto ctx, auto const&, auto const& y) { return ctx.save_for_backward(y); }
  static auto backward(auto& ctx, auto g) {
    auto [y] = ctx.saved();
    return g * y * 0.5;
  }
};
} // namespace

TEST_CASE("transform keys: a kernel at autograd may call a custom function, which every layer differentiates",
          "[dispatch][interpreter][library]") {
  tensor const x = from({0.5, -1}, {2});
  (void)vv::exp(x);
  vv::library lib("aten");
  lib.impl("exp", dispatch_key::autograd, [](tensor const& a) -> tensor { return halved::apply(a); });
  auto const f = [](tensor const& v) { return vv::sum(vv::exp(v)); };
  tensor const y = vv::exp(x);
  CHECK(difference(vv::grad(f)(x), y * 0.5) == "");
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  f(leaf).backward();
  CHECK(difference(leaf.grad(), y * 0.5) == "");
}

TEST_CASE("transform keys: the caller's keys are seen by what is handed down, not by the layer",
          "[dispatch][interpreter][library][FS-S18]") { // FS-4, FS-19
  tensor const x = from({0.5, -1}, {2});
  (void)vv::sin(x);
  entered log;
  vv::library lib("aten");
  lib.impl("sin", dispatch_key::inplace_or_view, noting(log, dispatch_key::inplace_or_view));
  vv::exclude_keys const off({dispatch_key::autograd, dispatch_key::inplace_or_view});
  thread_keys const before;
  CHECK(difference(vv::grad([](tensor const& v) { return vv::sum(vv::sin(v)); })(x), vv::cos(x)) == "");
  CHECK(log == entered{{"inplace_or_view", 1}});
  CHECK(before == thread_keys());
}

TEST_CASE("transform keys: fallbacks and composites of operators of a library", "[dispatch][interpreter][library]") {
  tensor const x = from({0.5, -1}, {2});
  entered log;
  vv::library lib("keyed");
  lib.def("double(Tensor x) -> Tensor");
  lib.impl("double", dispatch_key::composite_implicit, [](tensor const& v) -> tensor { return v * 2; });
  lib.def("opaque(Tensor x) -> Tensor");
  lib.impl("opaque", dispatch_key::cpu, [](tensor const& v) -> tensor { return v * 3; });
  lib.fallback(dispatch_key::autocast, noting(log, dispatch_key::autocast));
  lib.fallback(dispatch_key::autograd_cpu, noting(log, dispatch_key::autograd_cpu));
  auto const composite = [](tensor const& v) { return vv::sum(vv::ops::call("keyed::double", v)); };
  auto const opaque = [](tensor const& v) { return vv::sum(vv::ops::call("keyed::opaque", v)); };
  CHECK(elements(vv::grad(composite)(x)) == std::vector<double>{2, 2});
  CHECK(log.empty()); // varve's own have a gradient, and so has the composite
  CHECK(elements(vv::grad(opaque)(x)) == std::vector<double>{0, 0}); // the fallback is its gradient: none
  CHECK(log == entered{{"autograd_cpu", 1}, {"autograd_cpu", 0}});
  CHECK_THROWS_WITH(vv::vmap(opaque)(x), ContainsText("keyed::opaque") && ContainsText("vmap"));
  log.clear();
  vv::include_keys const on(dispatch_key::autocast);
  CHECK(elements(vv::vmap([](tensor const& v) { return vv::ops::call("keyed::double", v); })(x)) ==
        std::vector<double>{1, -2});
  CHECK(log == entered{{"autocast", 1}, {"autocast", 1}, {"autocast", 0}}); // the composite, then its product
}

TEST_CASE("transform keys: an exception in a layer leaves all as it was",
          "[dispatch][interpreter][library][exception][FS-S23]") { // FS-5
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(24), dtype::float64)), dims{4, 3, 2});
  entered log;
  std::size_t throw_at = ~std::size_t{0};
  auto const kernel = [&](dispatch_key at) {
    return [&, at](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
      log.emplace_back(vv::name(at), level_now());
      if (log.size() - 1 == throw_at) throw std::runtime_error("in a layer");
      tensor const y = vv::redispatch(op, keys.below(at), a);
      if (log.size() == throw_at) throw std::runtime_error("after the layers below");
      return y;
    };
  };
  vv::library lib("aten");
  for (dispatch_key k : {dispatch_key::autocast, dispatch_key::inplace_or_view}) lib.impl("sin", k, kernel(k));
  vv::include_keys const on(dispatch_key::autocast);
  vv::exclude_keys const off(dispatch_key::functionalize);
  thread_keys const before;
  auto const f = vv::vmap([&](tensor const& a) {
    thread_keys const outer;
    return vv::grad([&](tensor const& b) {
      thread_keys const inner;
      try {
        return vv::sum(vv::vmap([&](tensor const& c) {
          thread_keys const here;
          try {
            return vv::sum(vv::sin(c));
          } catch (std::runtime_error const&) {
            CHECK(here == thread_keys());
            throw;
          }
        })(b));
      } catch (std::runtime_error const&) {
        CHECK(inner == thread_keys());
        CHECK(vv::dynamic_layer_stack().size() == 2);
        throw;
      }
    })(a);
  });
  CHECK(difference(f(x), vv::cos(x)) == "");
  std::size_t const all = log.size();
  CHECK(all == 6); // 3, 2, 2, 1, base, base
  for (throw_at = 0; throw_at <= all; ++throw_at) {
    log.clear();
    CHECK_THROWS_AS(f(x), std::runtime_error);
    CHECK(before == thread_keys());
  }
  throw_at = ~std::size_t{0};
  CHECK(difference(f(x), vv::cos(x)) == "");
}

TEST_CASE("transform keys: a kernel in place of the level's gradient may not write where the level would not",
          "[dispatch][library][transform]") { // FS-7
  tensor const x = from({1, -2, 4}, {3}), c = from({0, 0, 0}, {3});
  vv::library lib("aten");
  lib.impl("add_", vv::dispatch_key::autograd,
           [](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
             return vv::redispatch(op, keys.below(vv::dispatch_key::autograd_cpu), a);
           });
  auto const into_captured = [&](tensor const& v) { return vv::add_(c, v), vv::sum(c); };
  auto const into_argument = [&](tensor const& v) { return vv::add_(v, v), vv::sum(v); };
  CHECK_THROWS_AS(vv::grad(into_captured)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::grad(into_argument)(x), vv::autograd_error);
  CHECK(elements(c) == std::vector<double>{0, 0, 0});
  CHECK(elements(x) == std::vector<double>{1, -2, 4});
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("transform keys: what a kernel below autograd does is not differentiated, at a level as eagerly",
          "[dispatch][library][transform]") {
  tensor const x = from({0.5, -1, 2}, {3});
  (void)vv::sin(x);
  auto const f = [](tensor const& v) { return vv::sum(vv::sin(v)); };
  auto const written = [](tensor const& v) {
    tensor y = vv::clone(v);
    vv::mul_(y, v);
    return vv::sum(y);
  };
  entered log;
  vv::library lib("aten");
  // Twice the value, at each layer that lets it in; the gradient is the operator's own.
  lib.impl("sin", dispatch_key::inplace_or_view,
           [&](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
             log.emplace_back(vv::name(dispatch_key::inplace_or_view), level_now());
             return vv::redispatch(op, keys.below(dispatch_key::inplace_or_view), a) * 2;
           });
  lib.impl("mul_", dispatch_key::inplace_or_view,
           [](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
             tensor y = vv::redispatch(op, keys.below(dispatch_key::inplace_or_view), a);
             vv::add_(a[0], a[0]);
             return y;
           });
  tensor const sines = vv::sin(x) * 0.5;
  log.clear();
  CHECK(difference(vv::grad(f)(x), vv::cos(x)) == "");
  CHECK(log == entered{{"inplace_or_view", 1}, {"inplace_or_view", 0}});
  CHECK(difference(vv::vjp(f, x).first, vv::sum(sines) * 4) == "");
  CHECK(difference(vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x))).second, vv::sum(vv::cos(x))) == "");
  CHECK(difference(vv::vmap(vv::grad([](tensor const& v) { return vv::sin(v); }))(x), vv::cos(x)) == "");
  CHECK(difference(vv::grad(written)(x), x * 2) == "");
  CHECK(difference(vv::jvp(written, std::tuple(x), std::tuple(vv::ones_like(x))).second, vv::sum(x) * 2) == "");
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  f(leaf).backward();
  CHECK(difference(leaf.grad(), vv::cos(x)) == "");
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("transform keys: a kernel below autograd that returns its operand returns a view of it",
          "[dispatch][library][autograd]") {
  tensor const x = from({0.5, -1, 2}, {3});
  (void)vv::sin(x);
  vv::library lib("aten");
  lib.impl("sin", dispatch_key::inplace_or_view,
           [](vv::boxed_op const&, vv::boxed_args const& a) -> tensor { return a[0]; });
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  tensor const y = vv::sin(leaf);
  CHECK(leaf.is_leaf());
  CHECK(!y.is_leaf());
  CHECK(y.shares_storage(leaf));
  vv::sum(y).backward();
  CHECK(difference(leaf.grad(), vv::cos(x)) == "");
  CHECK_THROWS_AS(vv::add_(y, 1), vv::autograd_error);
  CHECK(elements(leaf) == elements(x));
  CHECK(difference(vv::grad([](tensor const& v) { return vv::sum(vv::sin(v)); })(x), vv::cos(x)) == "");
}

TEST_CASE("transform keys: a library that ends while its kernel stands for a gradient has still stood for it",
          "[dispatch][library][transform]") {
  tensor const x = from({0.5, -1}, {2});
  (void)vv::sin(x);
  auto lib = std::make_unique<vv::library>("aten");
  lib->impl("sin", dispatch_key::autograd,
            [&lib](vv::boxed_op const& op, dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
              lib.reset();
              return vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), a);
            });
  auto const f = [](tensor const& v) { return vv::sum(vv::sin(v)); };
  CHECK(elements(vv::grad(f)(x)) == std::vector<double>{0, 0});
  CHECK(difference(vv::grad(f)(x), vv::cos(x)) == "");
}
