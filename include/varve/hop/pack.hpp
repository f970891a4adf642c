// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/dispatch/boxed.hpp>

/// @file
/// The operands or results of a higher-order operator as one value, so that static values and tensors share the source
/// of its rules. A pack is a tuple of static values, whose counts are constants, or `boxed_args`, whose counts are
/// numbers.
namespace varve {

/// Applies f to the elements of packs as to a flat tree.
template <class F, class... P>
  requires(std::is_same_v<P, boxed_args> && ...)
boxed_args tree_map(F const& f, boxed_args const& a, P const&... p) {
  boxed_args r;
  ((p.size() == a.size()
        ? void()
        : refuse::shapes_do_not_match("higher-order operator (number of values)", dims{a.size()}, dims{p.size()})),
   ...);
  for (int k = 0; k < a.size(); ++k) r.push_back(f(a[k], p[k]...));
  return r;
}

namespace detail {
/// True if a type is `tensor` or a tree that contains tensors.
template <class X>
constexpr bool holds_tensors() {
  if constexpr (std::is_same_v<X, tensor>) return true;
  else if constexpr (is_tree_node<X>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (holds_tensors<E>() || ...);
    }(std::type_identity<elements_of<X>>{});
  else return false;
}
/// A count that the compiler knows, with the arithmetic of an int.
template <int N>
struct count_t : std::integral_constant<int, N> {};
template <int A, int B>
constexpr count_t<A + B> operator+(count_t<A>, count_t<B>) {
  return {};
}
template <int A, int B>
constexpr count_t<A - B> operator-(count_t<A>, count_t<B>) {
  return {};
}

template <class P>
inline constexpr bool is_pack = std::is_same_v<P, boxed_args>;
template <class... V>
inline constexpr bool is_pack<std::tuple<V...>> = true;

template <class... V>
constexpr std::tuple<V...> pack(V const&... v) {
  return std::tuple<V...>(v...);
}
inline boxed_args const& pack(boxed_args const& x) { return x; }

template <class... V>
constexpr count_t<static_cast<int>(sizeof...(V))> count_of(std::tuple<V...> const&) {
  return {};
}
inline int count_of(boxed_args const& x) { return x.size(); }
/// Returns one, as a count of the same type.
template <int N>
constexpr count_t<1> one_of(count_t<N>) {
  return {};
}
constexpr int one_of(int) { return 1; }
template <int N>
constexpr count_t<N / 2> half(count_t<N>) {
  return {};
}
constexpr int half(int n) { return n / 2; }

template <class First, class... V>
constexpr First const& first_of(std::tuple<First, V...> const& x) {
  return std::get<0>(x);
}
template <class P>
  requires std::is_same_v<P, boxed_args>
auto const& first_of(P const& x) {
  return x[0];
}

/// Returns operands [from, to) of a call.
template <class... V, int From, int To>
constexpr auto part(std::tuple<V...> const& x, count_t<From>, count_t<To>) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return pack(std::get<From + K>(x)...);
  }(std::make_index_sequence<static_cast<std::size_t>(To - From)>{});
}
inline boxed_args part(boxed_args const& x, int from, int to) {
  boxed_args r;
  for (int k = from; k < to; ++k) r.push_back(x[k]);
  return r;
}

template <class... P>
  requires(std::is_same_v<P, boxed_args> && ...)
boxed_args joined(boxed_args x, P const&... y) {
  [[maybe_unused]] auto const add = [&](boxed_args const& p) {
    for (auto const& t : p) x.push_back(t);
  };
  (add(y), ...);
  return x;
}

/// Calls a function with the values of a pack.
template <class F, class... V>
constexpr auto spread(F const& f, std::tuple<V...> const& x) {
  return call_with(f, x);
}
template <class F>
boxed_args spread(F const& f, boxed_args const& x) {
  return f(x);
}
} // namespace detail

} // namespace varve
