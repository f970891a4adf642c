// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/functional/functional_function.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

namespace detail {
template <class V>
inline constexpr bool is_tensor_leaf = std::is_same_v<std::remove_cvref_t<V>, tensor>;
} // namespace detail

/// The function object of `functionalize`.
template <class F>
struct functionalize_function {
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr bool counts = (std::is_integral_v<X> && ...); // sizes, of tensors that are made inside
    if constexpr (!counts && !any_dynamic<X...>) {
      return f(x...);
    } else {
      if constexpr (counts && sizeof...(X) > 0)
        if (std::is_constant_evaluated()) return f(x...);
      return run(x...);
    }
  }

private:
  template <class... X>
  auto run(X const&... x) const {
    detail::dynamic_functional_scope<dependent<void, F>> scope;
    [[maybe_unused]] auto const open = [&](auto const& v) {
      if constexpr (detail::is_tensor_leaf<decltype(v)>) return v.defined() ? scope.argument(v) : v;
      else return v;
    };
    std::tuple const in{tree_map(open, x)...};
    return finish(scope, [&] { return detail::call_with(f, in); });
  }
  template <class Scope, class Body>
  static auto finish(Scope& scope, Body const& body) {
    if constexpr (std::is_void_v<decltype(body())>) {
      scope.run(body);
      scope.write_back();
    } else {
      auto const y = scope.run(body);
      auto const r = tree_map(
          [&](auto const& v) {
            if constexpr (detail::is_tensor_leaf<decltype(v)>) return scope.result(v);
            else return v;
          },
          y);
      scope.write_back();
      return r;
    }
  }
};

/// `functionalize(f)(x...)` is `f(x...)` by operators none of which writes (`torch.func.functionalize`): what `f`
/// writes into values that it made becomes new values, through views; what it writes into its arguments is written by
/// one `copy_` each when it has returned. Traced, the graph has no other in-place operator. Views stay views. Writing
/// into captured tensors, into arguments that share memory, or by an operator without functional form is refused
/// (`transform_error`, `missing_rule`); then arguments are as they were. So is reading, where it has a derivative
/// inside of the transform that is around, what was written in no_grad mode or through `detach`: what was written has
/// no derivative, and the program's value keeps that of before. Captured tensors that share memory with an argument do
/// not show what is written there until `f` has returned. Static values, and numbers, are passed to `f` as they are.
/// FN-1 to FN-13, FN-15, FN-36, FN-39, FN-40.
template <class F>
constexpr auto functionalize(F const& f) {
  return functionalize_function<F>{f};
}

} // namespace varve
