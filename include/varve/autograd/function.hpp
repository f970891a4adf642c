// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/type.hpp>
#include <varve/hop/boxed_custom_function.hpp>

namespace varve {

/// The context of a function whose `forward(ctx, x...)` fills it itself (AF-2): outside of transforms only. `backward(ctx, g...)` finds the saved tensors in `saved()[k]`.
struct dynamic_function_context {
  std::vector<bool> needs_input_grad;
  void save_for_backward(auto const&... t) { saved_ = boxed_args(tensor(t)...); }
  boxed_args const& saved() const { return saved_; }
  void mark_non_differentiable(auto const&... t) { constants_ = boxed_args(tensor(t)...); }
  void mark_dirty(auto const&... t) { dirty_ = boxed_args(tensor(t)...); }
  void set_materialize_grads(bool on) { materialize_ = on; }

  boxed_args saved_, constants_, dirty_;
  bool materialize_ = true;
};

namespace detail {
inline boxed_args boxed_results(auto const& y) {
  boxed_args r;
  tree_for_each(
      [&](auto const& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        if constexpr (is_none<V>) r.push_back(tensor());
        else if constexpr (std::is_same_v<V, tensor>) r.push_back(v);
        else r.push_back(as_tensor(v));
      },
      y);
  return r;
}
template <class Y>
Y rebuilt(boxed_args const& y) {
  int k = 0;
  if constexpr (is_tree_node<Y>) return tree_map([&](auto const&) { return y[k++]; }, Y{});
  else return y[0];
}
/// Does `forward` take the context? Asked only of one that cannot do without: a variadic `forward` takes anything.
template <class D, class... X>
constexpr bool fills_its_context() {
  if constexpr (requires(X const&... x) { D::forward(x...); }) return false;
  else return requires(dynamic_function_context& c, X const&... x) { D::forward(c, x...); };
}
template <class D, class... X>
auto call_forward(dynamic_function_context& c, X const&... x) {
  if constexpr (fills_its_context<D, X...>()) return D::forward(c, x...);
  else return D::forward(x...);
}
/// A user's function with the arguments of one call, erased. `X` are their types; those that are no tensors stay here.
template <class D, class... X>
class erased_function final : public boxed_custom_function {
  static constexpr std::size_t arity = sizeof...(X);
  using all = std::index_sequence_for<X...>;
  template <class V>
  static constexpr bool is_tensor = std::is_same_v<V, tensor>;
  static constexpr std::array<int, arity> place = [] {
    std::array<int, arity> r{};
    int n = 0, k = 0;
    ((r[static_cast<std::size_t>(k++)] = is_tensor<X> ? n++ : -1), ...);
    return r;
  }();

public:
  static constexpr bool combined = fills_its_context<D, X...>();
  explicit erased_function(X const&... x) : args_(x...) {}
  char const* name() const override { return name_of_type<D>.c_str(); }

  /// The arguments of a call with other tensors.
  std::tuple<X...> arguments(boxed_args const& x) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::tuple<X...>(pick<K>(x)...); }(all{});
  }
  using result_type = decltype(call_forward<D>(std::declval<dynamic_function_context&>(), std::declval<X const&>()...));

