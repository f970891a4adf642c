// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/rule_call.hpp>
#include <varve/op/mul.hpp>
#include <varve/transform/vjp.hpp>

/// @file
/// The functions of higher-order operators in the forms that interpreters pass to lower levels: on duals, in reverse,
/// on mapped values, or with a mode put back around them.
namespace varve::detail {

template <class D>
constexpr auto full_tangent(D const& d) {
  if constexpr (is_none<decltype(d.tangent)>) return detail::constant_zeros(d.primal);
  else return d.tangent;
}

/// True if there are both traced and untraced values.
template <class... V>
inline constexpr bool some_traced = (traced_value<V> || ...) && !(traced_value<V> && ...);
/// Returns a static value or number as a constant of the trace to which the others belong. Returns other values
/// unchanged.
template <class X, class... O>
constexpr decltype(auto) all_traced(X const& x, O const&... others) {
  if constexpr ((traced_value<O> || ...) && !traced_value<X>) return as_traced(x, others...);
  else return (x);
}

/// Runs a function on duals: maps (primals..., tangents...) to the tuple of the primals and the tangents of its
/// results.
template <class I, class F>
struct dual_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K);
      auto const y = f(in.close_dual(in, nth<K>(x...), nth<K + n>(x...))...);
      return detail::joined(as_tuple(tree_map([&](auto const& v) { return in.open_dual(v).primal; }, y)),
                            as_tuple(tree_map([&](auto const& v) { return full_tangent(in.open_dual(v)); }, y)));
    }(std::make_index_sequence<sizeof...(X) / 2>{});
  }
  template <class Y>
  static constexpr auto as_tuple(Y const& y) {
    if constexpr (is_tree_node<Y>) return y;
    else return std::tuple<Y>(y);
  }
};

/// Runs a function on duals: maps (primals..., tangents...) to the pair (tree of primals, tree of tangents) of its
/// result, which may be any tree.
template <class I, class F>
struct dual_trees_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const y = f(in.close_dual(in, nth<K>(x...), nth<K + sizeof...(K)>(x...))...);
      return std::pair(tree_map([&](auto const& v) { return in.open_dual(v).primal; }, y),
                       tree_map([&](auto const& v) { return full_tangent(in.open_dual(v)); }, y));
    }(std::make_index_sequence<sizeof...(X) / 2>{});
  }
};

/// Maps (operands..., cotangents of the results...) to the tuple of cotangents of the operands, by running the function
/// again in reverse mode. Only the cotangents of used results are read.
template <std::size_t N, class F>
struct pull_fn {
  [[no_unique_address]] F f;
  used_results used{};
  used_in_steps* watch = nullptr; // records what each call finds
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return [&]<std::size_t... K, std::size_t... G>(std::index_sequence<K...>, std::index_sequence<G...>) {
      auto const with_captures = closure([&](auto const&... v) { return first<N>(f, v...); }, nth<N + G>(x...)...);
      auto const run = [&] {
        rerun_scope const told;
        return vjp(with_captures, nth<K>(x...)...);
      }();
      auto const g = tree_unflatten<std::remove_cvref_t<decltype(run.first)>>(std::tie(nth<N + G>(x...)...));
      auto const found = run.second(g, watch ? watch->now : used);
      if (watch) watch->add(run.second.reached());
      return std::apply([&](auto const&... c) { return std::make_tuple(or_zeros(c, nth<K>(x...))...); }, found);
    }(std::make_index_sequence<N>{}, std::make_index_sequence<sizeof...(X) - N>{});
  }
  template <std::size_t M, class G, class... V>
  static constexpr auto first(G const& f, V const&... v) {
    return
        [&]<std::size_t... K>(std::index_sequence<K...>) { return f(nth<K>(v...)...); }(std::make_index_sequence<M>{});
  }
  template <class C, class X>
  static constexpr auto or_zeros(C const& c, X const& x) {
    if constexpr (is_none<C>) return detail::constant_zeros(x);
    else return c;
  }
};

/// Closes the operands by an interpreter without payload, runs a function on them and opens its result. A mode wraps
/// the functions of a call like this.
template <class I, class F>
struct reentering_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    return tree_map([&](auto const& v) { return in.open_plain(v); }, f(in.close(in, x)...));
  }
};
/// Runs a function on operands of which some are mapped. Every result is returned as mapped.
template <class I, class F, class... Flag>
struct batched_fn {
  I in;
  [[no_unique_address]] F f;
  template <class... X>
  constexpr auto operator()(X const&... x) const {
    auto const close = [&](auto flag, auto const& v) {
      if constexpr (decltype(flag)::value)
        return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}});
      else return v;
    };
    return tree_map([&](auto const& v) { return materialize(in.open_batched(all_traced(v, x...)), in.n); },
                    f(close(Flag{}, x)...));
  }
};

} // namespace varve::detail
