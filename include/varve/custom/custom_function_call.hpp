// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/mapped_function.hpp>
#include <varve/op/full_like.hpp>
#include <varve/rule/broadcasting.hpp>
#include <varve/trace/proxy.hpp>
#include <varve/transform/scope.hpp>

/// @file
/// Calls of custom functions. On static values a custom function is a higher-order operator like `cond`. On tensors a
/// call is type-erased once (`boxed_custom_function.hpp`) and passed from layer to layer by the same rules.
/// `mapped_function` implements `vmap` for both.
namespace varve {

/// Tag of the higher-order operator for custom functions. Every level of a stack receives the call as a whole.
struct custom_function_t {
  static constexpr auto op_name = "custom_function_call";
};

/// The context that `setup_context` receives and returns: the values that `backward` and `jvp` need, and facts about
/// the results. Each member call returns a new context, as in `return ctx.save_for_backward(x,
/// y).mark_non_differentiable<1>();`.
///
/// `N` is the number of operands. `S` and `F` are the types of the values saved for `backward` and for `jvp`; `K` those
/// of other stored data. `Constant` is a mask of results without derivative, `Dirty` a mask of operands written into.
template <int N, class S = std::tuple<>, class F = std::tuple<>, class K = std::tuple<>, unsigned Constant = 0,
          unsigned Dirty = 0>
struct function_context {
  S saved_values{};
  F forward_values{};
  K kept_values{};
  /// For each argument of `forward`, whether a derivative by it is needed at this level.
  std::array<bool, static_cast<std::size_t>(N)> needs_input_grad{};
  bool materialize = true;
  static constexpr unsigned constant_results = Constant, dirty_operands = Dirty;

