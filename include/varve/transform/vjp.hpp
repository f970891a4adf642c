// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/transform/scope.hpp>

namespace varve {

namespace detail {
/// Owns a pointer. It can be used in constant expressions.
template <class T>
class owned {
public:
  constexpr explicit owned(T* p) : p_(p) {}
  constexpr owned(owned&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  owned(owned const&) = delete;
  owned& operator=(owned const&) = delete;
  constexpr ~owned() { delete p_; }
  constexpr T* operator->() const { return p_; }

private:
  T* p_;
};
template <class F, class... X>
constexpr auto* new_reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_dynamic<X...>) return new dynamic_reverse_scope<>();
  else return new static_reverse_scope<F, X...>(f, x...);
}
} // namespace detail

namespace detail {
/// Refuses a function if none of its results has a derivative.
template <class Y>
constexpr void require_floating_result(Y const& y) {
  if constexpr (tree_is_dynamic<Y>()) {
    bool any = false, floating = false;
    dtype type{};
    tree_for_each(
        [&](auto const& v) {
          if constexpr (value<std::remove_cvref_t<decltype(v)>>)
            any = true, type = dtype_of(v), floating = floating || has_derivatives(type);
        },
        y);
    if (any && !floating)
      refuse::dtype_is_not_supported("vjp: the results of the function have no derivative", name(type));
  } else {
    static_assert(has_derivative<Y>(), "varve: vjp: the function returns no floating value, so that nothing has a "
                                       "derivative; convert its result");
  }
}
} // namespace detail

/// The second result of `vjp`. It maps cotangents of the results to a tuple of cotangents of the arguments and may be
/// called many times.
template <class Scope, class In, class Y>
struct pullback {
  detail::owned<Scope> scope;
  In in;
  Y y;
  template <class G>
  constexpr auto operator()(G const& g) const {
    scope->backward(y, g);
    return scope->gradient(in);
  }
  /// Pulls back cotangents of the leaves of the result that are marked as used. Other leaves get no cotangent.
  template <class G>
  constexpr auto operator()(G const& g, detail::used_results const& used) const {
    scope->backward(y, g, used);
    return scope->gradient(in);
  }
  /// Returns which arguments received a cotangent in the last call.
  constexpr detail::used_results reached() const { return scope->reached(in); }
};

/// Returns the value of f and its pullback, by reverse mode: `auto [y, pull] = vjp(f, x...)`. `pull(g)` returns a tuple
/// with one cotangent per argument; `g` is a tree with the structure of the result. The cotangent of an argument that
/// is not floating is `none`. Refuses a function without a floating result.
template <class F, class... X>
constexpr auto vjp(F f, X const&... x) {
  static_assert((detail::has_derivative<X>() || ...),
                "varve: vjp: no argument has a floating value to differentiate; write 2.0 for 2, or convert one");
  auto* raw = detail::new_reverse_scope(f, x...);
  using Scope = std::remove_pointer_t<decltype(raw)>;
  detail::owned<Scope> scope(raw);
  auto in = scope->track(std::tuple<X...>(x...));
  scope->give(detail::captures_of(f));
  auto y = scope->run([&] { return detail::call_with(f, in, std::index_sequence_for<X...>{}); });
  detail::require_floating_result(y);
  auto value = scope->primal(y);
  return std::pair(value,
                   pullback<Scope, decltype(in), decltype(y)>{static_cast<detail::owned<Scope>&&>(scope), in, y});
}

} // namespace varve
