// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/erased_function.hpp>
#include <varve/custom/custom_function_call.hpp>

namespace varve {

namespace detail {
template <class D, class... X>
auto apply_to_tensors(X const&... x) {
  using Y = decltype(call_forward<D>(std::declval<dynamic_function_context&>(), x...));
  constexpr bool counted = !is_tree_node<Y> || tuple_node<Y>;
  static_assert(counted, "varve: forward of a custom function returned a vector or an aggregate; backward is given a "
                         "gradient for each result, so that the type must tell their number: return a std::tuple or a "
                         "std::array of tensors");
  if constexpr (counted) {
    using F = erased_function<D, X...>;
    if constexpr (F::combined) require_no_transform(name_of_type<D>.c_str());
    boxed_args tensors;
    auto const take = [&](auto const& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) tensors.push_back(v);
    };
    (tree_for_each(take, x), ...);
    return rebuilt<Y>(call_custom<>(std::make_shared<F>(x...), tensors));
  } else {
    return Y{};
  }
}
} // namespace detail

/// Base of functions with derivatives of their own (`torch.autograd.Function`), for scalars, arrays and tensors:
///
///     struct my_exp : function<my_exp> {
///       static constexpr auto forward(auto x) { return exp(x); }
///       static constexpr auto setup_context(auto ctx, auto const&, auto const& output) {
///         return ctx.save_for_backward(output);
///       }
///       static constexpr auto backward(auto& ctx, auto g) {
///         auto [y] = ctx.saved();
///         return mul(g, y);
///       }
///     };
///     auto y = my_exp::apply(x);
///
/// `forward` returns a value or a tuple of values (for tensors also a `std::array`). `backward(ctx, g...)` receives a
/// gradient for each result. It returns one gradient or a tuple, one for each argument of `forward`; `none` means that
/// there is no gradient. `jvp(ctx, t...)` returns a tangent for each result. `vmap` requires `static constexpr bool
/// generate_vmap_rule = true;` or a function `vmap(info, mapped, x...)`. That function receives operands with the batch
/// in front where `mapped` is true. It returns the pair of the results and of flags that tell which results have the
/// batch in front. `static constexpr bool once_differentiable = true;` refuses derivatives of `backward`. Arguments
/// that are no values (flags, sizes) are passed through. Tensors may lie in trees (`std::vector<tensor>`), whose
/// gradient is a tree of the same form.
template <class Derived>
struct function {
  template <class... X>
  static constexpr auto apply(X const&... x) {
    if constexpr ((detail::holds_tensors<X>() || ...)) return detail::apply_to_tensors<Derived>(x...);
    else return custom_function_call<Derived, detail::written_function<Derived>>{}(detail::plain(x)...);
  }
};

} // namespace varve
