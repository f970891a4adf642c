// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/interpreter/rule_call.hpp>

#include <tuple>

/// @file
/// The tower of interpreters below a static tape: the join over arguments and captures. The tape knows it, so that
/// every cotangent slot has a type; constants are lifted to it. `jacrev` therefore records inside the mapped function,
/// with the unit vector declared as a capture.
namespace varve {

namespace detail {
/// True if a value contains the interpreter of level `L` at any depth, including its tangents.
template <int L, class V>
struct contains_level : std::false_type {};
template <int L, class I, class V, class E>
struct contains_level<L, seen<I, V, E>>
    : std::bool_constant<I::level == L || contains_level<L, V>::value || contains_level<L, E>::value> {};

/// True if a value is seen through a mode, which must see every call.
template <class V>
consteval bool contains_mode() {
  return false;
}
template <class V>
  requires is_seen<V>
consteval bool contains_mode() {
  return requires { V::interpreter::watches; } || contains_mode<decltype(V::value)>();
}

template <int L, class V>
constexpr auto const& find_level(V const& v) {
  if constexpr (V::interpreter::level == L) return v.in;
  else if constexpr (contains_level<L, decltype(v.value)>::value) return find_level<L>(v.value);
  else return find_level<L>(v.extra);
}
template <int L>
constexpr auto interpreter_at() {
  return std::tuple<>{};
}
template <int L, class X, class... R>
constexpr auto interpreter_at(X const& x, R const&... r) {
  if constexpr (contains_level<L, X>::value) return std::make_tuple(find_level<L>(x));
  else return interpreter_at<L>(r...);
}
} // namespace detail

/// Returns the interpreters below a level that occur in some values, from level 1 upward. A cotangent of any of these
/// values may be seen through them: it is the join of the towers.
template <int Limit, class... X>
constexpr auto tower_of(X const&... x) {
  return [&]<int... L>(std::integer_sequence<int, L...>) {
    return detail::joined(detail::interpreter_at<L + 1>(x...)...);
  }(std::make_integer_sequence<int, Limit - 1>{});
}

/// Wraps a value in each of the first `K` interpreters of a tower; constants become constants of each transform. This
/// fixes the types of cotangents. An interpreter whose payload is more than one value defines `lift_payload(seen,
/// lift)`.
template <std::size_t K, class Tower, class V>
constexpr auto lift_to(Tower const& tower, V const& v) {
  if constexpr (K == 0) {
    return v;
  } else {
    using I = std::tuple_element_t<K - 1, Tower>;
    auto const& in = std::get<K - 1>(tower);
    if constexpr (at_level<V, I::level>) {
      auto const lift = [&](auto const& u) { return lift_to<K - 1>(tower, u); };
      auto const inner = lift(v.value);
      if constexpr (requires { v.in.lift_payload(v, lift); }) return v.in.lift_payload(v, lift);
      else if constexpr (value<decltype(v.extra)>) return in.close_dual(v.in, inner, lift_to<K - 1>(tower, v.extra));
      else
        return seen<typename V::interpreter, std::remove_const_t<decltype(inner)>,
                    std::remove_cvref_t<decltype(v.extra)>>{inner, v.in, v.extra};
    } else {
      auto const inner = lift_to<K - 1>(tower, v);
      if constexpr (requires { in.lift_with(inner, inner); })
        return in.lift_with(inner, lift_to<K - 1>(tower, detail::constant_zeros(v)));
      else return in.lift(inner);
    }
  }
}

/// Lifts a value through the whole tower.
template <class Tower, class V>
constexpr auto lift_to_all(Tower const& tower, V const& v) {
  return lift_to<std::tuple_size_v<Tower>>(tower, v);
}

} // namespace varve
