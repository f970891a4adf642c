// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/type.hpp>
#include <varve/custom/boxed_custom_call.hpp>

namespace varve {

/// The context that a function with `forward(ctx, x...)` fills itself; only outside of transforms. `backward(ctx,
/// g...)` reads the saved tensors from `saved()[k]`.
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
/// True if `forward` takes the context. If it can be called without one, it does not: a variadic `forward` accepts
/// anything.
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
/// A user's function with the arguments of one call, type-erased. `X` are their types. Arguments that are no tensors
/// are stored here.
template <class D, class... X>
class erased_function final : public boxed_custom_function {
  static constexpr std::size_t arity = sizeof...(X);
  using all = std::index_sequence_for<X...>;
  static constexpr bool flat = !(is_tree_node<X> || ...);

public:
  static constexpr bool combined = fills_its_context<D, X...>();
  explicit erased_function(X const&... x)
      : args_(with_tensors(std::tuple<X...>(x...), [](tensor const&) { return tensor(); })) {}
  char const* name() const override { return name_of_type<D>.c_str(); }
  bool has_combined_forward() const override { return combined; }
  void const* type() const override { return &custom_type_mark<erased_function>; }
  /// Returns the arguments of the call, with undefined tensors.
  std::tuple<X...> const& constants() const { return args_; }

  /// Returns the arguments of a call with other tensors, which are used in order.
  std::tuple<X...> arguments(boxed_args const& x) const {
    int k = 0;
    return with_tensors(args_, [&](tensor const&) { return x[k++]; });
  }
  using result_type = decltype(call_forward<D>(std::declval<dynamic_function_context&>(), std::declval<X const&>()...));

  boxed_args forward(boxed_args const& x) const override {
    return boxed_results(std::apply([&](auto const&... a) { return call_forward<D>(combined_, a...); }, arguments(x)));
  }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    boxed_context c;
    c.once = once();
    for (auto const& t : x) c.operands.push_back(t.defined() ? meta_of(t) : meta{});
    std::array<bool, arity> const asked = per_argument(needs);
    if constexpr (combined) {
      auto rest = std::make_shared<dynamic_function_context>(std::exchange(combined_, {}));
      rest->needs_input_grad.assign(asked.begin(), asked.end());
      c.saved = rest->saved_;
      c.materialize = rest->materialize_;
      for (int k = 0; k < y.size(); ++k)
        for (auto const& t : rest->constants_) c.constant_results |= y[k].is(t) ? 1u << k : 0u;
      for (int k = 0; k < x.size(); ++k)
        for (auto const& t : rest->dirty_) c.dirty_operands |= x[k].is(t) ? 1u << k : 0u;
      require_returned(y, rest->dirty_);
      rest->saved_ = rest->constants_ = rest->dirty_ = boxed_args();
      c.rest = std::move(rest);
    } else if constexpr (!has_context<arity>) {
      refuse::with<transform_error>((std::string("varve: ") + name_of_type<D>.c_str() +
                                     " is differentiated and must override setup_context(ctx, inputs, output)")
                                        .c_str());
    } else {
      blank_context ctx;
      ctx.needs_input_grad = asked;
      auto const typed = D::setup_context(ctx, arguments(x), rebuilt<result_type>(y));
      using C = std::remove_const_t<decltype(typed)>;
      c.saved = joined(boxed_results(typed.saved_values), boxed_results(typed.forward_values));
      c.constant_results = C::constant_results;
      boxed_args dirty;
      for (int k = 0; k < x.size(); ++k)
        if (C::dirty_operands >> argument_of(k) & 1) {
          c.dirty_operands |= 1u << k;
          dirty.push_back(x[k]);
        }
      require_returned(y, dirty);
      c.materialize = typed.materialize;
      c.rest = std::make_shared<decltype(filled_context(c))>(typed.map(forgotten{}));
    }
    return c;
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override {
    auto filled = filled_context(c);
    auto const call = [&](auto const&... v) {
      if constexpr (requires { D::backward(filled, v...); }) return D::backward(filled, v...);
      else
        return refuse::with<missing_rule>((std::string("varve: ") + name_of_type<D>.c_str() +
                                           " has no backward(ctx, g...) for its results; grad needs it")
                                              .c_str()),
               tensor();
    };
    auto const r = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return as_flat_tuple(call(g[static_cast<int>(K)]...));
    }(std::make_index_sequence<results>{});
    constexpr std::size_t given = std::tuple_size_v<std::remove_const_t<decltype(r)>>;
    bool too_many = false; // undefined gradients beyond the arguments are allowed
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const check = [&](std::size_t k, auto const& v) {
        if (k >= arity)
          for (auto const& t : boxed_results(v)) too_many = too_many || t.defined();
      };
      (check(K, std::get<K>(r)), ...);
    }(std::make_index_sequence<given>{});
    if (given < arity || too_many)
      refuse::with<autograd_error>((std::string("varve: ") + name_of_type<D>.c_str() +
                                    ": backward returned an incorrect number of gradients: expected " +
                                    std::to_string(arity) + ", got " + std::to_string(given))
                                       .c_str());
    boxed_args t; // gradients of tensors, out of those of all arguments
    if constexpr (given >= arity)
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (take_gradient(t, std::get<K>(args_), std::get<K>(r)), ...);
      }(all{});
    fit_gradients<dependent<tensor, D>>(name_of_type<D>.c_str(), c, t);
    return t;
  }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override {
    auto filled = filled_context(c);
    int k = 0;
    boxed_args const r = tangents(filled, with_tensors(args_, [&](tensor const&) { return t[k++]; }, none), all{});
    if (r.size() != static_cast<int>(results))
      refuse::with<transform_error>((std::string("varve: ") + name_of_type<D>.c_str() + ": jvp returned " +
                                     std::to_string(r.size()) + " tangents for " + std::to_string(results) + " results")
                                        .c_str());
    return r;
  }
  boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const override {
    if constexpr (has_own_vmap<D>) {
      static_assert(!generates_vmap<D>,
                    "varve: a custom function has both vmap and generate_vmap_rule; it needs exactly one of them");
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto const a = arguments(x);
        auto const flags = flags_of(mapped);
        auto const r = D::vmap(info, flags, std::get<K>(a)...);
        check_two_returns(r);
        if constexpr (returns_two<std::remove_const_t<decltype(r)>>)
          return with_batches(std::get<0>(r), std::get<1>(r), info.batch_size);
        else return boxed_args();
      }(all{});
    } else if constexpr (generates_vmap<D>) {
      return {};
    } else {
      refuse::with<transform_error>(
          (std::string("varve: ") + name_of_type<D>.c_str() +
           " has no vmap support; give it `static constexpr bool generate_vmap_rule = true;` or a static vmap")
              .c_str());
    }
  }

  /// Returns the number of values that `forward` returns.
  static constexpr std::size_t result_count() { return results; }

