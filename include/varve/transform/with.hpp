// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/create.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// A source of static arrays that modes see: `with(m, [](auto s, auto x) { return x + s.ones(shape<3>); }, scope(),
/// x)`. A bare `ones<float, 3>()` has no argument whose type could carry the stack of modes. A scope carries the modes
/// that it was passed through, the outermost first. Factories of tensors need no scope.
template <class... I>
struct scope {
  [[no_unique_address]] std::tuple<I...> stack{};

  /// Returns an array of the given shape filled with a number, in the number's dtype. Every mode of the scope sees an
  /// operator `full`.
  template <index_t... D, number N>
  constexpr auto full(ints<D...> const& sizes, N v) const {
    return bound<full_t, ints<D...>, ints<static_cast<index_t>(dtype_of_type<N>())>>{sizes, {}, {}}(
        lift_to_all(stack, v));
  }
  /// Returns zeros, as in `zeros(shape<2, 3>, type<double>)`.
  template <index_t... D, index_t T = static_cast<index_t>(default_dtype)>
  constexpr auto zeros(ints<D...> const& sizes, ints<T> const& = {}) const {
    return full(sizes, type_of<static_cast<dtype>(T)>(0));
  }
  template <index_t... D, index_t T = static_cast<index_t>(default_dtype)>
  constexpr auto ones(ints<D...> const& sizes, ints<T> const& = {}) const {
    return full(sizes, type_of<static_cast<dtype>(T)>(1));
  }
};
namespace detail {
template <class T>
inline constexpr bool is_scope = false;
template <class... I>
inline constexpr bool is_scope<scope<I...>> = true;
/// Returns the scope as it is inside one more mode.
template <class In, class... I>
constexpr auto within(scope<I...> const& s, In const& in) {
  return scope<I..., In>{detail::joined(s.stack, std::make_tuple(in))};
}
} // namespace detail

/// Calls f(x...) under a mode: every operator on values that come from x is passed to the mode first. The compiler
/// resolves this. The mode sits above the transforms already around it and below those that f applies. On tensors it is
/// a `mode_guard` around the call.
template <class M, class F, class... X>
  requires(sizeof...(X) > 0)
constexpr auto with(M& mode, F const& f, X const&... x) {
  if constexpr (any_dynamic<X...>) {
    mode_guard const on{mode};
    return f(x...);
  } else {
    using I = mode_interpreter<static_level<detail::next_level<F, X...>, F>, M>;
    I in{};
    in.mode = &mode;
    auto const close = [&](auto const& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (value<V>) return seen<I, std::remove_cvref_t<decltype(detail::plain(v))>>{detail::plain(v), in, {}};
      else if constexpr (detail::is_scope<V>) return detail::within(v, in);
      else return v;
    };
    auto const open = [](auto const& y) {
      using Y = std::remove_cvref_t<decltype(y)>;
      if constexpr (value<Y>) detail::check_exit<I::level, Y>();
      if constexpr (at_level<Y, I::level>) return y.value;
      else return y;
    };
    return tree_map(open, f(tree_map(close, x)...));
  }
}

/// The function object that `with(mode, f)` returns.
template <class M, class F>
struct with_function {
  M* mode;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (sizeof...(X) > 0) {
      return with(*mode, f, x...);
    } else { // only factories of tensors can be inside
      mode_guard const on{*mode};
      return f();
    }
  }
};
/// Returns f under the mode, as a function for further transforms: `with(m1, with(m2, f))(x)` or `grad(with(m, f))(x)`.
/// The mode must outlive the returned function.
template <class M, class F>
constexpr auto with(M& mode, F f) {
  return with_function<M, F>{&mode, f};
}

} // namespace varve
