// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/op/add.hpp>
#include <varve/op/expand.hpp> // used by the rules of every family
#include <varve/op/full_like.hpp>
#include <varve/rule/broadcasting.hpp>

namespace varve {

/// A name for an operator and an interpreter in compiler messages.
template <class Op, class Interpreter>
struct no_rule_of;

/// A primal with its tangent. `none_t` (static) or an undefined tensor (dynamic) means that there is no tangent.
template <class P, class T>
struct dual {
  P const& primal;
  T const& tangent;
};

/// Returns whether a payload is present, as a type for static values.
template <class T>
constexpr auto present(T const&) {
  return std::bool_constant<!is_none<T>>{};
}

/// Returns the sum of two contributions, either of which may be absent.
template <class A, class B>
constexpr auto plus(A const& a, B const& b) {
  if constexpr (is_none<A>) return b;
  else if constexpr (is_none<B>) return a;
  else return add(a, b);
}

namespace detail {
template <class Y>
constexpr bool static_and_not_floating() {
  if constexpr (is_ints<decltype(type_fact(std::declval<Y const&>()))>)
    return !has_derivatives(static_cast<dtype>(decltype(type_fact(std::declval<Y const&>()))::to_dims()[0]));
  else return false;
}
template <class Op>
concept passes_derivatives = !constant_to_derivatives<typename Op::tag>;

template <std::size_t I, class Op, class Y, class D, class... P>
constexpr auto tangent_of(Op const& op, Y const& y, D const& d, P const&... primal) {
  if constexpr (is_none<D>) {
    return none;
  } else {
    using tag = typename Op::tag;
    static_assert(has_jvp<tag> || never<no_rule_of<Op, struct jvp>>,
                  "varve: this operator has no jvp rule; add `jvp` (or `partial`) to its rules<>");
    if constexpr (has_jvp<tag>) return rules<tag>::jvp(arg<I>, op, d, y, primal...);
    else return none;
  }
}
constexpr none_t fold_plus() { return none; }
template <class A>
constexpr auto fold_plus(A const& a) {
  return a;
}
template <class A, class B, class... R>
constexpr auto fold_plus(A const& a, B const& b, R const&... r) {
  return fold_plus(plus(a, b), r...);
}
} // namespace detail

/// Returns the tangent of an operator's result: the sum of its `jvp` rules over the operands that have a tangent, or
/// `none`.
template <class Op, class Y, class... P, class... T>
constexpr auto tangent(Op const& op, Y const& y, dual<P, T> const&... d) {
  if constexpr (!detail::passes_derivatives<Op> || detail::static_and_not_floating<Y>()) {
    return none;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::fold_plus(detail::tangent_of<I>(op, y, d.tangent, d.primal...)...);
    }(std::index_sequence_for<P...>{});
  }
}

/// Returns the cotangent of operand I.
template <std::size_t I, class Op, class G, class Y, class... X>
constexpr auto cotangent(Op const& op, G const& g, Y const& y, X const&... x) {
  using tag = typename Op::tag;
  static_assert(has_vjp<tag> || never<no_rule_of<Op, struct grad>>,
                "varve: this operator has no vjp rule; add `vjp` (or `partial`) to its rules<>");
  if constexpr (has_vjp<tag>) return rules<tag>::vjp(arg<I>, op, g, y, x...);
  else return none;
}

/// Returns the result of an operator with at least one mapped operand. The mapped dimension is in front.
template <class Op, class N, class... V, class... F>
constexpr auto batched(Op const& op, N const& n, operand<V, F> const&... o) {
  using tag = typename Op::tag;
  static_assert(has_batch<tag> || never<no_rule_of<Op, struct vmap>>,
                "varve: this operator has no batch rule; add `batch` to its rules<>");
  if constexpr (has_batch<tag>)
    return operand<decltype(rules<tag>::batch(op, n, o...)), std::true_type>{rules<tag>::batch(op, n, o...), {}};
  else return nth<0>(o...); // instantiate nothing more after the message
}

} // namespace varve
