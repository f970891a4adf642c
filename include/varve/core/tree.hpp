// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/core/type.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace varve {

/// Is `T` a node of a tree of values: `std::tuple`, `std::pair`, `std::array`, `std::vector`, or an aggregate of up to
/// eight members for which a program says so: `template <> inline constexpr bool varve::is_tree_node<layer> = true;`?
/// Everything else is a leaf. The members of an aggregate keep their types: its leaves are tensors; one that is a
/// template of its leaf type, `layer<T>`, works for static values too.
template <class T>
inline constexpr bool is_tree_node = false;
template <class... T>
inline constexpr bool is_tree_node<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tree_node<std::pair<A, B>> = true;
template <class T, std::size_t N>
inline constexpr bool is_tree_node<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_tree_node<std::vector<T>> = true;

namespace detail {
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
concept tuple_node = is_tree_node<T> && requires { std::tuple_size<T>::value; };

struct any_member {
  template <class T>
  operator T() const;
};
template <class T, class... A>
constexpr std::size_t member_count() {
  if constexpr (sizeof...(A) < 9 && requires { T{A{}..., any_member{}}; }) return member_count<T, A..., any_member>();
  else return sizeof...(A);
}
/// Calls `f` with the members of an aggregate.
template <class T, class F>
constexpr decltype(auto) with_members(T& t, F const& f) {
  constexpr std::size_t n = member_count<std::remove_const_t<T>>();
  static_assert(n >= 1 && n <= 8, "varve: a tree node must be an aggregate of one to eight members");
  if constexpr (n == 1) {
    auto& [a] = t;
    return f(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = t;
    return f(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = t;
    return f(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = t;
    return f(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = t;
    return f(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = t;
    return f(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = t;
    return f(a, b, c, d, e, g, h);
  } else {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  }
}
template <class T>
constexpr auto members_of(T const& t) {
  return with_members(t, [](auto const&... m) { return std::tuple<decltype(m)...>(m...); });
}
/// An aggregate of other leaves: itself where the types fit, else its template of the new leaf type.
template <class T, class... M>
struct remade_aggregate {
  using type = T;
};
template <template <class> class A, class U, class First, class... M>
  requires(!requires(First const& f, M const&... m) { A<U>{f, m...}; })
struct remade_aggregate<A<U>, First, M...> {
  using type = A<First>;
};
template <class T>
constexpr auto element_list() {
  if constexpr (is_vector<T>) return std::type_identity<std::tuple<typename T::value_type>>{};
  else if constexpr (tuple_node<T>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return std::type_identity<std::tuple<std::remove_cvref_t<std::tuple_element_t<K, T>>...>>{};
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else
    return []<class... M>(std::type_identity<std::tuple<M...>>) {
      return std::type_identity<std::tuple<std::remove_cvref_t<M>...>>{};
    }(std::type_identity<decltype(members_of(std::declval<T const&>()))>{});
}
/// Types of what a node holds, as a tuple; of a vector its element type.
template <class T>
using elements_of = typename decltype(element_list<T>())::type;
template <class T>
constexpr auto remake(std::type_identity<T>) {
  return std::tuple<>{};
}
template <class T, class First, class... R>
constexpr auto remake(std::type_identity<T>, First const& first, R const&... r) {
  if constexpr (requires { typename T::first_type; }) return std::pair<First, R...>(first, r...);
  else if constexpr (requires { typename T::value_type; } && (std::is_same_v<First, R> && ...))
    return std::array<First, 1 + sizeof...(R)>{first, r...};
  else return std::tuple<First, R...>(first, r...);
}
} // namespace detail

namespace detail {
/// A name, so that compilers tell both numbers when they are not the same.
template <std::size_t A, std::size_t B>
inline constexpr bool same_number = A == B;
/// Refuses trees beside `T` that hold another number of values, or are a node where it is none; says whether they fit.
template <class T, class... R>
consteval bool fits_tree() {
  constexpr bool nodes = ((is_tree_node<R> == is_tree_node<T>) && ...) && ((is_vector<R> == is_vector<T>) && ...);
  static_assert(nodes,
                "varve: of two trees, as of arguments and their tangents or of results and their cotangents, one "
                "has a single value where the other has several");
  if constexpr (nodes && tuple_node<T> && (tuple_node<R> && ...)) {
    static_assert((same_number<std::tuple_size_v<T>, std::tuple_size_v<R>> && ...),
                  "varve: of two trees, as of arguments and their tangents or of results and their cotangents, one has "
                  "more values than the other");
    return (same_number<std::tuple_size_v<T>, std::tuple_size_v<R>> && ...);
  } else {
    return nodes;
  }
}
} // namespace detail

/// Applies `f` to every leaf in order, and to the leaves at the same places of further trees of the same structure;
/// gives the tree of the results (arrays stay arrays where the results are of one type). Trees of other sizes
/// are refused.
template <class F, class T, class... R>
constexpr auto tree_map(F const& f, T const& t, R const&... r) {
  if constexpr (!detail::fits_tree<T, R...>()) {
    return t; // nothing more is instantiated after the message
  } else if constexpr (detail::is_vector<T>) {
    std::vector<decltype(tree_map(f, t[0], r[0]...))> out;
    ((r.size() == t.size() ? void() : refuse::trees_differ_in_size(t.size(), r.size())), ...);
    for (std::size_t k = 0; k < t.size(); ++k) out.push_back(tree_map(f, t[k], r[k]...));
    return out;
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    auto const leaves = tree_map(f, detail::members_of(t), detail::members_of(r)...);
    return std::apply([]<class... M>(M const&... m) { return typename detail::remade_aggregate<T, M...>::type{m...}; },
                      leaves);
  } else if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto at = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        return tree_map(f, std::get<I>(t), std::get<I>(r)...);
      };
      [[maybe_unused]] std::tuple<decltype(at(std::integral_constant<std::size_t, K>{}))...> const leaves{
          at(std::integral_constant<std::size_t, K>{})...}; // braces: in order
      return detail::remake(std::type_identity<T>{}, std::get<K>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return f(t, r...);
  }
}

namespace detail {
/// `f` of the elements of a tuple: `std::apply` without its layers, which fill a compiler's message.
template <class F, class T, std::size_t... K>
constexpr auto call_with(F const& f, T const& t, std::index_sequence<K...>) {
  if constexpr (!requires { f(std::get<K>(t)...); }) {
    static_assert(never<F>, "varve: the function cannot be called with these values: the parameters of the function "
                            "must be auto, not double or float, and as many as arguments were given");
    return 0;
  } else {
    return f(std::get<K>(t)...);
  }
}
template <class F, class T>
constexpr auto call_with(F const& f, T const& t) {
  return call_with(f, t, std::make_index_sequence<std::tuple_size_v<T>>{});
}
} // namespace detail

/// Calls `f` on every leaf in order.
template <class F, class T>
constexpr void tree_for_each(F const& f, T const& t) {
  if constexpr (detail::is_vector<T>) {
    for (auto const& e : t) tree_for_each(f, e);
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    detail::with_members(t, [&](auto const&... m) { (tree_for_each(f, m), ...); });
  } else if constexpr (is_tree_node<T>) {
    std::apply([&](auto const&... e) { (tree_for_each(f, e), ...); }, t);
  } else {
    f(t);
  }
}

/// References to every leaf in one flat tuple.
template <class T>
constexpr auto tree_leaves(T const& t) {
  if constexpr (detail::is_vector<T>)
    return std::tuple<>(); // as many as it has at run time: none that a type could tell of
  else if constexpr (is_tree_node<T> && !detail::tuple_node<T>)
    return detail::with_members(t, [](auto const&... m) { return std::tuple_cat(tree_leaves(m)...); });
  else if constexpr (is_tree_node<T>)
    return std::apply([](auto const&... e) { return std::tuple_cat(tree_leaves(e)...); }, t);
  else return std::tuple<T const&>(t);
}

namespace detail {
template <class T>
consteval std::size_t leaf_count() {
  static_assert(!is_vector<T>,
                "varve: a std::vector has no number of leaves that the compiler knows; use std::array or std::tuple");
  if constexpr (is_tree_node<T>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return (leaf_count<std::tuple_element_t<K, elements_of<T>>>() + ... + std::size_t{0});
    }(std::make_index_sequence<std::tuple_size_v<elements_of<T>>>{});
  else return 1;
}
} // namespace detail

/// The tree of structure `T` whose leaves are the elements of a flat tuple from `First` on: the inverse of
/// `tree_leaves`.
template <class T, std::size_t First = 0, class L>
constexpr auto tree_unflatten(L const& leaves) {
  if constexpr (is_tree_node<T>) {
    using E = detail::elements_of<T>;
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr auto before = []<std::size_t I>(std::integral_constant<std::size_t, I>) {
        return []<std::size_t... J>(std::index_sequence<J...>) {
          return (detail::leaf_count<std::tuple_element_t<J, E>>() + ... + First);
        }(std::make_index_sequence<I>{});
      };
      if constexpr (detail::tuple_node<T>)
        return detail::remake(
            std::type_identity<T>{},
            tree_unflatten<std::tuple_element_t<K, E>, before(std::integral_constant<std::size_t, K>{})>(leaves)...);
      else
        return [](auto const&... m) {
          return typename detail::remade_aggregate<T, std::remove_cvref_t<decltype(m)>...>::type{m...};
        }(tree_unflatten<std::tuple_element_t<K, E>, before(std::integral_constant<std::size_t, K>{})>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<E>>{});
  } else {
    return std::get<First>(leaves);
  }
}

/// Applies `f(arg<k>, leaf)` to every leaf, k being its place among them, and gives the tree of the results.
template <class F, class T>
constexpr auto tree_map_indexed(F const& f, T const& t) {
  if constexpr (is_tree_node<T>) {
    auto const leaves = tree_leaves(t);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return tree_unflatten<T>(std::make_tuple(f(arg_t<K>{}, std::get<K>(leaves))...));
    }(std::make_index_sequence<detail::leaf_count<T>()>{});
  } else {
    return f(arg_t<0>{}, t);
  }
}

} // namespace varve
