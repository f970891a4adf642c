// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <varve/core/type.hpp>

namespace varve {

/// Is `T` a node of a tree of values: `std::tuple`, `std::pair` or `std::array`? Everything else is a leaf.
template <class T>
inline constexpr bool is_tree_node = false;
template <class... T>
inline constexpr bool is_tree_node<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tree_node<std::pair<A, B>> = true;
template <class T, std::size_t N>
inline constexpr bool is_tree_node<std::array<T, N>> = true;

namespace detail {
template <class T>
constexpr auto remake(std::type_identity<T>) {
  return std::tuple<>{};
}
template <class T, class First, class... R>
constexpr auto remake(std::type_identity<T>, First const& first, R const&... r) {
  if constexpr (requires { typename T::first_type; }) return std::pair<First, R...>(first, r...);
  else if constexpr (requires { typename T::value_type; } && (std::is_same_v<First, R> && ...)) return std::array<First, 1 + sizeof...(R)>{first, r...};
  else return std::tuple<First, R...>(first, r...);
}
} // namespace detail

/// Applies `f` to every leaf in order, and to the leaves at the same places of further trees of the same structure; gives the tree of the results (arrays stay arrays where the results are of one type).
template <class F, class T, class... R>
constexpr auto tree_map(F const& f, T const& t, R const&... r) {
  if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto at = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { return tree_map(f, std::get<I>(t), std::get<I>(r)...); };
      [[maybe_unused]] std::tuple<decltype(at(std::integral_constant<std::size_t, K>{}))...> const leaves{at(std::integral_constant<std::size_t, K>{})...}; // braces: in order
      return detail::remake(std::type_identity<T>{}, std::get<K>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return f(t, r...);
  }
}

/// Applies `f(arg<k>, value)` to a value (k = 0) or to the elements of a flat tuple.
template <class F, class T>
constexpr auto tree_map_indexed(F const& f, T const& t) {
  if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(f(arg_t<K>{}, std::get<K>(t))...); }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return f(arg_t<0>{}, t);
  }
}

namespace detail {
/// `f` of the elements of a tuple: `std::apply` without its layers, which fill a compiler's message.
template <class F, class T, std::size_t... K>
constexpr auto call_with(F const& f, T const& t, std::index_sequence<K...>) {
  return f(std::get<K>(t)...);
}
template <class F, class T>
constexpr auto call_with(F const& f, T const& t) {
  return call_with(f, t, std::make_index_sequence<std::tuple_size_v<T>>{});
}
} // namespace detail

/// Calls `f` on every leaf in order.
template <class F, class T>
constexpr void tree_for_each(F const& f, T const& t) {
  if constexpr (is_tree_node<T>) std::apply([&](auto const&... e) { (tree_for_each(f, e), ...); }, t);
  else f(t);
}

/// References to every leaf in one flat tuple.
template <class T>
constexpr auto tree_leaves(T const& t) {
  if constexpr (is_tree_node<T>) return std::apply([](auto const&... e) { return std::tuple_cat(tree_leaves(e)...); }, t);
  else return std::tuple<T const&>(t);
}

} // namespace varve
