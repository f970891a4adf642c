// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/interpreter/vmap.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/where.hpp>

/// @file
/// Functions that only some lanes of a `vmap` are to run: the branches of a `cond` whose predicate is mapped, and the
/// steps of loops of which some lanes are done. They run for all lanes, and what the others get is thrown away. So it
/// has to be harmless: no derivative may come of it (0 * inf is NaN), nothing may be written, no loop may wait for
/// them.
namespace varve::detail {

/// Is it known that no derivative is taken of a static value below the `vmap`s that see it?
template <class V>
inline constexpr bool only_mapped = level_of<V> == 0 && !is_proxy_base<base_of<V>> && !is_tensor_base<base_of<V>>;
template <class Lv, class N, class V, class Extra>
inline constexpr bool only_mapped<seen<vmap_interpreter<Lv, N>, V, Extra>> = only_mapped<V>;

/// What only some lanes read: a constant to derivatives elsewhere.
template <class P, class X>
constexpr auto cut_elsewhere(P const& which, X const& x) {
  if constexpr (only_mapped<X> || static_and_not_floating<X>()) return x;
  else return where(which, x, detach(x));
}
/// A function of a pack on static or traced values, for the lanes for which `which` holds. What it captures has become
/// operands.
template <class F, class P, class... X>
constexpr auto on_lanes(F const& f, P const& which, std::tuple<X...> const& x) {
  return spread(f, tree_map([&](auto const& v) { return cut_elsewhere(which, v); }, x));
}
/// ... on tensors, whatever it captures: `boxed_some_lanes.hpp`.
template <class F, class P>
boxed_args on_lanes(F const& f, P const& which, boxed_args const& x);

} // namespace varve::detail
