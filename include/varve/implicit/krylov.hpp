// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/products.hpp>
#include <varve/implicit/newton.hpp>

/// @file
/// Solvers of linear equations that need products only. They are loops of operators, so that they are traced, compiled
/// and mapped; mapped lanes that are finished keep their values.
namespace varve::implicit {

namespace detail {
template <class A, class B>
constexpr auto inner(A const& a, B const& b) {
  return sum(mul(a, b));
}
/// Returns a / b, or 0 where b is 0.
template <class A, class B>
constexpr auto quotient(A const& a, B const& b) {
  auto const none = eq(b, 0);
  return where(none, 0, div(a, where(none, 1, b)));
}
/// Returns the square of the residual that is allowed.
template <class V>
constexpr auto allowed_square(double tolerance, V const& b) {
  double const t = tolerance_or(tolerance, dtype_of(b), 0.5);
  return mul(inner(b, b), t * t);
}
/// Checks a solution by its true residual, which the recurrences of a solver may have lost. Returns it times `scale`.
template <class M, class Data, class V, class S, class K>
constexpr auto checked_solution(char const* name, M const& map, Data const& data, V const& b, V const& x,
                                S const& scale, K const& steps, double tolerance) {
  auto const r = sub(b, map.apply(x, data));
  auto const left = inner(r, r);
  return accepted(name, le(left, mul(allowed_square(tolerance, b), 100)), mul(x, scale), steps, mul(sqrt(left), scale));
}
/// Returns the greatest element of a right side, or 1 if all are 0. Solvers divide by it, because the squares of very
/// great or small elements are infinite or 0.
template <class V>
constexpr auto scale_of(V const& b) {
  auto const size = greatest(b);
  return where(eq(size, 0), 1, size);
}
} // namespace detail

/// The method of conjugate gradients (Hestenes and Stiefel, 1952), for symmetric positive definite matrices
/// (`jax.scipy.sparse.linalg.cg`). Stops when the norm of the residual is below `tolerance` times that of the right
/// side; 0 stands for the square root of the rounding of the dtype. A matrix that is not symmetric shows as a residual
/// that stays, and is refused like other failures (`convergence_error`). One product a step; memory for four vectors.
struct cg {
  static constexpr bool solves_linear_equations = true, is_symmetric = true;
  index_t max_steps = 1000;
  double tolerance = 0;

  template <class M, class Data, class V>
  constexpr auto solve(M const& map, Data const& data, V const& given) const {
    auto const scale = detail::scale_of(given);
    auto const b = div(given, scale);
    auto const zero = varve::detail::constant_zeros(b);
    auto const goes_on = [most = max_steps](auto const&, auto const&, auto const&, auto const& square, auto const& k,
                                            auto const& allowed,
                                            auto const&) { return logical_and(gt(square, allowed), lt(k, most)); };
    auto const step = [map](auto const& x, auto const& r, auto const& p, auto const& square, auto const& k, auto const&,
                            auto const& d) {
      auto const q = map.apply(p, d);
      auto const length = detail::quotient(square, detail::inner(p, q));
      auto const left = sub(r, mul(length, q));
      auto const now = detail::inner(left, left);
      return std::make_tuple(add(x, mul(length, p)), left, add(left, mul(detail::quotient(now, square), p)), now,
                             k + 1);
    };
    auto const end =
        while_loop(goes_on, step, std::make_tuple(add(zero, 0), b, b, detail::inner(b, b), detail::no_steps_like(b)),
                   detail::allowed_square(tolerance, b), data);
    return detail::checked_solution("cg", map, data, b, std::get<0>(end), scale, std::get<4>(end), tolerance);
  }
  template <class M, class Data, class V>
  constexpr auto step(M const& map, Data const& data, V const& b) const {
    return solve(map, data, b);
  }
};

/// The stabilized method of biconjugate gradients (van der Vorst, 1992), for any nonsingular matrix
/// (`jax.scipy.sparse.linalg.bicgstab`). The tolerance is that of `cg`. Two products a step; memory for eight vectors.
struct bicgstab {
  static constexpr bool solves_linear_equations = true;
  index_t max_steps = 1000;
  double tolerance = 0;

