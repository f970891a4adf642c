// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// A program of one tensor under transforms and pairs of them, with functionalize around the program, and around all of
/// it.
#include "../autograd/autograd_test.hpp"

#include <functional>

namespace functional_test {
using namespace autograd_test;
using vv::boxed_args;
using names = std::vector<std::string>;
using program = std::function<tensor(tensor const&)>;

/// Sees what is left of calls below all transforms.
struct watching : vv::dispatch_mode<watching> {
  static constexpr bool supports_higher_order_operators = true;
  std::vector<std::string> names{};
  int writes = 0;
  auto process(auto const& op, boxed_args const& x) {
    names.emplace_back(op.name());
    if constexpr (requires { op.table; }) writes += op.table->kind == vv::op_kind::mutation;
    return op(x);
  }
};
struct wrapped {
  char const* name;
  std::function<tensor(program const&, tensor const&)> of;
};
/// The ways to run a program under transforms; functionalize goes around the program, and around all of it.
inline std::vector<wrapped> ways() {
  auto const scalar = [](program const& f) -> program { return [f](tensor const& v) { return vv::sum(f(v) * f(v)); }; };
  auto const grad = [scalar](program const& f) -> program {
    return [g = scalar(f)](tensor const& v) { return vv::grad(g)(v); };
  };
  auto const jvp = [](program const& f) -> program {
    return [f](tensor const& v) { return vv::jvp(f, std::tuple(v), std::tuple(vv::cos(v))).second; };
  };
  auto const vmap = [](program const& f) -> program {
    return [f](tensor const& v) { return vv::vmap(f)(vv::stack(std::vector<tensor>{v, v * 0.5, v + 0.25}, 0)); };
  };
  return {{"value", [](program const& f, tensor const& x) { return f(x); }},
          {"grad", [=](program const& f, tensor const& x) { return grad(f)(x); }},
          {"jvp", [=](program const& f, tensor const& x) { return jvp(f)(x); }},
          {"vmap", [=](program const& f, tensor const& x) { return vmap(f)(x); }},
          {"grad of grad", [=](program const& f, tensor const& x) { return grad(grad(f))(x); }},
          {"vmap of grad", [=](program const& f, tensor const& x) { return vmap(grad(f))(x); }},
          {"grad of vmap", [=](program const& f, tensor const& x) { return grad(vmap(f))(x); }},
          {"jvp of grad", [=](program const& f, tensor const& x) { return jvp(grad(f))(x); }},
          {"vmap of vmap", [=](program const& f, tensor const& x) { return vmap(vmap(f))(x); }},
          {"eager", [=](program const& f, tensor const& x) {
             tensor const l = vv::clone(x).requires_grad_();
             scalar(f)(l).backward();
             return l.grad();
           }}};
}
/// Everywhere the same, and below functionalize nothing writes.
inline void functional_everywhere(char const* what, program const& f, tensor const& x) {
  program const functional = [f](tensor const& v) { return vv::functionalize(f)(v); };
  program const twice = [f](tensor const& v) { return vv::functionalize(vv::functionalize(f))(v); };
  for (wrapped const& w : ways()) {
    INFO(what << ", " << w.name);
    tensor const want = w.of(f, x);
    CHECK(difference(w.of(functional, x), want, 1e-13) == "");
    CHECK(difference(w.of(twice, x), want, 1e-13) == "");
    program const all = [&](tensor const& v) { return w.of(f, v); };
    if (std::string(w.name) == "eager") continue; // leaves are made outside of transforms
    CHECK(difference(vv::functionalize(all)(x), want, 1e-13) == "");
    // Below it nothing writes, and so a trace of it does not.
    watching seen;
    {
      vv::mode_guard const on{seen};
      (void)vv::functionalize(all)(x);
    }
    CHECK(seen.writes == 0);
    vv::graph const g = vv::make_fx(vv::functionalize(all))(x);
    CHECK_FALSE(vv::has_mutation(g));
    CHECK(difference(vv::interpret(g, boxed_args(x))[0], want, 1e-13) == "");
    CHECK(thread_is_clean());
  }
}
} // namespace functional_test
