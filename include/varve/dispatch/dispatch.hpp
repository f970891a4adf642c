// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/dispatch/operator.hpp>
#include <varve/dispatch/resolve.hpp>
#include <varve/dispatch/static_eval.hpp>

namespace varve {

/// Where a call goes when no static interpreter is left: specialized for plain static values here, for `proxy` and
/// `tensor` beside these.
template <class Base>
struct backend;

/// A value whose shape and dtype are data while tracing.
template <class V>
inline constexpr bool is_proxy_base = false;
/// A value whose shape and dtype are data at run time.
template <class V>
inline constexpr bool is_tensor_base = false;

/// Values of the dynamic world: operators on them consult the thread's stack.
template <class V>
concept dynamic_value = value<V> && is_tensor_base<base_of<V>>;
/// Values of a trace.
template <class V>
concept traced_value = value<V> && is_proxy_base<base_of<V>>;

/// Greatest level among values.
template <class... X>
inline constexpr int top_level = [] {
  int r = 0;
  ((r = level_of<X> > r ? level_of<X> : r), ...);
  return r;
}();

namespace detail {
template <int N, class X, class... R>
constexpr auto interpreter_type() {
  if constexpr (at_level<X, N>) return std::type_identity<typename X::interpreter>{};
  else return interpreter_type<N, R...>();
}
} // namespace detail

/// Type of the innermost interpreter among values, which processes their operators.
template <class... X>
using innermost_t = typename decltype(detail::interpreter_type<top_level<X...>, X...>())::type;

namespace detail {
/// Are two interpreters of one transform? They are one; or one is that of some of the lanes (`hop/some_lanes.hpp`).
template <class I, class J>
inline constexpr bool same_transform = std::is_base_of_v<I, J> || std::is_base_of_v<J, I>;
/// Do all values of the top level belong to one transform?
template <class... X>
inline constexpr bool one_transform = ([] {
  if constexpr (!at_level<X, top_level<X...>>) return true;
  else if constexpr (std::is_same_v<typename X::interpreter, innermost_t<X...>>) return true;
  else return same_transform<typename X::interpreter, innermost_t<X...>>;
}() && ...);
template <class... X>
constexpr void refuse_confusion() {
  static_assert(one_transform<X...>, "varve: values of two different transforms meet at one level (perturbation "
                                     "confusion); pass the outer value as an argument or through "
                                     "closure(f, captured...)");
}
} // namespace detail

namespace detail {
/// Few functions and no closures: every function of this door is instantiated for every operator of every transformed
/// program.
template <int Level, class I, class X, class... Rest>
VARVE_INLINE constexpr void look(I const*& found, X const& x, Rest const&... rest) {
  if constexpr (at_level<X, Level>)
    if constexpr (std::is_same_v<typename X::interpreter, I>)
      if (!found || !found->alive()) found = &x.in;
  if constexpr ((at_level<Rest, Level> || ...)) look<Level>(found, rest...);
}
} // namespace detail

/// The innermost interpreter of some values, with the state (tape, mode, batch size) of an operand that has it.
template <class... X>
constexpr auto innermost(X const&... x) {
  static_assert((detail::refuse_confusion<X...>(), true)); // leaves no call behind
  innermost_t<X...> const* found = nullptr;
  detail::look<top_level<X...>>(found, x...);
  return *found;
}

namespace detail {
/// The key of one interpreter of a static stack.
template <class I>
inline constexpr dispatch_key key_of_interpreter =
    requires { I::watches; } ? dispatch_key::dispatch_mode : dispatch_key::transform;
template <class V>
constexpr dispatch_key_set keys_of_value() {
  if constexpr (is_seen<V>) return keys_of_value<decltype(V::value)>() | key_of_interpreter<typename V::interpreter>;
  else return is_proxy_base<V> ? dispatch_key_set(dispatch_key::meta) : default_keys;
}
template <class... X>
constexpr dispatch_key_set keys_at_top() {
  if constexpr (top_level<X...> > 0) return default_keys | key_of_interpreter<innermost_t<X...>>;
  else
    return ((is_proxy_base<base_of<X>> ? dispatch_key_set(dispatch_key::meta) : default_keys) | ... |
            dispatch_key_set());
}
inline constexpr dispatch_key_set built_in_stops = stops_of(built_in_kernels, built_in_fallbacks);
} // namespace detail

/// The dispatch keys of a value as its type tells them: one for each interpreter it is seen through, and those of what
/// is inside.
template <class V>
inline constexpr dispatch_key_set keys_of = detail::keys_of_value<std::remove_cvref_t<V>>();
/// The key at which a call on static values stops, by the resolution that tables of tensors are made with. Their stack
/// is ordered by levels: only the innermost interpreter's key is there, lowering removes it.
template <class... X>
inline constexpr dispatch_key static_key = key_of_call(detail::keys_at_top<X...>(), {}, {}, detail::built_in_stops);

namespace detail {
struct static_base;
struct traced_base;
struct tensor_base;
template <class... X>
constexpr auto base_tag() {
  if constexpr ((is_tensor_base<base_of<X>> || ...)) {
    static_assert(!(is_proxy_base<base_of<X>> || ...),
                  "varve: a tensor and a traced value meet; pass the tensor as an argument of the traced function");
    return std::type_identity<tensor_base>{};
  } else if constexpr ((is_proxy_base<base_of<X>> || ...)) {
    return std::type_identity<traced_base>{};
  } else {
    return std::type_identity<static_base>{};
  }
}
} // namespace detail

namespace detail {
/// A static value that rules cannot compute with beside values of a trace, whose shapes are data: an array, or whatever
/// is seen through a transform. Plain numbers can stay.
template <class X>
constexpr bool yields_to_trace() {
  if constexpr (value<X>) return !dynamic_value<X> && !traced_value<X> && (is_seen<X> || !number<base_of<X>>);
  else return false;
}
template <class... X>
inline constexpr bool meets_trace = (traced_value<X> || ...) && (yields_to_trace<X>() || ...);
template <class X, class V, class E>
constexpr auto reseen(X const& x, V const& v, E const& e) {
  return seen<typename X::interpreter, V, E>{v, x.in, e};
}
/// A static value, plain numbers included, as a constant of the trace that some of `others` belong to.
template <class X, class... O>
constexpr auto as_traced(X const& x, O const&... others) {
  return backend<dependent<traced_base, X>>::lift(x, others...);
}
/// ... unless it is no such value, or can stay what it is.
template <class X, class... O>
constexpr decltype(auto) beside_trace(X const& x, O const&... others) {
  if constexpr (yields_to_trace<X>()) return as_traced(x, others...);
  else return (x);
}
} // namespace detail

/// The one door of every operator call: the innermost static interpreter processes it; without one, the backend of the
/// values does.
template <class Op, class... X>
constexpr auto dispatch(Op const& op, X const&... x) {
  if constexpr (top_level<X...> > 0 && detail::meets_trace<X...>) return dispatch(op, detail::beside_trace(x, x...)...);
  else if constexpr (static_key<X...> == dispatch_key::transform || static_key<X...> == dispatch_key::dispatch_mode) {
    if constexpr (detail::one_transform<X...>) return innermost(x...).process(op, x...);
    else return detail::refuse_confusion<X...>(), nth<0>(x...); // nothing more is instantiated after the message
  } else return backend<typename decltype(detail::base_tag<X...>())::type>::call(op, x...);
}

template <class Tag, class A, class B, class C>
template <class... X>
constexpr auto bound<Tag, A, B, C>::operator()(X const&... x) const {
  return dispatch(*this, detail::plain(x)...);
}

/// Static values are computed at once: in constant expressions, or in registers.
template <>
struct backend<detail::static_base> {
  /// A constant of a shape and dtype.
  template <fact S, fact T, number N>
  static constexpr auto full(S const&, T const&, N v) {
    using E = type_of<static_cast<dtype>(T::to_dims()[0])>;
    static_value<E, S> r{};
    constexpr index_t all = numel(S::to_dims());
    for (index_t k = 0; k < all; ++k) data_of(r)[k] = kernel::cast<E>(v);
    return r;
  }
  template <class Op, class... X>
  static constexpr auto call(Op const& op, X const&... x) {
    static_assert(
        Op::typed,
        "varve: attributes of static values are types: write axis<1> or shape<2, 3> instead of run-time numbers");
    if constexpr (Op::typed) return evaluate_static(op, x...);
  }
};

} // namespace varve