  template <class M, class Data, class V>
  constexpr auto solve(M const& map, Data const& data, V const& given) const {
    auto const scale = detail::scale_of(given);
    auto const b = div(given, scale);
    auto const zero = add(varve::detail::constant_zeros(b), 0);
    auto const goes_on = [most = max_steps](auto const&, auto const& r, auto const&, auto const&, auto const&,
                                            auto const& k, auto const& allowed, auto const&, auto const&) {
      return logical_and(gt(detail::inner(r, r), allowed), lt(k, most));
    };
    auto const step = [map](auto const& x, auto const& r, auto const& p, auto const& v, auto const& c, auto const& k,
                            auto const&, auto const& shadow, auto const& d) {
      // v is omega A p of the last step, and c is alpha / (rho omega)
      auto const rho = detail::inner(shadow, r);
      auto const direction = add(r, mul(mul(rho, c), sub(p, v)));
      auto const q = map.apply(direction, d);
      auto const alpha = detail::quotient(rho, detail::inner(shadow, q));
      auto const s = sub(r, mul(alpha, q));
      auto const t = map.apply(s, d);
      auto const omega = detail::quotient(detail::inner(t, s), detail::inner(t, t));
      auto const next = detail::quotient(alpha, mul(rho, omega));
      return std::make_tuple(add(add(x, mul(alpha, direction)), mul(omega, s)), sub(s, mul(omega, t)), direction,
                             mul(omega, q), next, k + 1);
    };
    auto const end =
        while_loop(goes_on, step,
                   std::make_tuple(zero, b, zero, zero, add(varve::detail::constant_zeros(detail::inner(b, b)), 0),
                                   detail::no_steps_like(b)),
                   detail::allowed_square(tolerance, b), b, data);
    return detail::checked_solution("bicgstab", map, data, b, std::get<0>(end), scale, std::get<5>(end), tolerance);
  }
  template <class M, class Data, class V>
  constexpr auto step(M const& map, Data const& data, V const& b) const {
    return solve(map, data, b);
  }
};

/// The method of generalized minimal residuals (Saad and Schultz, 1986), started anew every `Basis` products, for any
/// nonsingular matrix (`jax.scipy.sparse.linalg.gmres`). The tolerance is that of `cg`. Each start makes `Basis`
/// products; memory for `Basis` + 4 vectors. The basis is made orthogonal twice, and small equations of `Basis`
/// unknowns give the step.
template <int Basis = 20>
struct gmres {
  static_assert(Basis > 0, "varve: gmres: the basis has at least one vector");
  static constexpr bool solves_linear_equations = true;
  index_t max_starts = 100;
  double tolerance = 0;

