// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/dispatch/operator.hpp>
#include <varve/dispatch/resolve.hpp>
#include <varve/dispatch/static_eval.hpp>

namespace varve {

/// The processor of calls for which no static interpreter remains. Specialized here for plain static values, and in
/// other headers for `proxy` and `tensor`.
template <class Base>
struct backend;

/// True for values whose shape and dtype are data while tracing.
template <class V>
inline constexpr bool is_proxy_base = false;
/// True for values whose shape and dtype are data at run time.
template <class V>
inline constexpr bool is_tensor_base = false;

/// A value of run time: operators on it consult the thread's stacks.
template <class V>
concept dynamic_value = value<V> && is_tensor_base<base_of<V>>;
/// A value of a trace.
template <class V>
concept traced_value = value<V> && is_proxy_base<base_of<V>>;

/// The greatest level among values.
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

/// The type of the innermost interpreter among values, which processes their operators.
template <class... X>
using innermost_t = typename decltype(detail::interpreter_type<top_level<X...>, X...>())::type;

namespace detail {
/// True if two interpreters belong to one transform. They are equal, or one is for some of the lanes of the other
/// (`hop/some_lanes.hpp`).
template <class I, class J>
inline constexpr bool same_transform = std::is_base_of_v<I, J> || std::is_base_of_v<J, I>;
/// True if all values of the top level belong to one transform.
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
/// Finds the interpreter of the top level. There are few functions and no closures here, because each of them is
/// instantiated for every operator of every transformed program.
template <int Level, class I, class X, class... Rest>
VARVE_INLINE constexpr void look(I const*& found, X const& x, Rest const&... rest) {
  if constexpr (at_level<X, Level>)
    if constexpr (std::is_same_v<typename X::interpreter, I>)
      if (!found || !found->alive()) found = &x.in;
  if constexpr ((at_level<Rest, Level> || ...)) look<Level>(found, rest...);
}
} // namespace detail

/// Returns the innermost interpreter of some values, with the state (tape, mode, batch size) of an operand that has it.
template <class... X>
constexpr auto innermost(X const&... x) {
  static_assert((detail::refuse_confusion<X...>(), true)); // no call remains in the program
  innermost_t<X...> const* found = nullptr;
  detail::look<top_level<X...>>(found, x...);
  return *found;
}

namespace detail {
/// The dispatch key of a static interpreter.
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

/// The dispatch keys of a value, which its type determines: one for each interpreter that it is seen through, and those
/// of the value inside.
template <class V>
inline constexpr dispatch_key_set keys_of = detail::keys_of_value<std::remove_cvref_t<V>>();
/// The key at which a call on static values stops, found by the same resolution as for tables of tensors. Levels order
/// static interpreters, so only the key of the innermost one is present; lowering removes it.
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
/// True for a static value with which rules cannot compute beside values of a trace, because their shapes are data: an
/// array, or a value seen through a transform. Plain numbers can stay.
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
/// Returns a static value, plain numbers included, as a constant of the trace to which some of `others` belong.
template <class X, class... O>
constexpr auto as_traced(X const& x, O const&... others) {
  return backend<dependent<traced_base, X>>::lift(x, others...);
}
/// Returns a value as a constant of the trace of `others` if it cannot stay beside values of a trace
/// (`yields_to_trace`), else the value itself.
template <class X, class... O>
constexpr decltype(auto) beside_trace(X const& x, O const&... others) {
  if constexpr (yields_to_trace<X>()) return as_traced(x, others...);
  else return (x);
}
} // namespace detail

/// The entry point of every operator call. The innermost static interpreter processes the call; without one, the
/// backend of the values does.
template <class Op, class... X>
constexpr auto dispatch(Op const& op, X const&... x) {
  if constexpr (top_level<X...> > 0 && detail::meets_trace<X...>) return dispatch(op, detail::beside_trace(x, x...)...);
  else if constexpr (static_key<X...> == dispatch_key::transform || static_key<X...> == dispatch_key::dispatch_mode) {
    if constexpr (detail::one_transform<X...>) return innermost(x...).process(op, x...);
    else return detail::refuse_confusion<X...>(), nth<0>(x...); // no more instantiations after the message
  } else return backend<typename decltype(detail::base_tag<X...>())::type>::call(op, x...);
}

template <class Tag, class A, class B, class C>
template <class... X>
constexpr auto bound<Tag, A, B, C>::operator()(X const&... x) const {
  return dispatch(*this, detail::plain(x)...);
}

/// The processor of calls on plain static values, which computes them at once: in constant expressions, or in
/// registers.
template <>
struct backend<detail::static_base> {
  /// Returns a constant of a shape and dtype.
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