private:
  /// Returns the tangents of the results. (Not a lambda: clang 18 crashes on a lambda that tests its captures, read
  /// from a precompiled header.)
  template <class C, class T, std::size_t... K>
  static boxed_args tangents(C& filled, T const& t, std::index_sequence<K...>) {
    if constexpr (requires { D::jvp(filled, std::get<K>(t)...); })
      return boxed_results(D::jvp(filled, std::get<K>(t)...));
    else
      refuse::with<missing_rule>(
          (std::string("varve: ") + name_of_type<D>.c_str() + " has no jvp(ctx, t...); forward mode needs it").c_str());
  }
  /// Returns the tree of arguments with f applied to each tensor. Other leaves are kept, or replaced by `other`.
  template <class F, class... Other>
  static auto with_tensors(std::tuple<X...> const& x, F const& f, Other const&... other) {
    return tree_map(
        [&](auto const& v) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return f(v);
          else if constexpr (sizeof...(Other) > 0) return (other, ...);
          else return v;
        },
        x);
  }
  /// Returns which arguments were mapped: a flag for each, or a tree of flags if some arguments are lists.
  auto flags_of(std::vector<bool> const& mapped) const {
    std::size_t k = 0;
    if constexpr (flat) return per_argument(mapped);
    else return with_tensors(args_, [&](tensor const&) { return static_cast<bool>(mapped[k++]); }, false);
  }
  /// Converts a flag for each tensor to one for each argument.
  std::array<bool, arity> per_argument(std::vector<bool> const& of_tensors) const {
    std::array<bool, arity> r{};
    for (std::size_t k = 0; k < of_tensors.size(); ++k)
      if (of_tensors[k]) r[static_cast<std::size_t>(argument_of(static_cast<int>(k)))] = true;
    return r;
  }
  /// Returns the index of the argument that is, or contains, the given tensor.
  int argument_of(int tensor_nr) const {
    int k = 0, before = 0, at = -1;
    auto const count = [&](auto const& a) {
      tree_for_each([&]<class V>(V const&) { before += std::is_same_v<V, tensor>; }, a);
      if (at < 0 && tensor_nr < before) at = k;
      ++k;
    };
    std::apply([&](auto const&... a) { (count(a), ...); }, args_);
    return at;
  }
  /// Appends the gradients of one argument's tensors, from what `backward` returned for it: a gradient, a tree of them,
  /// or `none`.
  template <class A, class G>
  static void take_gradient(boxed_args& to, A const& argument, G const& g) {
    boxed_args const given = boxed_results(g);
    int k = 0;
    tree_for_each(
        [&]<class V>(V const&) {
          if constexpr (is_tree_node<A> && is_none<G>) {
            if constexpr (std::is_same_v<V, tensor>) to.push_back(tensor());
          } else {
            if (std::is_same_v<V, tensor>) to.push_back(k < given.size() ? given[k] : tensor());
            ++k;
          }
        },
        argument);
  }
  static constexpr bool once() {
    if constexpr (requires { D::once_differentiable; }) return D::once_differentiable;
    else return false;
  }
  static void require_returned(boxed_args const& y, boxed_args const& dirty) {
    for (auto const& t : dirty) {
      bool found = false;
      for (auto const& v : y) found = found || v.is(t);
      if (!found)
        refuse::with<autograd_error>(
            (std::string("varve: ") + name_of_type<D>.c_str() +
             ": every operand marked dirty must be returned by forward; under vmap such a function "
             "needs a vmap of its own")
                .c_str());
    }
  }
  /// Returns the results of the function's own `vmap`, each with the batch in front. `mapped` tells which have it
  /// already, by one flag for all or one for each.
  template <class Y, class F>
  static boxed_args with_batches(Y const& y, F const& mapped, index_t n) {
    boxed_args r;
    if constexpr (std::is_convertible_v<F, bool> || is_none<F>) {
      for (auto const& t : boxed_results(y)) r.push_back(as_batched(t, mapped, n));
    } else {
      boxed_args const all = boxed_results(y);
      boxed_args given;
      tree_for_each(
          [&](auto const& flag) {
            if (given.size() < all.size()) given.push_back(as_batched(all[given.size()], flag, n));
            else given.push_back(tensor());
          },
          mapped);
      if (given.size() != all.size())
        refuse::with<transform_error>(
            (std::string("varve: ") + name_of_type<D>.c_str() + ": vmap returned " + std::to_string(all.size()) +
             " results and " + std::to_string(given.size()) +
             " flags of which are mapped, which is an incompatible structure; return one flag, or one for each result")
                .c_str());
      r = given;
    }
    return r;
  }
  template <class F>
  static tensor as_batched(tensor const& t, F const& mapped, index_t n) {
    using T = dependent<tensor, F>;
    if constexpr (is_none<F>) return with_batch<T>(t, n, t.dim());
    else return static_cast<bool>(mapped) ? t : with_batch<T>(t, n, t.dim());
  }
  static constexpr std::size_t results = [] {
    if constexpr (is_tree_node<result_type>) return std::tuple_size_v<result_type>;
    else return std::size_t{1};
  }();
  using blank_context = function_context<static_cast<int>(arity)>;
  template <std::size_t N>
  static constexpr bool has_context = requires(function_context<static_cast<int>(N)> c, std::tuple<X...> in,
                                               result_type out) { D::setup_context(c, in, out); };
  /// The replacement of a saved value, which the graph stores.
  struct forgotten {
    template <class V>
    tensor operator()(V const&) const {
      return {};
    }
  };
  /// Returns the user's context with the saved values filled in.
  static auto filled_context(boxed_context const& from) {
    if constexpr (combined) {
      auto c = *static_cast<dynamic_function_context const*>(from.rest.get());
      c.saved_ = from.saved;
      return c;
    } else if constexpr (!has_context<arity>) {
      return blank_context();
    } else {
      using C = decltype(D::setup_context(std::declval<blank_context>(), std::declval<std::tuple<X...>>(),
                                          std::declval<result_type>())
                             .map(forgotten{}));
      C c = *static_cast<C const*>(from.rest.get());
      int k = 0;
      std::apply([&](auto&... v) { ((v = from.saved[k++]), ...); }, c.saved_values);
      std::apply([&](auto&... v) { ((v = from.saved[k++]), ...); }, c.forward_values);
      return c;
    }
  }
  std::tuple<X...> args_; // without tensors: the graph stores the function
  mutable dynamic_function_context combined_;
};
} // namespace detail

} // namespace varve
