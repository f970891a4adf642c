// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/functional/functional_function.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

namespace detail {
template <class V>
inline constexpr bool is_tensor_leaf = std::is_same_v<std::remove_cvref_t<V>, tensor>;
} // namespace detail

/// The function object that `functionalize` returns.
template <class F>
struct functionalize_function {
  [[no_unique_address]] F f;

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    constexpr bool counts = (std::is_integral_v<X> && ...); // sizes, for tensors made inside
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

/// Returns a function that computes `f(x...)` by operators that do not write: `functionalize(f)(x...)`
/// (`torch.func.functionalize`).
///
/// Writes of `f` into values that it made become new values, also through views. Writes into its arguments become one
/// `copy_` for each argument, after `f` has returned. A traced graph has no other in-place operators. Views stay views.
///
/// Writes into captured tensors, into arguments that share memory, or by an operator without functional form are
/// refused (`transform_error`, `missing_rule`); the arguments do not change then. Writes in no_grad mode or through
/// `detach` have no derivative, while the value in the program keeps its earlier one. Reading such a value is refused
/// where a surrounding transform would use that derivative. Captured tensors that share memory with an argument show
/// its new value only after `f` has returned. Static values and numbers are passed to `f` unchanged.
template <class F>
constexpr auto functionalize(F const& f) {
  return functionalize_function<F>{f};
}

} // namespace varve
