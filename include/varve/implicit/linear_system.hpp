// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/linear_map.hpp>
#include <varve/implicit/outcome.hpp>
#include <varve/linalg/inverse.hpp>

namespace varve::implicit {

/// Solves linear equations by the whole matrix, found by forward mode: as many products as there are unknowns, and
/// O(n^3). A matrix that is exactly singular throws `value_error`.
struct dense {
  static constexpr bool solves_linear_equations = true;

  template <class M, class Data, class V>
  constexpr auto solve(M const& map, Data const& data, V const& b) const {
    return varve::solve(map.matrix(data, b), b);
  }
  /// Solves without that check: infinities and NaN are left to the caller.
  template <class M, class Data, class V>
  constexpr auto step(M const& map, Data const& data, V const& b) const {
    return varve::solve(map.matrix(data, b), b, ints<0>{});
  }
};

/// A linear solver that the user wrote, and the one for the transposed equations (`jax.lax.custom_linear_solve`). Each
/// is called with a function that multiplies a vector by the matrix, and with the right side, which is a vector. What
/// it returns is taken for a solution without a check.
template <class S, class T>
struct linear_solver {
  static constexpr bool solves_linear_equations = true;
  [[no_unique_address]] S normal;
  [[no_unique_address]] T transposed;

  template <class M, class Data, class V>
  constexpr auto solve(M const& map, Data const& data, V const& b) const {
    return normal(closure([map](auto const& v, auto const& d) { return map.apply(v, d); }, data), b);
  }
  template <class M, class Data, class V>
  constexpr auto step(M const& map, Data const& data, V const& b) const {
    return solve(map, data, b);
  }
  constexpr linear_solver<T, S> transpose() const { return {transposed, normal}; }
};
template <class S, class T>
linear_solver(S, T) -> linear_solver<S, T>;

namespace detail {
/// True for solvers of this library and for pairs of the user's.
template <class S>
concept linear_method = requires { requires S::solves_linear_equations; };
template <class S>
concept symmetric_solver = requires { requires S::is_symmetric; };
template <class S>
concept solver_that_reads_numbers = requires { requires S::reads_numbers; };
/// Returns the solver of the transposed equations.
template <class S>
constexpr auto for_transpose(S const& s) {
  if constexpr (requires { s.transpose(); }) return s.transpose();
  else return s;
}

template <bool Transposed, class S, class M, class Data, class V>
constexpr auto linear_system(S const& s, M const& map, Data const& data, V const& b);

/// The solution x of A x = b.
template <class M, class S>
struct linear_rule {
  static constexpr auto name = "implicit::linear_solve";
  static constexpr bool is_linear = true;
  static constexpr bool reads_numbers = solver_that_reads_numbers<S>;
  [[no_unique_address]] M map;
  [[no_unique_address]] S solver;

  template <class V, class Data>
  constexpr auto forward(V const& b, Data const& data) const {
    return solver.solve(map, data, b);
  }
  template <class V, class Data>
  constexpr auto function(V const& x, Data const& data) const {
    return map.apply(x, data);
  }
  template <class V, class Data, class B, bool T>
  constexpr auto solved(V const&, Data const& data, B const& b, std::bool_constant<T>) const {
    return linear_system<T>(solver, map, data, b);
  }
};
/// Solves A x = b, or with A transposed, so that the result has derivatives by b and by the data.
template <bool Transposed, class S, class M, class Data, class V>
constexpr auto linear_system(S const& s, M const& map, Data const& data, V const& b) {
  if constexpr (Transposed && !symmetric_solver<S>) {
    return linear_system<false>(for_transpose(s), transposed_map(map), data, b);
  } else if constexpr (std::is_same_v<S, dense>) {
    return s.solve(map, data, b); // operators, which have derivatives
  } else {
    return solution(linear_rule<M, S>{map, s}, b, data);
  }
}
} // namespace detail

} // namespace varve::implicit
