// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/inner_function.hpp>
#include <varve/hop/some_lanes.hpp>
#include <varve/op/mul.hpp>
#include <varve/trace/region.hpp>

namespace varve {

/// Tag of the higher-order operator `cond`.
struct cond_t {
  static constexpr auto op_name = "cond";
  static constexpr operator_class planned_as = operator_class::cond;
  static constexpr int given_from = 1;
  static constexpr hop_signature signature{
      "(Tensor pred, GraphModule true_fn, GraphModule false_fn, Tensor[] operands) -> Tensor[]"};
};

namespace detail {
/// Requires that the results of both branches have the same shape and dtype.
template <class U, class V>
constexpr void require_alike(U const& u, V const& v) {
  if constexpr (is_ints<decltype(shape_of(u))> && is_ints<decltype(shape_of(v))>) {
    static_assert(std::is_same_v<decltype(shape_of(u)), decltype(shape_of(v))> &&
                      std::is_same_v<decltype(type_fact(u)), decltype(type_fact(v))>,
                  "varve: cond: both functions must return values of one shape and dtype");
  } else {
    require_alike(meta{dtype_of(u), to_dims(shape_of(u))}, meta{dtype_of(v), to_dims(shape_of(v))});
  }
}
} // namespace detail

/// `cond` with its two functions, as interpreters process it. They wrap the functions and call the operator again one
/// level below.
template <class T, class F>
struct cond_call {
  using tag = cond_t;
  [[no_unique_address]] T on_true;
  [[no_unique_address]] F on_false;
  detail::used_results used{};
  static constexpr char const* name() { return cond_t::op_name; }
  template <class... P>
  constexpr void close_used(P const&...) const {}
  static constexpr bool reaches(int) { return true; }
  /// Returns the call with other functions.
  template <class A, class B>
  static constexpr auto with(A const& a, B const& b) {
    return cond_call<A, B>{a, b};
  }
  // The forms in which the rules below are written; tensors have their own (`boxed_cond.hpp`).
  template <class I, class A>
  static constexpr auto dual_fn(I const& in, A const& f) {
    return detail::dual_trees_fn<I, A>{in, f};
  }
  template <class A, class... V>
  constexpr auto pull_fn(A const& f, V const&...) const {
    return detail::pull_fn<sizeof...(V), A>{f, used};
  }
  template <class I, class A, class... V, class... Flag>
  static constexpr auto batched_fn(I const& in, A const& f, operand<V, Flag> const&...) {
    return detail::batched_fn<I, A, Flag...>{in, f};
  }
  template <class A, class P, class... X>
  static constexpr auto on_lanes(A const& f, P const& which, X const&... x) {
    return detail::on_lanes(f, which, detail::pack(x...));
  }
  template <class D>
  static constexpr auto tangent(D const& d) {
    return detail::full_tangent(d);
  }
  template <class P>
  static constexpr auto const& predicate(P const& p) {
    return p;
  }
  template <class A, class... X>
  static constexpr auto spread(A const& f, std::tuple<X...> const& x) {
    return detail::call_with(f, x);
  }
  /// Combines the tree of primals and the tree of tangents of the results into one tree, closed as pairs.
  template <class Y, class A>
  static constexpr auto split_pairs(Y const& y, A const& close) {
    return tree_map(close, y.first, y.second);
  }
  template <value P, value... X>
  constexpr auto operator()(P const& p, X const&... x) const {
    if constexpr (top_level<P, X...> > 0 && detail::meets_trace<P, X...>)
      return (*this)(detail::beside_trace(p, p, x...), detail::beside_trace(x, p, x...)...);
    else if constexpr (top_level<P, X...> > 0) return innermost(p, x...).process(*this, p, x...);
    else if constexpr (is_proxy_base<base_of<P>>) return trace_branches(cond_t{}, *this, p, x...);
    else return p ? on_true(x...) : on_false(x...);
  }
};
template <class T, class F>
inline constexpr bool is_hop<cond_call<T, F>> = true;

/// How each interpreter processes a `cond` whose predicate it cannot decide. The predicate is operand 0. Static values
/// and tensors share this source: functions are wrapped by `dual_fn`, `pull_fn` and `batched_fn`, which have separate
/// versions for tensors (`boxed_cond.hpp`).
template <>
struct rules<cond_t> {
  template <class I, class Op, class P, class... X>
  static constexpr auto jvp(I const& in, Op const& op, P const& p, X const&... x) {
    return [&](auto const& pp, auto const&... d) {
      auto const y =
          op.with(op.dual_fn(in, op.on_true), op.dual_fn(in, op.on_false))(pp.primal, d.primal..., op.tangent(d)...);
      return op.split_pairs(y, [&](auto const& v, auto const& t) { return in.close_dual(in, v, t); });
    }(in.open_dual(p), in.open_dual(x)...);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto grad(I const& in, Op const& op, P const& p, X const&... x) {
    return [&](auto const& pp, auto const&... t) {
      auto const y = op(pp.primal, t.primal...);
      return in.record_hop(in, op, y, pp.primal, t...);
    }(in.open_tracked(p), in.open_tracked(x)...);
  }
  /// Computes the cotangents of all operands at once: the same call, with each branch replaced by its pullback.
  template <class Op, class P, class X, class... G>
  static constexpr auto pull(Op const& op, P const& p, X const& x, G const&... g) {
    return op.spread(
        [&](auto const&... v) {
          return op.with(op.pull_fn(op.on_true, v...), op.pull_fn(op.on_false, v...))(p, v..., g...);
        },
        x);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto vmap(I const& in, Op const& op, P const& p, X const&... x) {
    return choose(
        in.is_mapped(p),
        [&](auto const& q) {
          auto const holds = detail::as_condition(op.predicate(q));
          return tree_map([&](auto const& u, auto const& v) { return detail::require_alike(u, v), where(holds, u, v); },
                          op.on_lanes(op.on_true, holds, x...), op.on_lanes(op.on_false, eq(holds, 0), x...));
        },
        [&](auto const& q) {
          return [&](auto const&... o) {
            auto const y =
                op.with(op.batched_fn(in, op.on_true, o...), op.batched_fn(in, op.on_false, o...))(q, o.value...);
            return tree_map(
                [&](auto const& v) {
                  return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}});
                },
                y);
          }(in.open_batched(x)...);
        },
        p);
  }
  template <class I, class Op, class P, class... X>
  static constexpr auto mode(I const& in, Op const& op, P const& p, X const&... x) {
    using T = detail::reentering_fn<I, decltype(op.on_true)>;
    using F = detail::reentering_fn<I, decltype(op.on_false)>;
    auto const y =
        in.mode->process(cond_call<T, F>{{in, op.on_true}, {in, op.on_false}}, in.open_plain(p), in.open_plain(x)...);
    return tree_map([&](auto const& v) { return in.close(in, v); }, y);
  }
};

