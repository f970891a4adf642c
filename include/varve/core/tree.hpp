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

template <class V>
struct traits;

/// The adaptation of a type that is not an aggregate to a node of trees. `with(t, f)` calls `f` with references to its
/// members, `make(m...)` returns the node with other members, and `name(k)` returns a member's name. `interop/hana.hpp`
/// specializes it.
template <class T>
struct tree_members {};

namespace detail {
/// Returns the elements of all tuples in one. (`std::tuple_cat` costs a compiler several times as much.)
constexpr std::tuple<> joined() { return {}; }
template <class... A>
constexpr std::tuple<A...> joined(std::tuple<A...> const& x) {
  return x;
}
template <class... A, class... B, class... More>
constexpr auto joined(std::tuple<A...> const& x, std::tuple<B...> const& y, More const&... more) {
  auto const both = [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
    return std::tuple<A..., B...>(std::get<I>(x)..., std::get<J>(y)...);
  };
  if constexpr (sizeof...(More) == 0) return both(std::index_sequence_for<A...>{}, std::index_sequence_for<B...>{});
  else return detail::joined(both(std::index_sequence_for<A...>{}, std::index_sequence_for<B...>{}), more...);
}
template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;
/// True for maps of unique, ordered keys; `is_optional` is true for optional values. Both recognize types by their
/// members, so that `<map>` need not be included.
template <class T>
inline constexpr bool is_map = requires(T const& t) {
  typename T::key_compare;
  { t.at(t.begin()->first) } -> std::same_as<typename T::mapped_type const&>;
};
template <class T>
inline constexpr bool is_optional = requires(T const& t) {
  { *t } -> std::same_as<typename T::value_type const&>;
  { t.has_value() } -> std::same_as<bool>;
};
template <class T, class V>
struct of_values;
template <template <class...> class M, class K, class U, class... R, class V>
struct of_values<M<K, U, R...>, V> {
  using type = M<K, V>;
};
template <template <class...> class O, class U, class V>
struct of_values<O<U>, V> {
  using type = O<V>;
};
/// True for nodes whose number of members is known only at run time.
template <class T>
inline constexpr bool is_run_time_node = is_vector<T> || is_map<T> || is_optional<T>;
template <class T>
concept adapted_node = requires { &tree_members<T>::name; };

struct any_member {
  template <class T>
  operator T() const;
};
inline constexpr std::size_t most_members = 16;
template <class T, class... A>
constexpr std::size_t member_count() {
  if constexpr (sizeof...(A) <= most_members && requires { T{A{}..., any_member{}}; })
    return member_count<T, A..., any_member>();
  else return sizeof...(A);
}
/// Calls `f` with nine to sixteen members of an aggregate.
template <std::size_t N, class T, class F>
constexpr decltype(auto) with_many_members(T& t, F const& f) {
  if constexpr (N == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = t;
    return f(a, b, c, d, e, g, h, i, j);
  } else if constexpr (N == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = t;
    return f(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (N == 11) {
    auto& [a, b, c, d, e, g, h, i, j, k, l] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l);
  } else if constexpr (N == 12) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m);
  } else if constexpr (N == 13) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, n] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, n);
  } else if constexpr (N == 14) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o);
  } else if constexpr (N == 15) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p);
  } else {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q] = t;
    return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q);
  }
}
/// Calls `f` with the members of an aggregate or of an adapted type.
template <class T, class F>
constexpr decltype(auto) with_members(T& t, F const& f) {
  constexpr std::size_t n = adapted_node<std::remove_const_t<T>> ? 0 : member_count<std::remove_const_t<T>>();
  if constexpr (n == 0) {
    static_assert(adapted_node<std::remove_const_t<T>>, "varve: a tree node must be an aggregate, of one to sixteen "
                                                        "members, or adapted (interop/hana.hpp)");
    return tree_members<std::remove_const_t<T>>::with(t, f);
  } else if constexpr (n == 1) {
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
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  } else {
    static_assert(n <= most_members, "varve: a tree node must be an aggregate of one to sixteen members");
    return with_many_members<n>(t, f);
  }
}
template <class T>
constexpr auto members_of(T const& t) {
  return with_members(t, [](auto const&... m) { return std::tuple<decltype(m)...>(m...); });
}

