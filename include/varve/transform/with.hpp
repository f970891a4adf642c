// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/create.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// Static factories that modes see: `with(m, [](auto s, auto x) { return x + s.ones(shape<3>); }, scope(), x)`. A bare
/// `ones<float, 3>()` has no argument whose type could carry the stack; a scope carries the modes it was handed
/// through, the outermost first. On tensors factories need none.
template <class... I>
struct scope {
  [[no_unique_address]] std::tuple<I...> stack{};

  /// An array of a shape filled with a number, of the number's type: an operator `full` to every mode of the scope.
  template <index_t... D, number N>
  constexpr auto full(ints<D...> const& sizes, N v) const {
    return bound<full_t, ints<D...>, ints<static_cast<index_t>(dtype_of_type<N>())>>{sizes, {}, {}}(
        lift_to_all(stack, v));
  }
  /// `zeros(shape<2, 3>, type<double>)`
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
/// The scope inside one more mode.
template <class In, class... I>
constexpr auto within(scope<I...> const& s, In const& in) {
  return scope<I..., In>{std::tuple_cat(s.stack, std::make_tuple(in))};
}
} // namespace detail

/// `with(mode, f, x...)`: f(x...) with every operator on values that come from x handed to the mode first, resolved by
/// the compiler. The mode sits above the transforms already around it and below those that f applies. On tensors it is
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

/// The function object of `with(mode, f)`.
template <class M, class F>
struct with_function {
  M* mode;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (sizeof...(X) > 0) {
      return with(*mode, f, x...);
    } else { // nothing but factories of tensors can be inside
      mode_guard const on{*mode};
      return f();
    }
  }
};
/// `with(mode, f)`: f under the mode, as a function to be transformed further: `with(m1, with(m2, f))(x)`,
/// `grad(with(m, f))(x)`. The mode must outlive it.
template <class M, class F>
constexpr auto with(M& mode, F f) {
  return with_function<M, F>{&mode, f};
}

} // namespace varve
