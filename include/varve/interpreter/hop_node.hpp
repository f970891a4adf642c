// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/interpreter/tape.hpp>
#include <varve/interpreter/used_results.hpp>

namespace varve::detail {

template <class Leaves, class Level>
struct result_slots;
template <class... Y, class Level>
struct result_slots<std::tuple<Y const&...>, Level> {
  using type = std::tuple<typename Level::template slot_of<Y>...>;
};

/// A recorded higher-order operator, with a slot for each result, that is, for each leaf of the tree `Y`. The pullback
/// returns the cotangents of all operands at once. `E...` are the targets of the operands.
template <class Tape, class Op, class P, class Y, class Level, class X, class... E>
struct hop_node : tape_node {
  typename result_slots<decltype(tree_leaves(std::declval<Y const&>())), Level>::type out;
  Tape const* owner;
  [[no_unique_address]] Op op;
  P pred;
  Y y;
  X operands;
  std::tuple<E...> targets;

  constexpr hop_node(Tape const* t, Op const& o, P const& p, Y const& r, X const& x, E const&... e)
      : owner(t), op(o), pred(p), y(r), operands(x), targets(e...) {
    act = &run;
  }

  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<hop_node*>(n);
    if (a == pull) {
      if (std::apply([](auto const&... s) { return (s.set || ...); }, self->out))
        self->pull_all(std::index_sequence_for<E...>{});
    } else if (a == clear) {
      std::apply([](auto&... s) { ((s.set = false), ...); }, self->out);
    } else if (std::is_constant_evaluated()) {
      delete self;
    } else {
      self->~hop_node();
    }
  }
  template <std::size_t... I>
  constexpr void pull_all(std::index_sequence<I...>) {
    auto const cotangent = [&](auto const& s, auto const& v) {
      return s.set ? s.value : lift_to_all(owner->tower, detail::constant_zeros(v));
    };
    auto const gradients = [&]<std::size_t... K>(std::index_sequence<K...>) {
      [[maybe_unused]] auto const results = tree_leaves(y);
      if constexpr (requires { op.used; }) {
        (op.used.set(static_cast<int>(K), std::get<K>(out).set), ...);
        op.close_used(pred, operands, cotangent(std::get<K>(out), std::get<K>(results))...);
      }
      return rules<typename Op::tag>::pull(op, pred, operands, cotangent(std::get<K>(out), std::get<K>(results))...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(out)>>{});
    (give(static_cast<int>(I), std::get<I>(targets), std::get<I>(gradients)), ...);
  }
  template <class S, class G>
  constexpr void give([[maybe_unused]] int operand, S const& to, G const& g) {
    if constexpr (requires { op.used; })
      if (!op.reaches(operand)) return;
    if constexpr (!is_none<S>)
      if (to) to->add(owner->tower, g);
  }
};

} // namespace varve::detail