  boxed_args forward(boxed_args const& x) const override {
    return boxed_results(std::apply([&](auto const&... a) { return call_forward<D>(combined_, a...); }, arguments(x)));
  }
  std::shared_ptr<boxed_context> context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    auto const asked = [&](std::size_t k) { return place[k] >= 0 && needs[static_cast<std::size_t>(place[k])]; };
    if constexpr (combined) {
      auto c = std::make_shared<combined_context>();
      c->ctx = combined_;
      for (std::size_t k = 0; k < arity; ++k) c->ctx.needs_input_grad.push_back(asked(k));
      c->saved = c->ctx.saved_;
      c->ctx.saved_ = boxed_args();
      c->materialize = c->ctx.materialize_;
      for (int k = 0; k < y.size(); ++k)
        for (auto const& t : c->ctx.constants_) c->constant_results |= y[k].is(t) ? 1u << k : 0u;
      for (int k = 0; k < x.size(); ++k)
        for (auto const& t : c->ctx.dirty_) c->dirty_operands |= x[k].is(t) ? 1u << k : 0u;
      require_returned(y, c->ctx.dirty_);
      c->once = once();
      return c;
    } else if constexpr (!requires(function_context<static_cast<int>(arity)> c, std::tuple<X...> in, result_type out) { D::setup_context(c, in, out); }) {
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " is differentiated and must override setup_context(ctx, inputs, output)").c_str());
    } else {
      function_context<static_cast<int>(arity)> ctx;
      for (std::size_t k = 0; k < arity; ++k) ctx.needs_input_grad[k] = asked(k);
      auto const typed = D::setup_context(ctx, arguments(x), rebuilt<result_type>(y));
      using C = std::remove_const_t<decltype(typed)>;
      auto c = std::make_shared<typed_context<C>>(typed);
      c->saved = boxed_results(typed.saved_values);
      for (auto const& t : boxed_results(typed.forward_values)) c->saved.push_back(t);
      c->ctx = C(typed.map([](auto const&) { return tensor(); }));
      c->constant_results = C::constant_results;
      for (std::size_t k = 0; k < arity; ++k) c->dirty_operands |= C::dirty_operands >> k & 1 && place[k] >= 0 ? 1u << place[k] : 0u;
      boxed_args dirty;
      for (int k = 0; k < x.size(); ++k)
        if (c->dirty_operands >> k & 1) dirty.push_back(x[k]);
      require_returned(y, dirty);
      c->materialize = typed.materialize;
      c->once = once();
      return c;
    }
  }
  boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const override {
    if constexpr (has_own_vmap<D>) {
      static_assert(!generates_vmap<D>, "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        std::array<bool, arity> const flags{(place[K] >= 0 && mapped[static_cast<std::size_t>(place[K])])...};
        auto const a = arguments(x);
        auto const r = D::vmap(info, flags, std::get<K>(a)...);
        static_assert(std::tuple_size_v<std::remove_const_t<decltype(r)>> == 2, "varve: vmap of a custom function must have two returns: the pair (results, which of them are mapped)");
        return with_batches(r.first, r.second, info.batch_size);
      }(all{});
    } else if constexpr (generates_vmap<D>) {
      return {};
    } else {
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " has no vmap support; give it `static constexpr bool generate_vmap_rule = true;` or a static vmap").c_str());
    }
  }

private:
  template <std::size_t K>
  auto pick(boxed_args const& x) const {
    if constexpr (place[K] >= 0) return x[place[K]];
    else return std::get<K>(args_);
  }
  static constexpr bool once() {
    if constexpr (requires { D::once_differentiable; }) return D::once_differentiable;
    else return false;
  }
  static void require_returned(boxed_args const& y, boxed_args const& dirty) {
    for (auto const& t : dirty) {
      bool found = false;
      for (auto const& v : y) found = found || v.is(t);
      if (!found) throw autograd_error((std::string("varve: ") + name_of_type<D>.c_str() + ": every operand marked dirty must be returned by forward").c_str());
    }
  }
  /// Results of the function's own `vmap`, each with the batch in front: `mapped` tells which have it already, one flag for all or one for each.
  template <class Y, class F>
  static boxed_args with_batches(Y const& y, F const& mapped, index_t n) {
    boxed_args r;
    std::size_t k = 0;
    for (auto const& t : boxed_results(y)) {
      bool has = true;
      if constexpr (std::is_convertible_v<F, bool>) has = mapped;
      else if constexpr (!is_none<F>) has = mapped[k];
      else has = false;
      ++k;
      using T = std::remove_cvref_t<decltype(t)>;
      r.push_back(has ? T(t) : with_batch(T(t), n, t.dim()));
    }
    return r;
  }
  template <class Self>
  static boxed_args given(boxed_args const& g, Self const& call, int expected_of_backward) {
    boxed_args const r = [&]<std::size_t... K>(std::index_sequence<K...>) { return boxed_results(as_flat_tuple(call(g[static_cast<int>(K)]...))); }(std::make_index_sequence<results>{});
    if (r.size() != expected_of_backward)
      throw autograd_error((std::string("varve: ") + name_of_type<D>.c_str() + ": backward returned an incorrect number of gradients: expected " + std::to_string(expected_of_backward) + ", got " + std::to_string(r.size())).c_str());
    return r;
  }
  static constexpr std::size_t results = [] {
    if constexpr (is_tree_node<result_type>) return std::tuple_size_v<result_type>;
    else return std::size_t{1};
  }();
  /// Of the gradients of all arguments those of the tensors.
  static boxed_args of_tensors(boxed_args const& r) {
    boxed_args t;
    for (std::size_t k = 0; k < arity; ++k)
      if (place[k] >= 0) t.push_back(r[static_cast<int>(k)]);
    return t;
  }
  template <class C>
  struct typed_context : boxed_context {
    C ctx;
    explicit typed_context(C const& c) : ctx(c) {}
    C filled(boxed_args const& from) const {
      int k = 0;
      C c = ctx;
      std::apply([&](auto&... v) { ((v = from[k++]), ...); }, c.saved_values);
      std::apply([&](auto&... v) { ((v = from[k++]), ...); }, c.forward_values);
      return c;
    }
    boxed_args backward(boxed_args const& from, boxed_args const& g) const override {
      C c = filled(from);
      auto const call = [&](auto const&... v) {
        if constexpr (requires { D::backward(c, v...); }) return D::backward(c, v...);
        else return throw missing_rule((std::string("varve: ") + name_of_type<D>.c_str() + " has no backward(ctx, g...) for its results; grad needs it").c_str()), tensor();
      };
      return of_tensors(given(g, call, static_cast<int>(arity)));
    }
    boxed_args jvp(boxed_args const& from, boxed_args const& t) const override {
      C c = filled(from);
      return [&]<std::size_t... K>(std::index_sequence<K...>) -> boxed_args {
        auto const tangent = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
          if constexpr (place[I] >= 0) return t[place[I]];
          else return none;
        };
        if constexpr (requires { D::jvp(c, tangent(std::integral_constant<std::size_t, K>{})...); }) return boxed_results(D::jvp(c, tangent(std::integral_constant<std::size_t, K>{})...));
        else throw missing_rule((std::string("varve: ") + name_of_type<D>.c_str() + " has no jvp(ctx, t...); forward mode needs it").c_str());
      }(all{});
    }
  };
  struct combined_context : boxed_context {
    dynamic_function_context ctx;
    boxed_args backward(boxed_args const& from, boxed_args const& g) const override {
      dynamic_function_context c = ctx;
      c.saved_ = from;
      return of_tensors(given(g, [&](auto const&... v) { return D::backward(c, v...); }, static_cast<int>(arity)));
    }
    boxed_args jvp(boxed_args const&, boxed_args const&) const override { throw missing_rule((std::string("varve: ") + name_of_type<D>.c_str() + " fills its context in forward; jvp needs setup_context").c_str()); }
  };
  std::tuple<X...> args_;
  mutable dynamic_function_context combined_;
};