/// True for types of the standard library, of varve and of Boost, which are nodes only if this library declares them
/// so.
template <class T>
inline constexpr bool is_of_a_library =
    declared::in<T>("std::") || declared::in<T>("varve::") || declared::in<T>("boost::");
template <class T>
inline constexpr bool is_template = false;
template <template <class...> class A, class... U>
inline constexpr bool is_template<A<U...>> = true;
template <class T>
consteval bool is_plain_tree();
/// True if `M` is, or contains, a value whose shape is known only at run time. With `any` every other value that is not
/// an integer counts too.
template <class M>
consteval bool holds_values(bool any) {
  if constexpr (requires(M const& m) { traits<M>::shape(m); })
    return any ? !std::is_integral_v<M>
               : std::is_same_v<std::remove_cvref_t<decltype(traits<M>::shape(std::declval<M const&>()))>, dims>;
  else if constexpr (std::is_class_v<M> && requires { std::tuple_size<M>::value; })
    return [any]<std::size_t... K>(std::index_sequence<K...>) {
      return (holds_values<std::remove_cvref_t<std::tuple_element_t<K, M>>>(any) || ...);
    }(std::make_index_sequence<std::tuple_size_v<M>>{});
  else if constexpr (is_map<M>) return holds_values<typename M::mapped_type>(any);
  else if constexpr (is_run_time_node<M>) return holds_values<typename M::value_type>(any);
  else return is_plain_tree<M>();
}
/// True if an aggregate of a program contains tensors, or is a template with values as members, so that it can contain
/// other values too.
template <class T>
consteval bool is_plain_tree() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T> || std::is_empty_v<T>) return false;
  else if constexpr (requires { traits<T>::level; }) return false;
  else if constexpr (is_of_a_library<T>) return false;
  else if constexpr (member_count<T>() < 1 || member_count<T>() > most_members) return false;
  else
    return []<class... M>(std::type_identity<std::tuple<M...>>) {
      return (holds_values<std::remove_cvref_t<M>>(is_template<T>) || ...);
    }(std::type_identity<decltype(members_of(std::declval<T const&>()))>{});
}
} // namespace detail

/// True if `T` is a node of a tree of values; every other type is a leaf. Nodes are `std::tuple`, `std::pair`,
/// `std::array`, `std::vector`, `std::map` and `std::optional`. Structs, tuples and maps of Boost.Hana are nodes with
/// `interop/hana.hpp`.
///
/// An aggregate of a program with up to 16 members is a node if it contains tensors. It is also a node if it is a
/// template of the type of its leaves, `template <class T> struct layer { T weight, bias; };`: such a type can hold
/// static values as seen through transforms. Programs may declare that a type is a node, or not: `template <> inline
/// constexpr bool varve::is_tree_node<layer> = true;`.
template <class T>
inline constexpr bool is_tree_node = detail::is_map<T> || detail::is_optional<T> || detail::is_plain_tree<T>();
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
concept tuple_node = is_tree_node<T> && requires { std::tuple_size<T>::value; };