  template <class M, class Data, class V>
  constexpr auto solve(M const& map, Data const& data, V const& given) const {
    auto const scale = detail::scale_of(given);
    auto const b = div(given, scale);
    auto const goes_on = [most = max_starts](auto const&, auto const& square, auto const& k, auto const& allowed,
                                             auto const&,
                                             auto const&) { return logical_and(gt(square, allowed), lt(k, most)); };
    auto const start = [map](auto const& x, auto const&, auto const& k, auto const&, auto const& right, auto const& d) {
      auto const r = sub(right, map.apply(x, d));
      auto const y = add(x, correction(map, d, r));
      auto const left = sub(right, map.apply(y, d));
      return std::make_tuple(y, detail::inner(left, left), k + 1);
    };
    auto const zero = add(varve::detail::constant_zeros(b), 0);
    auto const end = while_loop(goes_on, start, std::make_tuple(zero, detail::inner(b, b), detail::no_steps_like(b)),
                                detail::allowed_square(tolerance, b), b, data);
    return detail::checked_solution("gmres", map, data, b, std::get<0>(end), scale, std::get<2>(end), tolerance);
  }
  template <class M, class Data, class V>
  constexpr auto step(M const& map, Data const& data, V const& b) const {
    return solve(map, data, b);
  }

private:
  using all = ints<Basis>;
  using more = ints<Basis + 1>;
  /// Returns zeros of the given rows, each like x.
  template <class N, class V>
  static constexpr auto rows_of_zeros(N const& n, V const& x) {
    auto const with = [](dims const& s, dims const& rows) {
      dims r = s;
      return r.insert(0, rows[0]);
    };
    return expand(varve::detail::constant_zeros(x), on_dims(with, shape_of(x), n));
  }
  /// Returns a matrix without its first row, and with a new last one.
  template <class A, class R>
  static constexpr auto moved_up(A const& a, R const& row) {
    auto const rest =
        narrow(a, ints<0>{}, ints<1>{}, on_dims([](dims const& s) { return dims{s[0] - 1}; }, shape_of(a)));
    return cat(std::make_tuple(rest, unsqueeze(row, axis<0>)), axis<0>);
  }
  /// Returns the vector that lowers the residual r most, out of the span of r, A r, A A r, ...
  ///
  /// The basis moves up by one row for each new vector, so that it ends in its last row, and is complete after `Basis`
  /// steps. The coefficients of A q in the basis are rows of `h`, which move with it.
  template <class M, class Data, class V>
  static constexpr auto correction(M const& map, Data const& data, V const& r) {
    auto const norm = sqrt(detail::inner(r, r));
    auto const scaled = [](auto const& v, auto const& by) { return detail::quotient(v, by); };
    auto const first = moved_up(rows_of_zeros(more{}, r), scaled(r, norm));
    auto const coefficients = rows_of_zeros(all{}, sum(first, axis<1>));
    auto const step = [map, scaled](auto const& basis, auto const& h, auto const& k, auto const& d) {
      auto const last = squeeze(narrow(basis, ints<0>{}, ints<Basis>{}, ints<1>{}), axis<0>);
      auto const q = map.apply(last, d);
      auto const onto = [&](auto const& v) { return squeeze(matmul(basis, unsqueeze(v, axis<-1>)), axis<-1>); };
      auto const along = [&](auto const& c) { return squeeze(matmul(unsqueeze(c, axis<0>), basis), axis<0>); };
      auto const c = onto(q);
      auto const rest = sub(q, along(c));
      auto const again = onto(rest);
      auto const next = sub(rest, along(again));
      auto const size = sqrt(detail::inner(next, next));
      double const rounding = 10 * detail::rounding_of(dtype_of(next));
      auto const length = where(gt(size, mul(sqrt(detail::inner(q, q)), rounding)), size, 0);
      auto const column = add(c, again); // of the basis before it moves
      auto const without = narrow(column, ints<0>{}, ints<1>{}, all{});
      auto const row = cat(std::make_tuple(without, unsqueeze(length, axis<0>)), axis<0>);
      auto const shifted = cat(
          std::make_tuple(narrow(h, ints<1>{}, ints<1>{}, all{}), mul(narrow(h, ints<1>{}, ints<0>{}, ints<1>{}), 0)),
          axis<1>);
      return std::make_tuple(moved_up(basis, scaled(next, length)), moved_up(shifted, row), k + 1);
    };
    auto const end = while_loop([](auto const&, auto const&, auto const& k, auto const&) { return lt(k, Basis); }, step,
                                std::make_tuple(first, coefficients, detail::no_steps_like(r)), data);
    return combination(std::get<0>(end), std::get<1>(end), norm);
  }
  /// Solves the small least-squares problem: of rows of coefficients, and of a right side that is the first vector.
  template <class A, class H, class N>
  static constexpr auto combination(A const& basis, H const& h, N const& norm) {
    auto const square = matmul(h, transpose(h));
    auto const size = amax(abs(square));
    auto const unit = varve::detail::identity_like(square);
    double const rounding = detail::rounding_of(dtype_of(norm));
    auto const shift = add(mul(size, rounding), (std::numeric_limits<float>::min)());
    auto const right = mul(squeeze(narrow(h, ints<1>{}, ints<0>{}, ints<1>{}), axis<-1>), norm);
    auto const y = varve::solve(add(square, mul(shift, unit)), right, ints<0>{});
    return squeeze(matmul(unsqueeze(y, axis<0>), narrow(basis, ints<0>{}, ints<0>{}, all{})), axis<0>);
  }
};

} // namespace varve::implicit
