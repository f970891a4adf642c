// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/op/sum.hpp>
#include <varve/rule/broadcasting.hpp>
#include <varve/transform/scope.hpp>

/// @file
/// `vmap` of a custom function, which is a custom function again. Static values and tensors share this source; a batch
/// object closes and opens their values.
namespace varve::detail {

template <class Y>
constexpr auto as_flat_tuple(Y const& y) {
  if constexpr (is_tree_node<Y>) return std::apply([](auto const&... v) { return std::make_tuple(v...); }, y);
  else return std::tuple<Y>(y);
}
/// Returns the cotangent of an operand from the one that a mapped `backward` returned. For an operand that was not
/// mapped it is the sum over the batch; for a mapped one it has the batch in front.
template <class V, class Flag, class Was, class N>
constexpr auto reduced(operand<V, Flag> const& o, Was const& was, N const& n) {
  if constexpr (is_none<V>) return o.value;
  else
    return choose(
        was, [&](auto const& v) { return materialize(operand<V, Flag>{v, o.batched}, n); },
        [&](auto const& v) { return choose(o.batched, [](auto const& w) { return sum(w, axis<0>); }, identity, v); },
        o.value);
}

/// The forward, context, backward and jvp of a function, each mapped.
template <class F, class Batch>
struct mapped_function {
  [[no_unique_address]] F f;
  Batch batch;

  constexpr auto forward(auto const&... x) const {
    return batch.run([&](auto const& b) {
      return b.open(spread([&](auto const&... v) { return f.forward(v...); }, b.operands(pack(x...))));
    });
  }
  constexpr auto context(auto const& asked, auto const& x, auto const& y) const {
    return batch.run([&](auto const& b) { return b.open_context(f.context(asked, b.operands(x), b.close(y))); });
  }
  constexpr auto backward(auto const& ctx, auto const&... g) const {
    return batch.run([&](auto const& b) {
      auto inner = b.close_context(ctx);
      return b.reduce(f.backward(inner, b.close(g)...));
    });
  }
  constexpr auto jvp(auto const& ctx, auto const&... t) const {
    return batch.run([&](auto const& b) {
      auto inner = b.close_context(ctx);
      return b.open(spread([&](auto const&... v) { return f.jvp(inner, v...); }, b.operands(pack(t...))));
    });
  }
};

/// The batch of static values, at the level that is mapped. The flags say which operands are mapped.
template <class I, class... Flag>
struct static_batch {
  I in;
  constexpr auto run(auto const& body) const { return body(*this); }
  template <class V, class G>
  constexpr auto close_operand(operand<V, G> const& o) const {
    if constexpr (G::value) return in.close_batched(in, o);
    else return o.value;
  }
  template <class... X>
  constexpr auto operands(std::tuple<X...> const& x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::make_tuple(close_operand(operand<X, Flag>{std::get<K>(x), {}})...);
    }(std::index_sequence_for<X...>{});
  }
  constexpr auto close(auto const& y) const {
    return tree_map(
        [&](auto const& v) { return close_operand(operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}}); },
        y);
  }
  constexpr auto open(auto const& y) const {
    return tree_map([&](auto const& v) { return materialize(in.open_batched(v), in.n); }, y);
  }
  constexpr auto open_context(auto const& c) const {
    return c.map([&](auto const& v) { return in.open_batched(v); });
  }
  constexpr auto close_context(auto const& c) const {
    return c.map([&](auto const& o) { return close_operand(o); });
  }
  constexpr auto reduce(auto const& r) const {
    auto const g = as_flat_tuple(r);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::make_tuple(reduced(in.open_batched(std::get<K>(g)), Flag{}, in.n)...);
    }(std::index_sequence_for<Flag...>{});
  }
};

} // namespace varve::detail