template <class T>
constexpr auto element_list() {
  if constexpr (is_map<T>) return std::type_identity<std::tuple<typename T::mapped_type>>{};
  else if constexpr (is_run_time_node<T>) return std::type_identity<std::tuple<typename T::value_type>>{};
  else if constexpr (tuple_node<T>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return std::type_identity<std::tuple<std::remove_cvref_t<std::tuple_element_t<K, T>>...>>{};
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else
    return []<class... M>(std::type_identity<std::tuple<M...>>) {
      return std::type_identity<std::tuple<std::remove_cvref_t<M>...>>{};
    }(std::type_identity<decltype(members_of(std::declval<T const&>()))>{});
}
/// The types of the members of a node, as a tuple. For vectors, maps and optionals: their value type.
template <class T>
using elements_of = typename decltype(element_list<T>())::type;
/// The type of the first leaf.
template <class T>
struct first_leaf {
  using type = T;
};
template <class T>
  requires is_tree_node<T>
struct first_leaf<T> : first_leaf<std::tuple_element_t<0, elements_of<T>>> {};
/// True if values of the second list of types can initialize members of the first. A number can initialize only a
/// number.
template <class E, class M>
inline constexpr bool fits_member = false;
template <class... E, class... M>
  requires(sizeof...(E) == sizeof...(M))
inline constexpr bool fits_member<std::tuple<E...>, std::tuple<M...>> =
    ((std::is_same_v<E, M> || (std::is_arithmetic_v<E> == std::is_arithmetic_v<M> && std::is_constructible_v<E, M>)) &&
     ...);
template <class T, class... M>
consteval bool holds_as_it_is() {
  if constexpr (!fits_member<elements_of<T>, std::tuple<M...>>) return false;
  else return requires(M const&... m) { T{m...}; };
}
/// The type of an aggregate with other leaves: `T` itself if the values fit, else its template with the new leaf type.
template <class T, class... M>
struct remade_aggregate {
  using type = T;
};
template <template <class> class A, class U, class First, class... M>
  requires(!holds_as_it_is<A<U>, First, M...>())
struct remade_aggregate<A<U>, First, M...> {
  using type = A<typename first_leaf<First>::type>;
};
template <class T, class... M>
constexpr auto remade(M const&... m) {
  if constexpr (adapted_node<T>) {
    return tree_members<T>::make(m...);
  } else {
    using R = typename remade_aggregate<T, M...>::type;
    constexpr bool fits = fits_member<elements_of<R>, std::tuple<M...>>;
    static_assert(fits || (is_none<M> || ...),
                  "varve: a struct of fixed types cannot hold values seen through transforms; make it a template "
                  "of the type of its leaves: template <class T> struct layer { T weight, bias; };");
    if constexpr (fits) return R{m...};
    else if constexpr (std::is_default_constructible_v<T>) return T{}; // no more errors after the message
    else return nth<0>(m...);
  }
}
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
/// True if two numbers are equal. It has a name, so that compilers print both numbers when they are not.
template <std::size_t A, std::size_t B>
inline constexpr bool same_number = A == B;
/// Refuses trees with another number of values than `T`, and with nodes where `T` has leaves or the reverse. Returns
/// whether they fit.
template <class T, class... R>
consteval bool fits_tree() {
  constexpr bool nodes =
      ((is_tree_node<R> == is_tree_node<T>) && ...) &&
      ((is_vector<R> == is_vector<T> && is_map<R> == is_map<T> && is_optional<R> == is_optional<T>) && ...);
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

template <class F, class T, class... R>
constexpr auto tree_map(F const& f, T const& t, R const&... r);

namespace detail {
/// True if a node has no nodes as elements. (Most have none, and are taken apart and put together in one step.)
template <class T>
inline constexpr bool has_leaves_alone = false;
template <class... E>
inline constexpr bool has_leaves_alone<std::tuple<E...>> = !(is_tree_node<std::remove_cvref_t<E>> || ...);
template <class E, std::size_t N>
inline constexpr bool has_leaves_alone<std::array<E, N>> = !is_tree_node<E>;
template <class T>
inline constexpr bool is_tuple = false;
template <class... E>
inline constexpr bool is_tuple<std::tuple<E...>> = true;
template <std::size_t K, class F, class... T>
constexpr auto map_element(F const& f, T const&... t) {
  if constexpr ((has_leaves_alone<T> && ...)) return f(std::get<K>(t)...);
  else return tree_map(f, std::get<K>(t)...);
}
template <class F, std::size_t... K, class T, class... R>
constexpr auto map_elements(F const& f, std::index_sequence<K...>, T const& t, R const&... r) {
  using results = std::tuple<decltype(detail::map_element<K>(f, t, r...))...>;
  if constexpr (is_tuple<T>) {
    return results{detail::map_element<K>(f, t, r...)...}; // braces, so that leaves are visited in order
  } else {
    results const leaves{detail::map_element<K>(f, t, r...)...};
    return detail::remake(std::type_identity<T>{}, std::get<K>(leaves)...);
  }
}
} // namespace detail

/// Applies `f` to every leaf in order, together with the leaves at the same places of further trees of the same
/// structure. Returns the tree of the results. Arrays stay arrays if all results have one type. Trees of different
/// structure are refused, at compile time or with `shape_error`.
template <class F, class T, class... R>
constexpr auto tree_map(F const& f, T const& t, R const&... r) {
  if constexpr (!detail::fits_tree<T, R...>()) {
    return t; // no more instantiations after the message
  } else if constexpr (detail::is_map<T>) {
    typename detail::of_values<T, decltype(tree_map(f, t.begin()->second, r.begin()->second...))>::type out;
    ((r.size() == t.size() ? void() : refuse::trees_differ_in_size(t.size(), r.size())), ...);
    for (auto const& [key, v] : t) {
      ((r.count(key) ? void() : refuse::trees_differ_in_size(t.size(), r.size() - 1)), ...);
      out.emplace_hint(out.end(), key, tree_map(f, v, r.find(key)->second...));
    }
    return out;
  } else if constexpr (detail::is_optional<T>) {
    typename detail::of_values<T, decltype(tree_map(f, *t, *r...))>::type out;
    ((r.has_value() == t.has_value() ? void() : refuse::trees_differ_in_size(t.has_value(), r.has_value())), ...);
    if (t) out.emplace(tree_map(f, *t, *r...));
    return out;
  } else if constexpr (detail::is_vector<T>) {
    std::vector<decltype(tree_map(f, t[0], r[0]...))> out;
    ((r.size() == t.size() ? void() : refuse::trees_differ_in_size(t.size(), r.size())), ...);
    for (std::size_t k = 0; k < t.size(); ++k) out.push_back(tree_map(f, t[k], r[k]...));
    return out;
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    auto const leaves = tree_map(f, detail::members_of(t), detail::members_of(r)...);
    return std::apply([](auto const&... m) { return detail::remade<T>(m...); }, leaves);
  } else if constexpr (is_tree_node<T>) {
    return detail::map_elements(f, std::make_index_sequence<std::tuple_size_v<T>>{}, t, r...);
  } else {
    return f(t, r...);
  }
}

namespace detail {
/// Returns `f(x...)`. Refuses values that `f` cannot be called with.
template <class F, class... X>
constexpr auto called(F const& f, X&... x) {
  if constexpr (!requires { f(x...); }) {
    static_assert(never<F>,
                  "varve: the function cannot be called with these values: the parameters of the function "
                  "must be auto (auto const&), not double, not array<double, 3>, no struct that is not const, "
                  "and as many as arguments were given");
    return 0;
  } else {
    using Y = decltype(f(x...));
    // Parts of a value, such as `x.at(t)`, are returned as values.
    if constexpr (requires { typename std::remove_cvref_t<Y>::as_result; })
      return typename std::remove_cvref_t<Y>::as_result(f(x...));
    else return f(x...);
  }
}
/// Returns `f` called with the elements of a tuple. Unlike `std::apply` it adds few layers to a compiler's message.
template <class F, class T, std::size_t... K>
constexpr auto call_with(F const& f, T const& t, std::index_sequence<K...>) {
  return detail::called(f, std::get<K>(t)...);
}
template <class F, class T>
constexpr auto call_with(F const& f, T const& t) {
  return call_with(f, t, std::make_index_sequence<std::tuple_size_v<T>>{});
}
} // namespace detail

/// Calls `f` on every leaf in order.
template <class F, class T>
constexpr void tree_for_each(F const& f, T const& t) {
  if constexpr (detail::is_map<T>) {
    for (auto const& e : t) tree_for_each(f, e.second);
  } else if constexpr (detail::is_optional<T>) {
    if (t) tree_for_each(f, *t);
  } else if constexpr (detail::is_vector<T>) {
    for (auto const& e : t) tree_for_each(f, e);
  } else if constexpr (is_tree_node<T> && !detail::tuple_node<T>) {
    detail::with_members(t, [&](auto const&... m) { (tree_for_each(f, m), ...); });
  } else if constexpr (is_tree_node<T>) {
    std::apply([&](auto const&... e) { (tree_for_each(f, e), ...); }, t);
  } else {
    f(t);
  }
}

template <class T>
constexpr auto tree_leaves(T const& t);

namespace detail {
template <class... M>
constexpr auto leaves_of(M const&... m) {
  if constexpr (!(is_tree_node<M> || ...)) return std::tuple<M const&...>(m...);
  else return detail::joined(tree_leaves(m)...);
}
} // namespace detail

/// Returns references to all leaves in one flat tuple. A `std::vector`, map or optional contributes none.
template <class T>
constexpr auto tree_leaves(T const& t) {
  if constexpr (detail::is_run_time_node<T>) return std::tuple<>(); // its number of leaves is known only at run time
  else if constexpr (is_tree_node<T> && !detail::tuple_node<T>)
    return detail::with_members(t, [](auto const&... m) { return detail::leaves_of(m...); });
  else if constexpr (is_tree_node<T>)
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return detail::leaves_of(std::get<K>(t)...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else return std::tuple<T const&>(t);
}

namespace detail {
template <class T>
consteval std::size_t leaf_count() {
  static_assert(!is_run_time_node<T>, "varve: a std::vector, map or optional has no number of leaves that the compiler "
                                      "knows; use std::array or std::tuple");
  if constexpr (is_tree_node<T>)
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return (leaf_count<std::tuple_element_t<K, elements_of<T>>>() + ... + std::size_t{0});
    }(std::make_index_sequence<std::tuple_size_v<elements_of<T>>>{});
  else return 1;
}
/// The positions of the first leaf of each element of a node, if its own first leaf is at `First`.
template <class E, std::size_t First, std::size_t... K>
consteval auto first_leaves(std::index_sequence<K...>) {
  struct {
    std::size_t at[sizeof...(K) + 1];
  } r{{First, leaf_count<std::tuple_element_t<K, E>>()...}};
  for (std::size_t k = 1; k <= sizeof...(K); ++k) r.at[k] += r.at[k - 1];
  return r;
}
} // namespace detail

/// Returns the tree of structure `T` whose leaves are the elements of a flat tuple from `First` on: the inverse of
/// `tree_leaves`.
template <class T, std::size_t First = 0, class L>
constexpr auto tree_unflatten(L const& leaves) {
  if constexpr (is_tree_node<T>) {
    using E = detail::elements_of<T>;
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr auto first = detail::first_leaves<E, First>(std::index_sequence<K...>{});
      if constexpr (detail::tuple_node<T>)
        return detail::remake(std::type_identity<T>{},
                              tree_unflatten<std::tuple_element_t<K, E>, first.at[K]>(leaves)...);
      else return detail::remade<T>(tree_unflatten<std::tuple_element_t<K, E>, first.at[K]>(leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<E>>{});
  } else {
    return std::get<First>(leaves);
  }
}

/// Applies `f(arg<k>, leaf)` to every leaf, where k is its position among them, and returns the tree of the results.
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
