// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/full_like.hpp>
#include <varve/op/sum.hpp>
#include <varve/rule/broadcasting.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// Tag of the higher-order operator behind custom functions (AF-19): every level of a stack sees the call whole.
struct custom_function_t {
  static constexpr auto op_name = "custom_function_call";
};

/// What `setup_context` is given and returns: the values that `backward` and `jvp` will need, and facts about the results. Each call returns another context:
/// `return ctx.save_for_backward(x, y).mark_non_differentiable<1>();`.
/// `N` operands; S, F: types of what is saved for `backward` and for `jvp`; K: what else is kept; Constant: mask of results without derivative; Dirty: mask of operands written to.
template <int N, class S = std::tuple<>, class F = std::tuple<>, class K = std::tuple<>, unsigned Constant = 0, unsigned Dirty = 0>
struct function_context {
  S saved_values{};
  F forward_values{};
  K kept_values{};
  /// Which arguments of `forward` a derivative is asked for, at this level (AF-10).
  std::array<bool, static_cast<std::size_t>(N)> needs_input_grad{};
  bool materialize = true;
  static constexpr unsigned constant_results = Constant, dirty_operands = Dirty;

  /// Operands and results that `backward` reads; the last call counts (AF-4).
  template <value... V>
  constexpr auto save_for_backward(V const&... v) const {
    return function_context<N, std::tuple<V...>, F, K, Constant, Dirty>{std::tuple<V...>(v...), forward_values, kept_values, needs_input_grad, materialize};
  }
  /// ... and those that `jvp` reads (AF-5).
  template <value... V>
  constexpr auto save_for_forward(V const&... v) const {
    return function_context<N, S, std::tuple<V...>, K, Constant, Dirty>{saved_values, std::tuple<V...>(v...), kept_values, needs_input_grad, materialize};
  }
  /// Anything that is no value of the program: sizes, flags, numbers of iterations.
  template <class... V>
  constexpr auto keep(V const&... v) const {
    return function_context<N, S, F, std::tuple<V...>, Constant, Dirty>{saved_values, forward_values, std::tuple<V...>(v...), needs_input_grad, materialize};
  }
  /// Results, by number, that are constants to derivatives (AF-8).
  template <int... I>
  constexpr auto mark_non_differentiable() const {
    return function_context<N, S, F, K, Constant | ((1u << I) | ... | 0u), Dirty>{saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// Arguments, by number, that `forward` wrote into and returned (AF-6).
  template <int... I>
  constexpr auto mark_dirty() const {
    return function_context<N, S, F, K, Constant, Dirty | ((1u << I) | ... | 0u)>{saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// With `false`, a result that no gradient arrives at gives `backward` an undefined tensor in place of zeros (AF-9).
  constexpr auto set_materialize_grads(bool on) const {
    auto r = *this;
    r.materialize = on;
    return r;
  }
  /// What was saved, as tuples.
  constexpr S const& saved() const { return saved_values; }
  constexpr F const& saved_for_forward() const { return forward_values; }
  constexpr K const& kept() const { return kept_values; }
  /// The same context of saved values mapped by `f`.
  template <class G>
  constexpr auto map(G const& f) const {
    auto const each = [&](auto const& t) { return std::apply([&](auto const&... v) { return std::make_tuple(f(v)...); }, t); };
    auto s = each(saved_values);
    auto w = each(forward_values);
    return function_context<N, decltype(s), decltype(w), K, Constant, Dirty>{s, w, kept_values, needs_input_grad, materialize};
  }
};

namespace detail {
template <class Y>
constexpr auto as_flat_tuple(Y const& y) {
  if constexpr (is_tree_node<Y>) return std::apply([](auto const&... v) { return std::make_tuple(v...); }, y);
  else return std::tuple<Y>(y);
}
/// The user's function in the form the rules below call: what `vmap` makes of a function has the same.
template <class Derived>
struct written_function {
  static constexpr auto forward(auto const&... x) { return Derived::forward(x...); }
  static constexpr auto context(auto const& ctx, auto const& inputs, auto const& y) {
    constexpr bool has = requires { Derived::setup_context(ctx, inputs, y); };
    static_assert(has, "varve: a custom function used under a transform, or on static values, must override setup_context(ctx, inputs, output); its forward takes no ctx then");
    if constexpr (has) return Derived::setup_context(ctx, inputs, y);
    else return ctx;
  }
  static constexpr auto backward(auto& ctx, auto const&... g) {
    static_assert(requires { Derived::backward(ctx, g...); }, "varve: a custom function that is differentiated must have backward(ctx, g...)");
    return Derived::backward(ctx, g...);
  }
  static constexpr auto jvp(auto& ctx, auto const&... t) {
    static_assert(requires { Derived::jvp(ctx, t...); }, "varve: a custom function under jvp must have jvp(ctx, t...)");
    return Derived::jvp(ctx, t...);
  }
};

/// `vmap` of a function, as a function: forward, context, backward and jvp each mapped (AF-25). `in` is the mapped level; flags tell which operands are mapped.
template <class F, class I, class... Flag>
struct mapped_function {
  [[no_unique_address]] F f;
  I in;

  template <class... X>
  constexpr auto close_all(std::tuple<X...> const& x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(close_operand(operand<X, Flag>{std::get<K>(x), {}})...); }(std::index_sequence_for<X...>{});
  }
  template <class X, class G>
  constexpr auto close_operand(operand<X, G> const& o) const {
    if constexpr (G::value) return in.close_batched(in, o);
    else return o.value;
  }
  template <class V>
  constexpr auto close_mapped(V const& v) const {
    return close_operand(operand<V, std::true_type>{v, {}});
  }
  constexpr auto open_all(auto const& y) const {
    return tree_map([&](auto const& v) { return materialize(in.open_batched(v), in.n); }, y);
  }
  constexpr auto forward(auto const&... x) const {
    return open_all(std::apply([&](auto const&... v) { return f.forward(v...); }, close_all(std::make_tuple(x...))));
  }
  constexpr auto context(auto const& ctx, auto const& inputs, auto const& y) const {
    return f.context(ctx, close_all(inputs), tree_map([&](auto const& v) { return close_mapped(v); }, y)).map([&](auto const& v) { return in.open_batched(v); });
  }
  constexpr auto backward(auto& ctx, auto const&... g) const {
    auto inner = ctx.map([&](auto const& o) { return close_operand(o); });
    auto const r = as_flat_tuple(f.backward(inner, close_mapped(g)...));
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::make_tuple(reduced<Flag::value>(std::get<K>(r))...); }(std::index_sequence_for<Flag...>{});
  }
  /// A cotangent for an operand that was not mapped is the sum over the batch; one for a mapped operand has the batch in front.
  template <bool WasMapped, class V>
  constexpr auto reduced(V const& v) const {
    if constexpr (is_none<V>) return v;
    else if constexpr (WasMapped) return materialize(in.open_batched(v), in.n);
    else return sum(materialize(in.open_batched(v), in.n), axis<0>);
  }
  constexpr auto jvp(auto& ctx, auto const&... t) const {
    auto inner = ctx.map([&](auto const& o) { return close_operand(o); });
    return open_all(std::apply([&](auto const&... v) { return f.jvp(inner, v...); }, close_all(std::make_tuple(t...))));
  }
};
template <class T>
constexpr bool is_tracked(T const& t) {
  if constexpr (is_none<std::remove_cvref_t<decltype(t.slot)>>) return false;
  else return t.slot != nullptr;
}
template <class D>
constexpr auto tangent_or_zeros(D const& d) {
  if constexpr (!is_none<std::remove_cvref_t<decltype(d.tangent)>>) return d.tangent;
  else if constexpr (value<std::remove_cvref_t<decltype(d.primal)>>) return zeros_like(d.primal);
  else return none;
}
struct vmap_name {
  int vmap;
};
template <class D>
struct vmap_probe : D, vmap_name {};
/// Does a function bring its own `vmap`? Asked by name.
template <class D>
concept has_own_vmap = !requires { &vmap_probe<D>::vmap; };
template <class D>
concept generates_vmap = requires { requires D::generate_vmap_rule; };
template <class D>
constexpr void check_vmap_support() {
  static_assert(!(has_own_vmap<D> && generates_vmap<D>), "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
  static_assert(has_own_vmap<D> || generates_vmap<D>, "varve: a custom function without vmap support was mapped; give it `static constexpr bool generate_vmap_rule = true;` or a static vmap");
}
} // namespace detail

/// What a function's own `vmap` is told: the size of the batch and what random operators do (AF-24).
struct vmap_info {
  index_t batch_size = 0;
  random_policy randomness = random_policy::error;
};

/// A call of a custom function on static values: what interpreters process. Tensors have theirs in `boxed_custom_function.hpp`.
template <class Derived, class F>
struct custom_function_call {
  using tag = custom_function_t;
  using function = Derived;
  [[no_unique_address]] F f;
  static constexpr char const* name() { return custom_function_t::op_name; }

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (top_level<X...> > 0) return innermost(x...).process(*this, x...);
    else return f.forward(x...);
  }
  template <class G>
  static constexpr auto with(G const& g) {
    return custom_function_call<Derived, G>{g};
  }
};
template <class D, class F>
inline constexpr bool is_hop<custom_function_call<D, F>> = true;

/// How each interpreter takes a custom function.
template <>
struct rules<custom_function_t> {
  template <class I, class Op, class... X>
  static constexpr auto grad(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... t) {
      auto const y = op(t.primal...);
      function_context<sizeof...(X)> ctx;
      ctx.needs_input_grad = {detail::is_tracked(t)...};
      auto const c = op.f.context(ctx, std::make_tuple(t.primal...), y);
      static_assert(c.dirty_operands == 0, "varve: a custom function that writes into its operands (mark_dirty) works on tensors only");
      return constants_as_they_are<c.constant_results>(in.record_hop(in, op, y, c, t...), y);
    }(in.open_tracked(x)...);
  }
  /// Cotangents of all operands.
  template <class Op, class C, class X, class... G>
  static constexpr auto pull(Op const& op, C const& ctx, X const&, G const&... g) {
    C mine = ctx;
    auto const r = detail::as_flat_tuple(op.f.backward(mine, g...));
    constexpr bool fits = std::tuple_size_v<std::remove_const_t<decltype(r)>> == std::tuple_size_v<X>;
    static_assert(fits, "varve: backward of a custom function must return one gradient for each argument of forward (none for those that have none)");
    if constexpr (fits) return r;
    else return X{}; // one message is enough
  }
  template <class I, class Op, class... X>
  static constexpr auto jvp(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... d) {
      auto const y = op(d.primal...);
      function_context<sizeof...(X)> ctx;
      ctx.needs_input_grad = {!is_none<std::remove_cvref_t<decltype(d.tangent)>>...};
      auto c = op.f.context(ctx, std::make_tuple(d.primal...), y);
      auto const t = op.f.jvp(c, detail::tangent_or_zeros(d)...);
      return constants_as_they_are<c.constant_results>(tree_map([&](auto const& v, auto const& dv) { return in.close_dual(in, v, dv); }, y, t), y);
    }(in.open_dual(x)...);
  }
  template <class I, class Op, class... X>
  static constexpr auto vmap(I const& in, Op const& op, X const&... x) {
    using D = typename Op::function;
    detail::check_vmap_support<D>();
    return [&]<class... V, class... Flag>(operand<V, Flag> const&... o) {
      auto const close = [&](auto const& v) { return in.close_batched(in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}}); };
      if constexpr (detail::has_own_vmap<D>) {
        // Mapped operands have the batch in front; results must have it there too.
        auto const r = D::vmap(vmap_info{to_dims(in.n)[0]}, std::tuple<Flag...>{}, o.value...);
        return tree_map(close, r.first);
      } else {
        return tree_map(close, op.with(detail::mapped_function<decltype(op.f), I, Flag...>{op.f, in})(o.value...));
      }
    }(in.open_batched(x)...);
  }
  /// A mode is given the call whole.
  template <class I, class Op, class... X>
  static constexpr auto mode(I const& in, Op const& op, X const&... x) {
    return tree_map([&](auto const& v) { return in.close(in, v); }, in.mode->process(op, in.open_plain(x)...));
  }

private:
  template <unsigned Constant, class C, class Y>
  static constexpr auto constants_as_they_are(C const& closed, Y const& y) {
    if constexpr (Constant == 0) return closed;
    else if constexpr (!is_tree_node<Y>) return y;
    else return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const pick = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        if constexpr (Constant >> I & 1) return std::get<I>(y);
        else return std::get<I>(closed);
      };
      return std::make_tuple(pick(std::integral_constant<std::size_t, K>{})...);
    }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  }
};

} // namespace varve