namespace detail {
/// Returns the operands followed by the captures of both closures.
template <class T, class F, class... X>
constexpr auto with_captures_of(T const& t, F const& f, X const&... x) {
  return detail::joined(std::tuple<X...>(x...), captures_of(t), captures_of(f));
}
template <class T, class F, class... X>
constexpr auto branch(bool p, T const& t, F const& f, X const&... x) {
  if constexpr (std::is_same_v<decltype(t(x...)), decltype(f(x...))>) {
    return p ? t(x...) : f(x...);
  } else {
    auto const all = with_captures_of(t, f, x...);
    auto const tower =
        call_with([](auto const&... v) { return tower_of<1 + leaf_level<std::remove_const_t<decltype(all)>>()>(v...); },
                  tree_leaves(all));
    auto const lift = [&](auto const& y) { return tree_map([&](auto const& v) { return lift_to_all(tower, v); }, y); };
    static_assert(std::is_same_v<decltype(lift(t(x...))), decltype(lift(f(x...)))>,
                  "varve: cond: both functions must return values of one shape and dtype");
    return p ? lift(t(x...)) : lift(f(x...));
  }
}
/// True if a mode is active on one of the leaves.
template <class V>
consteval bool is_watched() {
  if constexpr (is_tree_node<V>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (is_watched<E>() || ...);
    }(std::type_identity<elements_of<V>>{});
  else if constexpr (value<V>) return contains_mode<V>();
  else return false;
}
/// A branch whose captures are operands of the call: the leaves of the tuple `C`, which follow the first `N` operands
/// and `From` more.
template <std::size_t N, std::size_t From, class C, class F>
struct branch_on_captures {
  [[no_unique_address]] F f;
  template <class... A>
  constexpr auto operator()(A const&... a) const {
    return [&]<std::size_t... K>(std::tuple<A const&...> const& all, std::index_sequence<K...>) {
      return call_with([&](auto const&... c) { return f(std::get<K>(all)..., c...); },
                       tree_unflatten<C, N + From>(all));
    }(std::tie(a...), std::make_index_sequence<N>{});
  }
};
template <std::size_t N, std::size_t From, class C, class F>
constexpr branch_on_captures<N, From, C, F> on_captures(F const& f) {
  return {f};
}
/// True if all leaves of a tree are values.
template <class C>
consteval bool holds_values() {
  if constexpr (is_tree_node<C>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (holds_values<E>() && ...);
    }(std::type_identity<elements_of<C>>{});
  else return value<C>;
}
/// Returns the captures of a `closure` if all of them are values or trees of values. Returns an empty tuple for other
/// functions.
template <class F>
constexpr auto captured_values(F const& f) {
  if constexpr (holds_values<decltype(captures_of(f))>()) return captures_of(f);
  else return std::tuple<>{};
}
/// Turns captures of the branches into operands, so that they are lifted, mapped and differentiated as operands are.
template <class T, class F, class P, class... X>
constexpr auto cond_with_captures(P const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  using on_true = decltype(captured_values(true_fn));
  using on_false = decltype(captured_values(false_fn));
  constexpr std::size_t n = sizeof...(X), t = leaf_count<on_true>(), f = leaf_count<on_false>();
  if constexpr (t + f == 0) {
    return cond_call<T, F>{true_fn, false_fn}(pred, x...);
  } else {
    auto const bare = []<class C>(auto const& g,
                                  std::type_identity<C>) -> auto const& { // keeps other functions
      if constexpr (leaf_count<C>() > 0) return without_captures(g);
      else return g;
    };
    auto const a = on_captures<n, 0, on_true>(bare(true_fn, std::type_identity<on_true>{}));
    auto const b = on_captures<n, t, on_false>(bare(false_fn, std::type_identity<on_false>{}));
    return call_with(
        [&](auto const&... c) {
          return cond_call<std::remove_const_t<decltype(a)>, std::remove_const_t<decltype(b)>>{a, b}(pred, x..., c...);
        },
        tree_leaves(detail::joined(captured_values(true_fn), captured_values(false_fn))));
  }
}
/// Runs `cond` by the boxed operator. Defined in boxed_cond.hpp.
template <class T, class F, class... X>
auto cond_on_tensors(tensor const& pred, T const& true_fn, F const& false_fn, X const&... x);
} // namespace detail

