// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/interpreter/vmap.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/where.hpp>

/// @file
/// Functions that only some lanes of a `vmap` should run: the branches of a `cond` whose predicate is mapped, and the
/// steps of loops in which some lanes are finished. They run for all lanes, and the results of the other lanes are
/// discarded. The extra work must be harmless: it may contribute no derivative (0 * inf is NaN) and may write nothing,
/// and no loop may wait for the other lanes.
namespace varve::detail {

/// True if it is known that no derivative of a static value is taken below the `vmap`s that see it.
template <class V>
inline constexpr bool only_mapped = level_of<V> == 0 && !is_proxy_base<base_of<V>> && !is_tensor_base<base_of<V>>;
template <class Lv, class N, class V, class Extra>
inline constexpr bool only_mapped<seen<vmap_interpreter<Lv, N>, V, Extra>> = only_mapped<V>;

/// The interpreter of a static `vmap` inside a function that only some of its lanes run. Loops do not wait for the
/// other lanes.
template <class I, class P>
struct some_lanes_of : I {
  [[no_unique_address]] P which; // one truth value for each lane, as seen below the `vmap`

  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (requires { Op::end_is_open; }) {
      if constexpr (Op::end_is_open)
        return rules<typename Op::tag>::vmap(*this, op.for_lanes(), x..., this->close(*this, which));
      else return rules<typename Op::tag>::vmap(*this, op, x...);
    } else if constexpr (is_hop<Op>) {
      return rules<typename Op::tag>::vmap(*this, op, x...);
    } else {
      static_assert(rules<typename Op::tag>::kind != op_kind::effect || handle<typename Op::tag>.in_all_lanes,
                    "varve: vmap: a function that only some lanes run, as a branch of cond, cannot do something "
                    "outside of the program: it would do so for the others too; call it outside, on the result");
      return in_these_lanes(I::process(op, x...));
    }
  }
  template <class V>
  constexpr auto lift(V const& v) const {
    return in_these_lanes(I::lift(v));
  }
  /// Returns a value of the `vmap` as the function sees it; returns any other value unchanged.
  template <class V>
  constexpr auto in_these_lanes(V const& v) const {
    if constexpr (at_level<V, I::level>) return this->close(*this, v.value);
    else return v;
  }
  /// Returns a result of the function as a value for all lanes.
  template <class V>
  static constexpr auto in_all_lanes(V const& v) {
    if constexpr (at_level<V, I::level>) return I::close(static_cast<I const&>(v.in), v.value);
    else return v;
  }
};
template <class I, class P, class V, class Extra>
inline constexpr bool only_mapped<seen<some_lanes_of<I, P>, V, Extra>> = only_mapped<V>;

/// Returns the interpreter for the lanes in which `which` holds, among the lanes that run the current function.
template <class I, class P>
constexpr auto lanes_for(seen<I, P> const& which) {
  return some_lanes_of<I, P>{which.in, which.value};
}
template <class I, class Q, class P>
constexpr auto lanes_for(seen<some_lanes_of<I, Q>, P> const& which) {
  auto const both = where(which.in.which, which.value, false);
  return some_lanes_of<I, std::remove_const_t<decltype(both)>>{which.in, both};
}

/// Returns x, detached outside of the lanes of `which`, because only these lanes read it.
template <class P, class X>
constexpr auto cut_elsewhere(P const& which, X const& x) {
  if constexpr (only_mapped<X> || static_and_not_floating<X>()) return x;
  else return where(which, x, detach(x));
}
/// Runs a function of a pack of static or traced values for the lanes in which `which` holds. Its captures have already
/// become operands.
template <class F, class P, class... X>
constexpr auto on_lanes(F const& f, P const& which, std::tuple<X...> const& x) {
  auto const lanes = lanes_for(which);
  auto const run = [&](auto const&... v) { return f(lanes.in_these_lanes(v)...); };
  return tree_map([&](auto const& y) { return lanes.in_all_lanes(y); },
                  spread(run, tree_map([&](auto const& v) { return cut_elsewhere(which, v); }, x)));
}
/// Runs a function of tensors for the lanes in which `which` holds, with arbitrary captures. Defined in
/// `boxed_some_lanes.hpp`.
template <class F, class P>
boxed_args on_lanes(F const& f, P const& which, boxed_args const& x);

} // namespace varve::detail
