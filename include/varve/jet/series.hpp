// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/rule_call.hpp>

#include <array>
#include <tuple>
#include <utility>

/// @file
/// Values as truncated power series: the coefficients c[0] + c[1] t + c[2] t^2 + ... as a `std::tuple`. A coefficient
/// that is certainly 0 is `none`, or an undefined tensor.
namespace varve::detail {

/// True if a coefficient is present. For tensors this is known at run time only.
template <class C>
constexpr bool is_there(C const& c) {
  if constexpr (is_none<C>) return false;
  else if constexpr (std::is_same_v<C, tensor>) return c.defined();
  else return true;
}
/// Returns a + b; either may be absent, which means 0.
template <class A, class B>
constexpr auto sum_of_coefficients(A const& a, B const& b) {
  if constexpr (is_none<A>) return b;
  else if constexpr (is_none<B>) return a;
  else if constexpr (std::is_same_v<A, tensor> && std::is_same_v<B, tensor>) {
    using T = dependent<tensor, A>;
    if (!a.defined()) return T(b);
    return b.defined() ? T(add(a, b)) : T(a);
  } else return add(a, b);
}
constexpr none_t sum_of_coefficients() { return {}; }
template <class A>
constexpr A sum_of_coefficients(A const& a) {
  return a;
}
template <class A, class B, class C, class... R>
constexpr auto sum_of_coefficients(A const& a, B const& b, C const& c, R const&... r) {
  return sum_of_coefficients(sum_of_coefficients(a, b), c, r...);
}
/// Returns f(c...) if all coefficients are present, else an absent coefficient, which means 0.
template <class F, class... C>
constexpr auto where_there(F const& f, C const&... c) {
  if constexpr ((is_none<C> || ...)) return none;
  else if constexpr ((std::is_same_v<C, tensor> && ...)) {
    using T = dependent<tensor, F>;
    return (c.defined() && ...) ? T(f(c...)) : T();
  } else return f(c...);
}
/// Returns a coefficient times a number.
template <class C>
constexpr auto scaled_coefficient(C const& c, double by) {
  return where_there(
      [by]<class V>(V const& v) {
        if constexpr (number<V>) return static_cast<V>(static_cast<double>(v) * by); // of the type of v, unlike in C++
        else return mul(v, by);
      },
      c);
}

/// True if a series has no coefficient other than its first.
template <class S>
constexpr bool is_constant_series(S const& s) {
  return std::apply([](auto const&, auto const&... c) { return !(is_there(c) || ...); }, s);
}
/// Returns the first N coefficients.
template <std::size_t N, class S>
constexpr auto first_coefficients(S const& s) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple<std::remove_cvref_t<std::tuple_element_t<K, S>>...>(std::get<K>(s)...);
  }(std::make_index_sequence<N>{});
}
/// Returns the first N coefficients of the derivative: c[1], 2 c[2], 3 c[3], ...
template <std::size_t N, class S>
constexpr auto derivative_of_series(S const& s) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::make_tuple(scaled_coefficient(std::get<K + 1>(s), static_cast<double>(K + 1))...);
  }(std::make_index_sequence<N>{});
}

} // namespace varve::detail