/// Returns true_fn(x...) if the predicate is true, else false_fn(x...): `cond(pred, true_fn, false_fn, x...)`. `pred`
/// is a bool or a value of rank 0. If the predicate has one value, one branch runs. If it is mapped by `vmap`, both
/// branches run and the results are selected; then neither branch may write into values that existed before, and lanes
/// that did not choose a branch contribute no derivative to it. A traced predicate becomes a node with two functions,
/// whose captured traced values are inputs.
///
/// If the functions use values of transforms, pass them as x or by `closure(f, captured...)`. The result is a value or
/// a flat tuple of values, with the same shapes and dtypes in both branches. A static `grad` stores the functions until
/// the gradient is computed, so let them capture by value. On tensors every interpreter, mode and subclass receives the
/// call as a whole; one without a rule for it throws `missing_rule`.
template <value P, class T, class F, class... X>
constexpr auto cond(P const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  if constexpr (number<P>) {
    constexpr bool watched = detail::is_watched<decltype(detail::with_captures_of(true_fn, false_fn, x...))>();
    if constexpr (watched) return detail::cond_with_captures(pred, true_fn, false_fn, x...);
    else return detail::branch(pred, true_fn, false_fn, x...);
  } else if constexpr (std::is_same_v<P, tensor>) {
    if (numel(pred.sizes()) != 1) refuse::shapes_do_not_match("cond (predicate)", pred.sizes(), {});
    return detail::cond_on_tensors(pred, true_fn, false_fn, x...);
  } else {
    return detail::cond_with_captures(pred, true_fn, false_fn, x...);
  }
}

} // namespace varve

#include <varve/hop/boxed_cond.hpp> // the same operator on tensors
