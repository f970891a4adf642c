// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/linear_solve.hpp>
#include <varve/implicit/newton.hpp>

namespace varve::implicit {

namespace detail {
template <class S>
concept equation_method = requires { requires S::solves_equations; };
/// A solver that the user wrote: a function (f, x0) of trees.
template <class S>
struct tree_solver {
  static constexpr bool reads_numbers = false;
  [[no_unique_address]] S solver;
  template <class P, class V, class Data>
  constexpr auto solve(P const& p, V const& start, Data const& data) const {
    auto const f = [p](auto const& x, auto const& d) { return p.of_tree(x, d); };
    return to(flat(solver(closure(f, data), p.unknowns.tree(start))), type_fact(start));
  }
};
/// The same on tensors, without its type.
struct erased_solver {
  static constexpr bool reads_numbers = false;
  std::function<tensor(tensor const& start, tensors const& data)> run;
  template <class P>
  tensor solve(P const&, tensor const& start, tensors const& data) const {
    return run(start, data);
  }
};

/// The solution x of f(x, data) = 0, found from a start. `P` are the residuals.
template <class P, class S, class L>
struct root_rule {
  static constexpr auto name = "implicit::root";
  static constexpr bool is_linear = false;
  static constexpr bool reads_numbers = S::reads_numbers;
  P p;
  [[no_unique_address]] S solver;
  [[no_unique_address]] L linear;

  template <class V, class Data>
  constexpr auto forward(V const& start, Data const& data) const {
    return solver.solve(p, start, data);
  }
  template <class V, class Data>
  constexpr auto function(V const& x, Data const& data) const {
    return p.residual(x, data);
  }
  template <class V, class Data, class B, bool T>
  constexpr auto solved(V const& x, Data const& data, B const& b, std::bool_constant<T>) const {
    return linear_system<T>(linear, jacobian_of<P>{p}, with_first(x, data), b);
  }
};
} // namespace detail

namespace detail {
/// What an erased call on tensors is made of: the structure of the unknowns, and arguments that are no tensors.
template <class X, class... T>
struct solution_parts {
  tensor_layout<X> unknowns;
  tensor_data<T...> kept;
  solution_parts(tensor_layout<X> const& x, tensor_data<T...> const& d) : unknowns(x), kept(d) {}
};
/// What is 0 at a root: the user's function itself.
struct values_of {
  static constexpr auto name = "root";
  template <class Y, class X, class... T>
  static consteval bool accepts() {
    if constexpr (captures_nothing<Y, X, T...>()) return are_as_many<Y, X>();
    else return false;
  }
  template <class P>
  static constexpr P const& problem(P const& p) {
    return p;
  }
  template <class F, class X, class... C>
  static erased_function erased(F const& f, tensor_layout<X> const& unknowns, tensor_data<C...> const& kept) {
    return erased_residuals(f, unknowns, kept);
  }
};
} // namespace detail

/// The function object that `root`, `fixed_point`, `minimize` and `least_squares` return. `Kind` says what is 0 at the
/// solution.
template <class Kind, class F, class S, class L>
struct implicit_function {
  [[no_unique_address]] F f;
  [[no_unique_address]] S solver;
  [[no_unique_address]] L linear;

