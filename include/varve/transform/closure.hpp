// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/interpreter/tower.hpp>

#include <tuple>

namespace varve {

/// A function with declared captures: `closure(f, c...)(x...)` is `f(x..., c...)`. A static transform places its level
/// above the levels of the declared captures. The compiler cannot see values hidden inside a lambda; capturing an outer
/// transform's value there risks perturbation confusion (docs/design.md, "Levels and soundness").
template <class F, class... C>
struct closure_t {
  [[no_unique_address]] F f;
  [[no_unique_address]] std::tuple<C...> captures;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return detail::call_with([&](auto const&... c) { return f(x..., c...); }, captures);
  }
};
template <class F, class... C>
constexpr auto closure(F f, C const&... c) {
  return closure_t<F, C...>{f, std::tuple<C...>(c...)};
}

namespace detail {
template <class F>
constexpr F const& without_captures(F const& f) {
  return f;
}
template <class F, class... C>
constexpr F const& without_captures(closure_t<F, C...> const& f) {
  return f.f;
}
template <class F>
constexpr auto captures_of(F const&) {
  return std::tuple<>{};
}
template <class F, class... C>
constexpr auto captures_of(closure_t<F, C...> const& f) {
  return f.captures;
}
template <class X>
constexpr int leaf_level() {
  if constexpr (is_tree_node<X>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      int r = 0;
      using E = elements_of<X>;
      ((r = leaf_level<std::tuple_element_t<K, E>>() > r ? leaf_level<std::tuple_element_t<K, E>>() : r), ...);
      return r;
    }(std::make_index_sequence<std::tuple_size_v<elements_of<X>>>{});
  else if constexpr (value<X>) return level_of<X>;
  else return 0;
}
template <class X>
consteval bool tree_is_dynamic() {
  if constexpr (is_tree_node<X>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return (tree_is_dynamic<std::tuple_element_t<K, elements_of<X>>>() || ...);
    }(std::make_index_sequence<std::tuple_size_v<elements_of<X>>>{});
  else return dynamic_value<X>;
}
/// True if one of these values, or one of their leaves, belongs to a trace.
template <class... X>
consteval bool any_traced() {
  return ([] {
    if constexpr (is_tree_node<X>)
      return []<class... E>(std::type_identity<std::tuple<E...>>) {
        return any_traced<E...>();
      }(std::type_identity<elements_of<X>>{});
    else return traced_value<X>;
  }() || ...);
}
/// The level of a static transform: one above the greatest level among its arguments and declared captures.
template <class F, class... X>
inline constexpr int next_level = 1 + leaf_level<std::tuple<decltype(captures_of(std::declval<F const&>())), X...>>();

template <int Level, class F, class... X>
constexpr auto leaves_tower(F const& f, X const&... x) {
  return detail::call_with([](auto const&... v) { return tower_of<Level>(v...); },
                           tree_leaves(detail::joined(captures_of(f), std::tuple<X const&...>(x...))));
}
} // namespace detail

} // namespace varve
