// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/interpreter/grad.hpp>
#include <varve/interpreter/hop_node.hpp>
#include <varve/interpreter/jvp.hpp>
#include <varve/interpreter/mode.hpp>
#include <varve/interpreter/tape.hpp>
#include <varve/interpreter/vmap.hpp>
#include <varve/value/math.hpp>

namespace varve {

/// Opens and closes *static* values for an interpreter, by their type. `N` is its level and `Tag` the transform to
/// which it belongs; two transforms may not be mixed at a level.
template <int N, class Tag>
struct static_level : math::functions {
  static constexpr int level = N;

  static constexpr bool alive() { return true; }
  template <class S>
  static constexpr S logical_shape(S const& s) {
    return s;
  }

  template <class X>
  static constexpr auto open_dual(X const& x) {
    if constexpr (at_level<X, N>) return dual<decltype(x.value), decltype(x.extra)>{x.value, x.extra};
    else return dual<X, none_t>{x, none};
  }
  template <class I, class Y, class T>
  static constexpr auto close_dual(I const& in, Y const& y, T const& t) {
    if constexpr (is_none<T>) return y;
    else return seen<I, Y, T>{y, in, t};
  }

  template <class X>
  static constexpr auto open_batched(X const& x) {
    if constexpr (at_level<X, N>) return operand<decltype(x.value), std::true_type>{x.value, {}};
    else return operand<X, std::false_type>{x, {}};
  }
  template <class X>
  static constexpr auto is_mapped(X const&) {
    return std::bool_constant<at_level<X, N>>{};
  }
  template <class I, class Y, class F>
  static constexpr auto close_batched(I const& in, operand<Y, F> const& y) {
    return seen<I, Y>{y.value, in, {}};
  }

  template <class X>
  static constexpr auto const& open_plain(X const& x) {
    if constexpr (at_level<X, N>) return x.value;
    else return x;
  }
  /// Closes a value whose interpreter has no payload.
  template <class I, class Y>
  static constexpr auto close(I const& in, Y const& y) {
    return seen<I, Y>{y, in, {}};
  }
};

/// The level of a static `grad`. It points to the tape, whose type contains the tower of interpreters through which its
/// cotangents may be seen. Lifted constants have no tape.
template <int N, class Tag, class Tower>
struct static_tape_level : static_level<N, Tag> {
  tape<Tower>* record_on = nullptr;

  template <class V>
  using slot_of = slot<decltype(lift_to_all(std::declval<Tower const&>(), std::declval<V const&>()))>;

  constexpr bool alive() const { return record_on != nullptr; }

  template <class X>
  static constexpr auto open_tracked(X const& x) {
    if constexpr (at_level<X, N>) return tracked<decltype(x.value), decltype(x.extra)>{x.value, x.extra};
    else return tracked<X, none_t>{x, none};
  }
  template <class I, class Y>
  static constexpr auto close_tracked(I const& in, Y const& y) {
    I constant = in;
    constant.record_on = nullptr;
    return seen<I, Y, slot_of<Y>*>{y, constant, nullptr};
  }
  template <class I, class Op, class Y, class... P, class... E>
  constexpr auto record(I const& in, Op const& op, Y const& y, tracked<P, E> const&... t) const {
    if constexpr (!detail::passes_derivatives<Op> || detail::static_and_not_floating<Y>()) {
      return y;
    } else {
      if (!record_on) return close_tracked(in, y);
      using node = detail::op_node<tape<Tower>, slot_of<Y>, Op, Y,
                                   detail::saved<std::remove_cvref_t<P>, std::remove_cvref_t<E>>...>;
      auto* n = record_on->template make<node>(
          record_on, op, y, detail::saved<std::remove_cvref_t<P>, std::remove_cvref_t<E>>{t.primal, t.slot}...);
      return seen<I, Y, slot_of<Y>*>{y, in, &n->out};
    }
  }
  /// Records a higher-order operator as one node with a slot per result, which `rules<tag>::pull` pulls back.
  template <class I, class Op, class Y, class P, class... V, class... E>
  constexpr auto record_hop(I const& in, Op const& op, Y const& y, P const& p, tracked<V, E> const&... t) const {
    tree_for_each(
        [](auto const& v) {
          static_assert(level_of<std::remove_cvref_t<decltype(v)>> < N,
                        "varve: a function of this operator captures a value that grad tracks; pass it as an operand "
                        "or through closure(f, captured...)");
        },
        y);
    using node = detail::hop_node<tape<Tower>, Op, P, Y, static_tape_level, std::tuple<std::remove_cvref_t<V>...>,
                                  std::remove_cvref_t<E>...>;
    node* n = record_on ? record_on->template make<node>(record_on, op, p, y,
                                                         std::tuple<std::remove_cvref_t<V>...>(t.primal...), t.slot...)
                        : nullptr;
    return tree_map_indexed(
        [&]<std::size_t K>(arg_t<K>, auto const& v) {
          using Leaf = std::remove_cvref_t<decltype(v)>;
          if constexpr (detail::static_and_not_floating<Leaf>()) return v;
          else if (n) return seen<I, Leaf, slot_of<Leaf>*>{v, in, &std::get<K>(n->out)};
          else return close_tracked(in, v);
        },
        y);
  }
  /// Records a leaf of the tape.
  template <class I, class V>
  constexpr auto track(I const& in, V const& v) const {
    auto* n = record_on->template make<detail::leaf_node<slot_of<V>>>();
    return seen<I, V, slot_of<V>*>{v, in, &n->out};
  }
};

} // namespace varve
