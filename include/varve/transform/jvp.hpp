// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/transform/scope.hpp>

namespace varve {

namespace detail {
/// Returns x, as a constant of the trace if y belongs to a trace and x is a static value outside of it.
template <class X, class Y>
constexpr auto in_world_of(X const& x, Y const& y) {
  if constexpr (traced_value<Y> && value<X> && !traced_value<X>) return as_traced(x, y);
  else return x;
}
/// Forward mode at a static level: pairs arguments with their tangents.
template <int N, class Tag>
struct static_forward_scope {
  using interpreter = jvp_interpreter<static_level<N, Tag>>;
  template <class P, class T>
  static constexpr auto attach(P const& p, T const& t) {
    return tree_map(
        [](auto const& v, auto const& d) {
          auto const x = in_world_of(plain(v), d);
          auto const dx = in_world_of(plain(d), v);
          static_assert(value<decltype(x)>, "varve: jvp: primals must be values");
          if constexpr (static_and_not_floating<std::remove_cvref_t<decltype(x)>>()) {
            static_assert(never<decltype(x)>,
                          "varve: jvp: primals must be floating; pass others through closure(f, captured...)");
            return x;
          } else {
            auto const same = same_fact(shape_of(x), shape_of(dx));
            if constexpr (!std::is_same_v<std::remove_const_t<decltype(same)>, bool>)
              static_assert(decltype(same)::value, "varve: jvp: a tangent must have the shape of its primal");
            auto const tangent = to(dx, type_fact(x));
            return seen<interpreter, std::remove_const_t<decltype(x)>, std::remove_const_t<decltype(tangent)>>{
                x, {}, tangent};
          }
        },
        p, t);
  }
  template <class T>
  static constexpr void give(T const&) {}
  template <class Body>
  static constexpr auto run(Body const& body) {
    return body();
  }
  template <class Y>
  static constexpr auto primal(Y const& y) {
    check_exit<N, Y>();
    if constexpr (at_level<Y, N>) return y.value;
    else return y;
  }
  template <class Y>
  static constexpr bool depends(Y const&) {
    static_assert(at_level<Y, N>,
                  "varve: jvp: strict: a result does not depend on the arguments; its derivative would be zeros");
    return true;
  }
  template <class Y>
  static constexpr auto tangent(Y const& y) {
    if constexpr (at_level<Y, N>) return y.extra;
    else return detail::constant_zeros(y);
  }
};
template <class F, class... X>
constexpr auto forward_scope() {
  if constexpr (any_dynamic<X...>) return dynamic_forward_scope<>();
  else return static_forward_scope<next_level<F, X...>, F>{};
}
} // namespace detail

/// A tag that makes `jvp` refuse results that do not depend on the arguments.
inline constexpr struct strict_t {
} strict{};

/// Returns the pair (f(x...), derivative along dx...) by forward mode, in one run: `jvp(f, std::tuple{x...},
/// std::tuple{dx...})`. Results may be trees. A result that does not depend on the arguments has zeros as its tangent.
/// With `strict` as the last argument such a result throws `value_error`.
template <class F, class... P, class... T, class Strict = none_t>
constexpr auto jvp(F f, std::tuple<P...> const& primals, std::tuple<T...> const& tangents, Strict const& = {}) {
  static_assert(sizeof...(P) == sizeof...(T) && sizeof...(P) > 0,
                "varve: jvp: primals and tangents must be tuples of the same, positive size");
  auto scope = detail::forward_scope<F, P..., T...>();
  auto const in = scope.attach(primals, tangents);
  scope.give(detail::captures_of(f));
  auto const y = scope.run([&] { return detail::call_with(f, in, std::index_sequence_for<P...>{}); });
  if constexpr (std::is_same_v<Strict, strict_t>)
    tree_map(
        [&](auto const& v) {
          if (!scope.depends(v))
            refuse::argument_is_invalid("jvp", "strict: a result does not depend on the arguments; its derivative "
                                               "would be zeros");
          return 0;
        },
        y);
  return std::pair(tree_map([&](auto const& v) { return scope.primal(v); }, y),
                   tree_map([&](auto const& v) { return scope.tangent(v); }, y));
}

} // namespace varve
