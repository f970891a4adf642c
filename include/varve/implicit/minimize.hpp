// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/root.hpp>
#include <varve/optim/lbfgs.hpp>
#include <varve/optim/least_squares.hpp>

namespace varve::implicit {

namespace detail {
template <class P>
struct loss_of {
  [[no_unique_address]] P p;
  template <class V, class Data, class... Unread>
  constexpr auto operator()(V const& v, Data const& data, Unread const&...) const {
    return p.loss(v, data);
  }
};
/// Residuals of a fit, or the values of their loss: half of the sum of squares.
template <class P>
struct half_of_squares {
  [[no_unique_address]] P p;
  template <class V, class Data>
  constexpr auto vector(V const& v, Data const& data) const {
    return p.vector(v, data);
  }
  template <class V, class Data>
  constexpr auto loss(V const& v, Data const& data) const {
    auto const r = p.vector(v, data);
    return mul(sum(mul(r, r)), 0.5);
  }
};
template <class P>
struct vector_of {
  [[no_unique_address]] P p;
  template <class V, class Data>
  constexpr auto operator()(V const& v, Data const& data) const {
    return p.vector(v, data);
  }
};
/// The gradient of a loss, which is 0 at a minimum.
template <class P>
struct gradient_of {
  P p;
  template <class V, class Data>
  constexpr auto residual(V const& v, Data const& data) const {
    return grad(closure(loss_of<P>{p}, data))(v);
  }
};
/// Finds a minimum by a method that reads numbers, and then makes the gradient 0 by Newton's method.
template <class M, class N>
struct minimizer {
  static constexpr bool solves_equations = true, reads_numbers = true;
  M method;
  [[no_unique_address]] N polish;

  template <class P, class V, class Data>
  constexpr auto solve(gradient_of<P> const& g, V const& start, Data const& data) const {
    static_assert(level_of<V> == 0,
                  "varve: minimize: the method reads numbers, which vmap of static values has none of; "
                  "map tensors, or solve for a root of the gradient");
    V x = start;
    run(g.p, x, data);
    V const y = polish.solve(g, x, data);
    double const before = optim::detail::as_number(g.p.loss(x, data)),
                 after = optim::detail::as_number(g.p.loss(y, data));
    double const slack = kernel::sqrt(rounding_of(dtype_of(start))) * ((before < 0 ? -before : before) + 1e-30);
    if (!(after <= before + slack))
      no_solution_was_found("minimize (Newton's method left the minimum)", 1, after - before);
    return y;
  }

private:
  template <class P, class V, class Data>
  constexpr void run(P const& p, V& x, Data const& data) const {
    (void)method.minimize(loss_of<P>{p}, x, data);
  }
  template <class P, class V, class Data>
  constexpr void run(half_of_squares<P> const& p, V& x, Data const& data) const {
    (void)method.minimize(vector_of<P>{p.p}, x, data);
  }
};
/// What is 0 at a minimum: the gradient of the user's function.
struct gradient_of_loss {
  static constexpr auto name = "minimize";
  template <class Y, class X, class... T>
  static consteval bool accepts() {
    return captures_nothing<Y, X, T...>();
  }
  template <class P>
  static constexpr gradient_of<P> problem(P const& p) {
    return {p};
  }
  template <class F, class X, class... C>
  static erased_function erased(F const& f, tensor_layout<X> const& unknowns, tensor_data<C...> const& kept) {
    return {[f, unknowns, kept](tensor const& v, tensors const& data) -> tensor {
      return varve::detail::as_tensor(varve::detail::plain(
          varve::detail::call_with([&](auto const&... t) { return f(unknowns.tree(v), t...); }, kept.filled(data))));
    }};
  }
};
/// The same for half of the sum of squares of what the user's function returns.
struct gradient_of_squares {
  static constexpr auto name = "least_squares";
  template <class Y, class X, class... T>
  static consteval bool accepts() {
    return captures_nothing<Y, X, T...>();
  }
  template <class P>
  static constexpr gradient_of<half_of_squares<P>> problem(P const& p) {
    return {{p}};
  }
  template <class F, class X, class... C>
  static erased_function erased(F const& f, tensor_layout<X> const& unknowns, tensor_data<C...> const& kept) {
    return {[f, unknowns, kept](tensor const& v, tensors const& data) -> tensor {
      dependent<tensor, F> const r = flat_tensor(
          varve::detail::call_with([&](auto const&... t) { return f(unknowns.tree(v), t...); }, kept.filled(data)));
      return r.dtype() == v.dtype() ? tensor(r) : tensor(to(r, v.dtype()));
    }};
  }
};
template <class Kind, class F, class M, class L>
constexpr auto minimum(F const& f, M const& method, L const& linear) {
  static_assert(linear_method<L>, "varve: minimize: the third argument must be dense, cg, bicgstab, gmres or "
                                  "linear_solver{solve, transpose_solve}");
  using S = minimizer<M, newton<L>>;
  return implicit_function<Kind, F, S, L>{f, S{method, newton<L>{.linear = linear}}, linear};
}
} // namespace detail

/// Returns the function (x0, data...) of the x near x0 that minimizes `loss(x, data...)`, a value of rank 0
/// (`jaxopt.LBFGS` and others). `method` is one of `varve::optim` with a function `minimize(loss, x, data...)`, such as
/// `optim::lbfgs`. Newton's method then makes the gradient 0, so that the derivatives are as exact as the solution; it
/// needs a regular matrix of second derivatives, and solves by `linear`. What is found has the gradient 0; from a start
/// where it is 0, that may be a maximum.
///
/// The minimum has derivatives by the data, to any order, as a root of the gradient. Data and errors are those of
/// `root`. On tensors under `vmap` lanes are solved one after another, because the method reads numbers. For this
/// reason such a function cannot be traced; solve for a root of the gradient in programs that are.
template <class F, class M = optim::lbfgs, class L = dense>
constexpr auto minimize(F const& loss, M const& method = {}, L const& linear = {}) {
  return detail::minimum<detail::gradient_of_loss>(loss, method, linear);
}
/// Returns the function (x0, data...) of the x near x0 that minimizes the sum of the squares of
/// `residuals(x, data...)`, a value or a tree of values. `method` is `optim::levenberg_marquardt` or
/// `optim::gauss_newton`, without a robust loss. Everything else is as for `minimize`. The second derivatives are those
/// of the sum of squares, not their approximation by Gauss.
template <class F, class M = optim::levenberg_marquardt, class L = dense>
constexpr auto least_squares(F const& residuals, M const& method = {}, L const& linear = {}) {
  static_assert(
      requires { method.loss; }, "varve: least_squares: the method must be levenberg_marquardt or gauss_newton");
  if (method.loss.at)
    refuse::argument_is_invalid("least_squares", "the method has a robust loss, whose minimum is another "
                                                 "one; write it as the loss of minimize");
  return detail::minimum<detail::gradient_of_squares>(residuals, method, linear);
}

} // namespace varve::implicit