  /// Saves operands and results that `backward` reads. The last call counts.
  template <value... V>
  constexpr auto save_for_backward(V const&... v) const {
    return function_context<N, std::tuple<V...>, F, K, Constant, Dirty>{std::tuple<V...>(v...), forward_values,
                                                                        kept_values, needs_input_grad, materialize};
  }
  /// Saves operands and results that `jvp` reads. The last call counts.
  template <value... V>
  constexpr auto save_for_forward(V const&... v) const {
    return function_context<N, S, std::tuple<V...>, K, Constant, Dirty>{saved_values, std::tuple<V...>(v...),
                                                                        kept_values, needs_input_grad, materialize};
  }
  /// Stores data that are not values of the program: sizes, flags, numbers of iterations.
  template <class... V>
  constexpr auto keep(V const&... v) const {
    return function_context<N, S, F, std::tuple<V...>, Constant, Dirty>{
        saved_values, forward_values, std::tuple<V...>(v...), needs_input_grad, materialize};
  }
  /// Marks results, by index, as constants for derivatives.
  template <int... I>
  constexpr auto mark_non_differentiable() const {
    return function_context<N, S, F, K, Constant | ((1u << I) | ... | 0u), Dirty>{
        saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// Marks arguments, by index, that `forward` wrote into and returned.
  template <int... I>
  constexpr auto mark_dirty() const {
    return function_context<N, S, F, K, Constant, Dirty | ((1u << I) | ... | 0u)>{
        saved_values, forward_values, kept_values, needs_input_grad, materialize};
  }
  /// Sets what `backward` receives for a result without gradient: zeros, or an undefined tensor if `on` is false.
  constexpr auto set_materialize_grads(bool on) const {
    auto r = *this;
    r.materialize = on;
    return r;
  }
  /// Returns the values saved for `backward`, as a tuple.
  constexpr S const& saved() const { return saved_values; }
  constexpr F const& saved_for_forward() const { return forward_values; }
  constexpr K const& kept() const { return kept_values; }
  /// Returns the same context with the saved values mapped by `f`.
  template <class G>
  constexpr auto map(G const& f) const {
    auto const each = [&](auto const& t) {
      return std::apply([&](auto const&... v) { return std::make_tuple(f(v)...); }, t);
    };
    auto s = each(saved_values);
    auto w = each(forward_values);
    return function_context<N, decltype(s), decltype(w), K, Constant, Dirty>{s, w, kept_values, needs_input_grad,
                                                                             materialize};
  }
};

namespace detail {
/// True if the derivative of a function is that of the operators that it calls, as for a checkpoint.
template <class F>
inline constexpr bool is_its_text = requires { requires F::is_its_text; };
template <class F, class Batch>
inline constexpr bool is_its_text<mapped_function<F, Batch>> = is_its_text<F>;
/// The user's function in the form that the rules below call. `mapped_function`, which `vmap` creates, has the same
/// form.
template <class Derived>
struct written_function {
  static constexpr auto forward(auto const&... x) { return Derived::forward(x...); }
  static constexpr auto context(auto const& ctx, auto const& inputs, auto const& y) {
    constexpr bool has = requires { Derived::setup_context(ctx, inputs, y); };
    static_assert(has, "varve: a custom function used under a transform, or on static values, must override "
                       "setup_context(ctx, inputs, output); its forward takes no ctx then");
    if constexpr (has) return Derived::setup_context(ctx, inputs, y);
    else return ctx;
  }
  static constexpr auto backward(auto& ctx, auto const&... g) {
    static_assert(
        requires { Derived::backward(ctx, g...); },
        "varve: a custom function that is differentiated must have backward(ctx, g...)");
    return Derived::backward(ctx, g...);
  }
  static constexpr auto jvp(auto& ctx, auto const&... t) {
    static_assert(requires { Derived::jvp(ctx, t...); }, "varve: a custom function under jvp must have jvp(ctx, t...)");
    return Derived::jvp(ctx, t...);
  }
};

/// True if an opened operand takes part in the derivative at this level.
template <class O>
constexpr bool is_wanted(O const& o) {
  if constexpr (requires { o.tangent; }) return !is_none<std::remove_cvref_t<decltype(o.tangent)>>;
  else if constexpr (is_none<std::remove_cvref_t<decltype(o.slot)>>) return false;
  else return o.slot != nullptr;
}
/// Returns a cotangent in the shape and dtype of its operand; a wider one is summed.
template <class D, class V>
constexpr auto fitted(D const& d, V const& v) {
  if constexpr (is_none<D> || !value<V>) return d;
  else return unmatch(d, v);
}
template <class D>
constexpr auto tangent_or_zeros(D const& d) {
  if constexpr (!is_none<std::remove_cvref_t<decltype(d.tangent)>>) return d.tangent;
  else if constexpr (value<std::remove_cvref_t<decltype(d.primal)>>) return detail::constant_zeros(d.primal);
  else return none;
}
struct vmap_name {
  int vmap;
};
template <class D>
struct vmap_probe : D, vmap_name {};
/// True if a function has its own member named `vmap`.
template <class D>
concept has_own_vmap = !requires { &vmap_probe<D>::vmap; };
template <class D>
concept generates_vmap = requires { requires D::generate_vmap_rule; };
template <class D>
constexpr void check_vmap_support() {
  static_assert(!(has_own_vmap<D> && generates_vmap<D>),
                "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
  static_assert(has_own_vmap<D> || generates_vmap<D>,
                "varve: a custom function without vmap support was mapped; give it `static constexpr bool "
                "generate_vmap_rule = true;` or a static vmap");
}
} // namespace detail

/// Information that a function's own `vmap` receives: the batch size and what random operators do.
struct vmap_info {
  index_t batch_size = 0;
  random_policy randomness = random_policy::error;
};

namespace detail {
template <class R>
inline constexpr bool returns_two = requires { requires std::tuple_size<R>::value == 2; };
template <class R>
constexpr void check_two_returns(R const&) {
  static_assert(returns_two<R>,
                "varve: vmap of a custom function must have two returns: the pair (results, which of them are mapped)");
}
/// Returns static results of a function's own `vmap`, each with the batch in front. `mapped` is one flag for all
/// results or one flag per result. `none` or `std::false_type` marks a result without the batch; a flag that is true
/// marks one that has it.
template <class Y, class F, class N>
constexpr auto with_batches(Y const& y, F const& mapped, N const& n) {
  if constexpr (is_tree_node<F>) {
    constexpr bool fits = [] {
      if constexpr (is_tree_node<Y>) return std::tuple_size_v<Y> == std::tuple_size_v<F>;
      else return false;
    }();
    static_assert(fits, "varve: vmap of a custom function returned results and flags of incompatible structure; return "
                        "one flag, or one for each result");
    if constexpr (fits)
      return tree_map([&](auto const& v, auto const& flag) { return with_batches(v, flag, n); }, y, mapped);
    else return y; // one message is enough
  } else if constexpr (is_tree_node<Y>) {
    return tree_map([&](auto const& v) { return with_batches(v, mapped, n); }, y);
  } else if constexpr (is_none<F> || std::is_same_v<F, std::false_type>) {
    return materialize(operand<Y, std::false_type>{y, {}}, n);
  } else {
    if (!mapped)
      refuse::argument_is_invalid("vmap of a custom function",
                                  "static results without the batch are told by their type: none, or std::false_type");
    return y;
  }
}
} // namespace detail

namespace detail {
template <class I>
inline constexpr bool differentiates = false;
template <class Lv>
inline constexpr bool differentiates<grad_interpreter<Lv>> = true;
template <class Lv>
inline constexpr bool differentiates<jvp_interpreter<Lv>> = true;
/// True if a static value, or an element of a tuple, takes part in a derivative.
template <class V>
consteval bool is_differentiated() {
  if constexpr (is_seen<V>) return differentiates<typename V::interpreter> || is_differentiated<decltype(V::value)>();
  else if constexpr (tuple_node<V>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (is_differentiated<E>() || ...);
    }(std::type_identity<elements_of<V>>{});
  else return false;
}
} // namespace detail

/// A call of a custom function on static values, as interpreters process it and as the rules below use it.
/// `boxed_custom_call.hpp` has the counterpart for tensors.
template <class Derived, class F>
struct custom_function_call {
  using tag = custom_function_t;
  [[no_unique_address]] F f;
  static constexpr char const* name() { return custom_function_t::op_name; }
  static constexpr bool is_once_differentiable = requires { requires Derived::once_differentiable; };

  template <class... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (top_level<X...> > 0) return innermost(x...).process(*this, x...);
    else if constexpr ((traced_value<X> || ...) && !detail::is_its_text<F>) return traced_forward(x...);
    else return f.forward(x...);
  }
  /// Runs the forward function alone and marks its operators as the text of a call, because compile-time graphs cannot
  /// contain such functions.
  template <class... X>
  constexpr auto traced_forward(X const&... x) const {
    graph_builder* const b = detail::trace_of_all(x...);
    if (b) b->count_texts(1);
    auto const y = f.forward(x...);
    if (b) b->count_texts(-1);
    return y;
  }
  /// Returns the context that `setup_context` creates from opened operands and plain results.
  template <class Y, class... O>
  constexpr auto context(Y const& y, O const&... o) const {
    function_context<sizeof...(O)> ctx;
    ctx.needs_input_grad = {detail::is_wanted(o)...};
    auto const c = f.context(ctx, std::make_tuple(o.primal...), y);
    static_assert(c.dirty_operands == 0,
                  "varve: a custom function that writes into its operands (mark_dirty) works on tensors only");
    return c;
  }
  template <class I, class C, class Y, class... O>
  constexpr auto record(I const& in, C const& c, Y const& y, O const&... t) const {
    return in.record_hop(in, *this, y, c, t...);
  }
  template <class C, class... O>
  constexpr auto tangent(C const& c, O const&... d) const {
    C mine = c;
    return f.jvp(mine, detail::tangent_or_zeros(d)...);
  }
  /// Returns the results for the caller; those without derivative are not wrapped.
  template <class C, class Y, class Z, class... X>
  static constexpr auto results(C const&, Y const& bare, Z const& closed, X const&...) {
    constexpr unsigned constant = C::constant_results;
    if constexpr (constant == 0) return closed;
    else if constexpr (!is_tree_node<Y>) return bare;
    else
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto const pick = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
          if constexpr (constant >> I & 1) return std::get<I>(bare);
          else return std::get<I>(closed);
        };
        return std::make_tuple(pick(std::integral_constant<std::size_t, K>{})...);
      }(std::make_index_sequence<std::tuple_size_v<Y>>{});
  }
  /// Runs the mapped function. Operands have the batch in front if they are mapped; all results have it in front.
  template <class I, class... V, class... Flag>
  constexpr auto mapped(I const& in, operand<V, Flag> const&... o) const {
    detail::check_vmap_support<Derived>();
    if constexpr (detail::has_own_vmap<Derived>) {
      auto const r = Derived::vmap(vmap_info{to_dims(in.n)[0]}, std::tuple<Flag...>{}, o.value...);
      detail::check_two_returns(r);
      if constexpr (detail::returns_two<std::remove_const_t<decltype(r)>>)
        return detail::with_batches(std::get<0>(r), std::get<1>(r), in.n);
      else return r; // one message is enough
    } else {
      using M = detail::mapped_function<F, detail::static_batch<I, Flag...>>;
      return custom_function_call<Derived, M>{M{f, {in}}}(o.value...);
    }
  }
  template <class Y, class Z, class... X>
  static constexpr auto same_objects(Y const&, Z const& closed, X const&...) {
    return closed;
  }
};
template <class D, class F>
inline constexpr bool is_hop<custom_function_call<D, F>> = true;

/// How each interpreter processes a custom function. Static values and tensors share this source; the call object
/// provides what differs.
template <>
struct rules<custom_function_t> {
  template <class I, class Op, class... X>
  static constexpr auto grad(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... t) {
      auto const y = op(t.primal...);
      auto const c = op.context(y, t...);
      return op.results(c, y, op.record(in, c, y, t...), x...);
    }(in.open_tracked(x)...);
  }
  /// Computes the cotangents of all operands, in their shapes and dtypes.
  template <class Op, class C, class... X, class... G>
  static constexpr auto pull(Op const& op, C const& ctx, std::tuple<X...> const& x, G const&... g) {
    C mine = ctx;
    constexpr bool again =
        Op::is_once_differentiable && (detail::is_differentiated<G>() || ... ||
                                       detail::is_differentiated<std::remove_cvref_t<decltype(ctx.saved())>>());
    static_assert(!again, "varve: a custom function that is once_differentiable was differentiated twice; its backward "
                          "cannot be differentiated");
    auto const r = detail::as_flat_tuple(op.f.backward(mine, g...));
    constexpr bool fits = std::tuple_size_v<std::remove_const_t<decltype(r)>> == sizeof...(X);
    static_assert(fits, "varve: backward of a custom function must return one gradient for each argument of forward "
                        "(none for those that have none)");
    if constexpr (fits) return tree_map([](auto const& d, auto const& v) { return detail::fitted(d, v); }, r, x);
    else return x; // one message is enough
  }
  template <class I, class Op, class... X>
  static constexpr auto jvp(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... d) {
      auto const y = op(d.primal...);
      auto const c = op.context(y, d...);
      return op.results(
          c, y,
          tree_map([&](auto const& v, auto const& dv) { return in.close_dual(in, v, dv); }, y, op.tangent(c, d...)),
          x...);
    }(in.open_dual(x)...);
  }
  template <class I, class Op, class... X>
  static constexpr auto vmap(I const& in, Op const& op, X const&... x) {
    return [&](auto const&... o) {
      auto const y = op.mapped(in, o...);
      return op.same_objects(y,
                             tree_map(
                                 [&](auto const& v) {
                                   return in.close_batched(
                                       in, operand<std::remove_cvref_t<decltype(v)>, std::true_type>{v, {}});
                                 },
                                 y),
                             x...);
    }(in.open_batched(x)...);
  }
  /// Passes the call to a mode as a whole.
  template <class I, class Op, class... X>
  static constexpr auto mode(I const& in, Op const& op, X const&... x) {
    return tree_map([&](auto const& v) { return in.close(in, v); }, in.mode->process(op, in.open_plain(x)...));
  }
};

} // namespace varve