template <class D, class... X>
auto apply_to_tensors(X const&... x) {
  using F = erased_function<D, X...>;
  if constexpr (F::combined)
    if (layer const* l = this_thread_state.transforms.top; l && std::strcmp(l->kind, "trace") != 0)
      throw transform_error((std::string("varve: ") + name_of_type<D>.c_str() + " is used under a transform and must override setup_context; its forward takes no ctx then").c_str());
  boxed_args tensors;
  auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) tensors.push_back(v);
  };
  (take(x), ...);
  return rebuilt<typename F::result_type>(call_custom<>(std::make_shared<F>(x...), tensors));
}
} // namespace detail

/// Base of functions with derivatives of their own (`torch.autograd.Function`), for scalars, arrays and tensors alike:
///
///     struct my_exp : function<my_exp> {
///       static constexpr auto forward(auto x) { return exp(x); }
///       static constexpr auto setup_context(auto ctx, auto const&, auto const& output) { return ctx.save_for_backward(output); }
///       static constexpr auto backward(auto& ctx, auto g) { auto [y] = ctx.saved(); return mul(g, y); }
///     };
///     auto y = my_exp::apply(x);
///
/// `forward` returns a value or a tuple of values; `backward(ctx, g...)`, given a gradient for each result, returns one gradient or a tuple, one for each argument of
/// `forward` (`none` for those that have none); `jvp(ctx, t...)` returns a tangent for each result. Under `vmap` it needs `static constexpr bool generate_vmap_rule = true;` or
/// `vmap(info, mapped, x...)`, which is given operands with the batch in front where `mapped` says so, and returns the pair (results, which have the batch in front).
/// `static constexpr bool once_differentiable = true;` refuses derivatives of `backward`. Arguments that are no values (flags, sizes) are passed through. AF-1..32.
template <class Derived>
struct function {
  template <class... X>
  static constexpr auto apply(X const&... x) {
    if constexpr ((std::is_same_v<X, tensor> || ...)) return detail::apply_to_tensors<Derived>(x...);
    else return custom_function_call<Derived, detail::written_function<Derived>>{}(detail::plain(x)...);
  }
};

} // namespace varve
