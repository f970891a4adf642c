// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/krylov.hpp>
#include <varve/implicit/layout.hpp>

namespace varve::implicit {

namespace detail {
/// Returns a solver for the equations, made of what the user passed: a solver of this library, or a function.
template <class S, class T>
constexpr auto linear_method_of(S const& s, T const& t) {
  if constexpr (linear_method<S>) {
    static_assert(is_none<T>, "varve: linear_solve: a solver of this library solves the transposed equations itself");
    return s;
  } else if constexpr (is_none<T>) {
    return linear_solver<S, S>{s, s};
  } else {
    return linear_solver<S, T>{s, t};
  }
}
template <class F, class B, class... C>
consteval bool values_are_accepted() {
  using Y = decltype(std::declval<F const&>()(std::declval<B const&>(), std::declval<C const&>()...));
  if constexpr (captures_nothing<Y, B, C...>()) return are_as_many<Y, B>();
  else return false;
}
template <class F, class B, class S, class... C>
constexpr auto solved_statically(F const& matvec, B const& b, S const& s, std::tuple<C...> const& captures) {
  if constexpr (!are_unknowns<B>()) {
    return b; // one message is enough
  } else if constexpr (!values_are_accepted<F, B, C...>()) {
    return b;
  } else {
    auto const unknowns = layout_of(b);
    using P = flat_function<F, std::remove_const_t<decltype(unknowns)>, std::tuple<C...>>;
    return unknowns.tree(
        linear_system<false>(s, product_by<P>{{matvec, unknowns}}, varve::detail::flat_values(captures), flat(b)));
  }
}
/// Returns a user's function of trees of tensors as one of a vector and of data, which returns one vector.
template <class F, class X, class... C>
erased_function erased_residuals(F const& f, tensor_layout<X> const& unknowns, tensor_data<C...> const& kept) {
  return {[f, unknowns, kept](tensor const& v, tensors const& data) {
    using T = dependent<tensor, F>;
    T const r = flat_tensor(
        varve::detail::call_with([&](auto const&... t) { return f(unknowns.tree(v), t...); }, kept.filled(data)));
    if (!(r.sizes() == v.sizes()))
      refuse::shapes_do_not_match("implicit (residuals and unknowns)", r.sizes(), v.sizes());
    return r.dtype() == v.dtype() ? tensor(r) : tensor(to(r, v.dtype()));
  }};
}
template <class F, class B, class S, class... C>
auto solved_on_tensors(F const& matvec, B const& b, S const& s, std::tuple<C...> const& captures) {
  using T = dependent<tensor, F>;
  auto const right = varve::detail::tensors_of(b);
  tensor_layout const unknowns(right);
  auto const run = [&](auto const&... c) {
    tensors const data = tensor_data<C...>::of(c...);
    erased_function const f = erased_residuals(matvec, unknowns, tensor_data<C...>(c...));
    T const v = flat_tensor(right);
    require_no_captures<T>("linear_solve", f, v, data);
    return unknowns.tree(linear_system<false>(s, product_by<erased_function>{f}, data, v));
  };
  return std::apply(run, captures);
}
} // namespace detail

/// Returns the x for which `matvec(x)` is b (`jax.lax.custom_linear_solve`). `b` and x are trees of the same structure
/// and shapes, and `matvec` must be linear. `solver` is `dense`, `cg`, `bicgstab`, `gmres`, or a function (matvec, b)
/// of vectors, which contain the leaves of a tree one after another; `transpose_solver` then solves the equations of
/// the transposed matrix, and is the same function unless given.
///
/// The result has derivatives by b, and by what `matvec` receives as `closure(matvec, captured...)`, to any order: each
/// costs another solution, with the same solver. Other captured values that transforms see are refused. Solutions that
/// are not found throw `convergence_error`, or are NaN inside of `vmap` and of traced programs.
///
///     auto x = implicit::linear_solve(vv::closure([](auto v, auto a) { return vv::matmul(a, v); }, a), b,
///                                     implicit::cg{});
template <class F, class B, class S = dense, class T = none_t>
constexpr auto linear_solve(F const& matvec, B const& b, S const& solver = {}, T const& transpose_solver = {}) {
  auto const s = detail::linear_method_of(solver, transpose_solver);
  auto const captures = varve::detail::captures_of(matvec);
  auto const& bare = varve::detail::without_captures(matvec);
  if constexpr (varve::detail::tree_is_dynamic<B>() ||
                varve::detail::tree_is_dynamic<std::remove_const_t<decltype(captures)>>())
    return detail::solved_on_tensors(bare, b, s, captures);
  else return detail::solved_statically(bare, b, s, captures);
}

} // namespace varve::implicit
