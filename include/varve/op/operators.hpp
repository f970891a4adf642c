// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/compare.hpp>
#include <varve/op/mul.hpp>

#include <vector>

/// @file
/// C++ operators on varve's values; at least one operand must be one. Comparisons are elementwise, as in PyTorch;
/// `equal(a, b)` compares whole values.
namespace varve {

struct add__t;
struct sub__t;
struct mul__t;
struct div__t;
struct copy__t;
struct bitwise_and_t;
struct bitwise_or_t;
struct bitwise_xor_t;
struct bitwise_not_t;

namespace detail {
template <class A, class B>
concept operands = value<A> && value<B> && (varve_value<A> || varve_value<B>);
/// Operands of arithmetic, where one may also be an attribute or a size in place of a number.
template <class A, class B>
concept terms = value_or_size<A> && value_or_size<B> && (varve_value<A> || varve_value<B>);
} // namespace detail

template <class A, class B>
  requires detail::terms<A, B>
constexpr auto operator+(A const& a, B const& b) {
  return add(a, b);
}
template <class A, class B>
  requires detail::terms<A, B>
constexpr auto operator-(A const& a, B const& b) {
  return sub(a, b);
}
template <class A, class B>
  requires detail::terms<A, B>
constexpr auto operator*(A const& a, B const& b) {
  return mul(a, b);
}
template <class A, class B>
  requires detail::terms<A, B>
constexpr auto operator/(A const& a, B const& b) {
  return div(a, b);
}
template <varve_value A>
constexpr auto operator-(A const& a) {
  return neg(a);
}
template <varve_value A>
constexpr auto operator+(A const& a) {
  return a;
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator<(A const& a, B const& b) {
  return lt(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator<=(A const& a, B const& b) {
  return le(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator>(A const& a, B const& b) {
  return gt(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator>=(A const& a, B const& b) {
  return ge(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator==(A const& a, B const& b) {
  return eq(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator!=(A const& a, B const& b) {
  return ne(a, b);
}
/// Logical operators of bool, bitwise operators of integers (`special/bitwise.hpp`).
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator&(A const& a, B const& b) {
  return dependent<bitwise_and_t, A, B>{}(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator|(A const& a, B const& b) {
  return dependent<bitwise_or_t, A, B>{}(a, b);
}
template <class A, class B>
  requires detail::operands<A, B>
constexpr auto operator^(A const& a, B const& b) {
  return dependent<bitwise_xor_t, A, B>{}(a, b);
}
template <varve_value A>
constexpr auto operator~(A const& a) {
  return dependent<bitwise_not_t, A>{}(a);
}
namespace detail {
/// Assigns `a = op(a, b)`. An element of a static value is const and refused.
template <class A, class Op, class B>
constexpr A& assigned(A& a, Op const& op, B const& b) {
  if constexpr (std::is_const_v<A>) return refuse_assigned_part<A>(), a;
  else if constexpr (std::is_assignable_v<A&, decltype(op(a, b))>) return a = op(a, b);
  else
    static_assert(never<A>,
                  "varve: x += y gives a value of another type than x has: of another shape or dtype, or seen "
                  "through a transform as y is; write auto z = x + y");
  return a;
}
} // namespace detail
/// Assigns a new value to x. To write into the memory of a tensor, use `add_(x, y)`.
template <varve_value A, value B>
constexpr A& operator+=(A& a, B const& b) {
  return detail::assigned(a, add, b);
}
template <varve_value A, value B>
constexpr A& operator-=(A& a, B const& b) {
  return detail::assigned(a, sub, b);
}
template <varve_value A, value B>
constexpr A& operator*=(A& a, B const& b) {
  return detail::assigned(a, mul, b);
}
template <varve_value A, value B>
constexpr A& operator/=(A& a, B const& b) {
  return detail::assigned(a, div, b);
}
template <varve_value A, value B>
constexpr A& operator&=(A& a, B const& b) {
  return detail::assigned(a, dependent<bitwise_and_t, A, B>{}, b);
}
template <varve_value A, value B>
constexpr A& operator|=(A& a, B const& b) {
  return detail::assigned(a, dependent<bitwise_or_t, A, B>{}, b);
}
template <varve_value A, value B>
constexpr A& operator^=(A& a, B const& b) {
  return detail::assigned(a, dependent<bitwise_xor_t, A, B>{}, b);
}

namespace detail {
template <class A>
constexpr void refuse_sum_in_a_number() {
  static_assert(never<A>, "varve: s += x with a plain number s and a value x seen through a transform: a plain number "
                          "cannot take it; begin with decltype(x)(0), or auto s = 0 * x");
}
} // namespace detail
template <number A, varve_value B>
constexpr A& operator+=(A& a, B const&) {
  return detail::refuse_sum_in_a_number<dependent<A, B>>(), a;
}
template <number A, varve_value B>
constexpr A& operator-=(A& a, B const&) {
  return detail::refuse_sum_in_a_number<dependent<A, B>>(), a;
}
template <number A, varve_value B>
constexpr A& operator*=(A& a, B const&) {
  return detail::refuse_sum_in_a_number<dependent<A, B>>(), a;
}
template <number A, varve_value B>
constexpr A& operator/=(A& a, B const&) {
  return detail::refuse_sum_in_a_number<dependent<A, B>>(), a;
}
namespace detail {
template <class V, class B>
concept numbers_beside = varve_value<V> || (number<V> && varve_value<B>);
}
/// Refuses ranges of numbers, which are not values, with a message that says what to write.
template <class A, class V, class B>
  requires detail::numbers_beside<V, B>
constexpr auto operator+(std::vector<V, A> const& a, B const&) {
  return detail::refuse_range<V>(), a[0];
}
template <class A, varve_value B, class V>
constexpr auto operator+(B const& b, std::vector<V, A> const&) {
  return detail::refuse_range<V>(), b;
}
template <class A, class V, class B>
  requires detail::numbers_beside<V, B>
constexpr auto operator-(std::vector<V, A> const& a, B const&) {
  return detail::refuse_range<V>(), a[0];
}
template <class A, varve_value B, class V>
constexpr auto operator-(B const& b, std::vector<V, A> const&) {
  return detail::refuse_range<V>(), b;
}
template <class A, class V, class B>
  requires detail::numbers_beside<V, B>
constexpr auto operator*(std::vector<V, A> const& a, B const&) {
  return detail::refuse_range<V>(), a[0];
}
template <class A, varve_value B, class V>
constexpr auto operator*(B const& b, std::vector<V, A> const&) {
  return detail::refuse_range<V>(), b;
}
template <class A, class V, class B>
  requires detail::numbers_beside<V, B>
constexpr auto operator/(std::vector<V, A> const& a, B const&) {
  return detail::refuse_range<V>(), a[0];
}
template <class A, varve_value B, class V>
constexpr auto operator/(B const& b, std::vector<V, A> const&) {
  return detail::refuse_range<V>(), b;
}

/// Writes into the tensor if x is a temporary part of one, as in `x[0] += y`.
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator+=(A&& a, B const& b) {
  return dependent<add__t, A>{}(a, b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator-=(A&& a, B const& b) {
  return dependent<sub__t, A>{}(a, b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator*=(A&& a, B const& b) {
  return dependent<mul__t, A>{}(a, b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator/=(A&& a, B const& b) {
  return dependent<div__t, A>{}(a, b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator&=(A&& a, B const& b) {
  return dependent<copy__t, A>{}(a, a & b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator|=(A&& a, B const& b) {
  return dependent<copy__t, A>{}(a, a | b), a;
}
template <class A, value B>
  requires std::is_same_v<A, tensor>
tensor const& operator^=(A&& a, B const& b) {
  return dependent<copy__t, A>{}(a, a ^ b), a;
}

/// True if two static values have the same shape, dtype and elements.
template <class T, index_t... D, class U, index_t... E>
constexpr bool equal(array<T, D...> const& a, array<U, E...> const& b) {
  if constexpr (!std::is_same_v<array<T, D...>, array<U, E...>>) {
    return false;
  } else {
    for (index_t k = 0; k < a.size(); ++k)
      if (!(a.data[k] == b.data[k])) return false;
    return true;
  }
}
template <number A, number B>
constexpr bool equal(A a, B b) {
  return a == b;
}

} // namespace varve