  template <class X, class... T>
  constexpr auto operator()(X const& x0, T const&... data) const {
    if constexpr (std::tuple_size_v<decltype(varve::detail::captures_of(f))> == 0) return found(x0, data...);
    else return std::apply([&](auto const&... c) { return found(x0, data..., c...); }, varve::detail::captures_of(f));
  }

private:
  template <class X, class... T>
  constexpr auto found(X const& x0, T const&... data) const {
    auto const& bare = varve::detail::without_captures(f);
    if constexpr (varve::detail::tree_is_dynamic<std::tuple<X, T...>>()) {
      return on_tensors(bare, varve::detail::tensors_of(x0), data...);
    } else if constexpr (!detail::are_unknowns<X>()) {
      return x0; // one message is enough
    } else if constexpr (!Kind::template accepts<decltype(bare(x0, data...)), X, T...>()) {
      return x0;
    } else {
      auto const unknowns = detail::layout_of(x0);
      using function = detail::flat_function<std::remove_cvref_t<decltype(bare)>,
                                             std::remove_const_t<decltype(unknowns)>, std::tuple<T...>>;
      auto const p = Kind::problem(function{bare, unknowns});
      return unknowns.tree(
          detail::solution(detail::root_rule<std::remove_const_t<decltype(p)>, S, L>{p, solver, linear},
                           detail::flat(x0), varve::detail::flat_values(std::tuple<T...>(data...))));
    }
  }
  template <class G, class X, class... T>
  auto on_tensors(G const& bare, X const& x0, T const&... data) const {
    using V = dependent<tensor, G>;
    auto const parts = std::make_shared<detail::solution_parts<X, T...> const>(detail::tensor_layout<X>(x0),
                                                                               detail::tensor_data<T...>(data...));
    detail::tensors const t = detail::tensor_data<T...>::of(data...);
    V const start = detail::flat_tensor(x0);
    detail::require_no_captures<V>(Kind::name, Kind::erased(bare, parts->unknowns, parts->kept), start, t);
    return parts->unknowns.tree(detail::solution_on<V>(on_parts<X, T...>(parts), start, t));
  }

public:
  /// Returns a call on tensors, without its type.
  template <class X, class... T>
  varve::detail::custom_function_ptr
  on_parts(std::shared_ptr<detail::solution_parts<X, T...> const> const& parts) const {
    auto const& bare = varve::detail::without_captures(f);
    auto const p = Kind::problem(Kind::erased(bare, parts->unknowns, parts->kept));
    auto const with = [&](auto const& s) -> varve::detail::custom_function_ptr {
      using R = detail::root_rule<std::remove_const_t<decltype(p)>, std::remove_cvref_t<decltype(s)>, L>;
      return std::make_shared<detail::tensor_solution<R>>(R{p, s, linear}, mark<X, T...>(), parts);
    };
    if constexpr (detail::equation_method<S>) return with(solver);
    else
      return with(detail::erased_solver{[s = solver.solver, bare, parts](tensor const& v, detail::tensors const& d) {
        using V = dependent<tensor, X>;
        auto const now = parts->kept.filled(d);
        auto const at_x = [&](auto const& x) {
          return varve::detail::call_with([&](auto const&... c) { return bare(x, c...); }, now);
        };
        V const x = detail::flat_tensor(varve::detail::tensors_of(s(at_x, parts->unknowns.tree(v))));
        return x.dtype() == v.dtype() ? tensor(x) : tensor(to(x, v.dtype()));
      }});
  }
  /// Identifies calls with arguments of such types in saved programs.
  template <class X, class... T>
  static void const* mark() {
    return &varve::detail::custom_type_mark<std::tuple<implicit_function, X, T...>>;
  }
};

/// Returns the function (x0, data...) of the x near x0 for which f(x, data...) is 0 (`jax.lax.custom_root`). `x` is a
/// tree of floating values, and f returns as many values, in a tree of any structure.
///
/// The solution has derivatives by the data, to any order, from the implicit function theorem; the steps of the solver
/// are not differentiated. x0 has no derivative. Each derivative solves linear equations with the Jacobian of f by x,
/// by `linear`: `dense`, `cg`, `bicgstab`, `gmres`, or `linear_solver{solve, transpose_solve}`. `solver` is `newton`,
/// `bisection`, or a function (f, x0) that returns the solution, in which f is a function of x alone. What a function
/// of yours returns is taken for a solution without a check.
///
/// f is called with data that are constants while it is solved: pass what derivatives are taken by as data, or as
/// `closure(f, captured...)`. Other captured values that transforms see are refused; on tensors one call of f with
/// constants finds them, so that f must be free of effects. A solution that is not found
/// throws `convergence_error`; inside of `vmap` and of traced programs it is NaN. A singular Jacobian throws
/// `value_error` when a derivative is taken, if `linear` is `dense`.
///
///     auto square_root = implicit::root([](auto x, auto a) { return x * x - a; });
///     square_root(1.0, 2.0);                // 1.4142...
///     vv::grad<1>(square_root)(1.0, 2.0);   // 1 / (2 * 1.4142...)
template <class F, class S = newton<>, class L = dense>
constexpr auto root(F const& f, S const& solver = {}, L const& linear = {}) {
  static_assert(detail::linear_method<L>, "varve: root: the third argument must be dense, cg, bicgstab, gmres or "
                                          "linear_solver{solve, transpose_solve}");
  if constexpr (detail::equation_method<S>) return implicit_function<detail::values_of, F, S, L>{f, solver, linear};
  else return implicit_function<detail::values_of, F, detail::tree_solver<S>, L>{f, {solver}, linear};
}

} // namespace varve::implicit
