// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/linear_system.hpp>
#include <varve/loop/while_loop.hpp>
#include <varve/op/maximum.hpp>

namespace varve::implicit {

namespace detail {
/// Returns the greatest size of the elements of a vector; 0 if there are none.
template <class V>
constexpr auto greatest(V const& v) {
  return varve::detail::greatest_or_zero(abs(v));
}
/// Returns a count of steps in the world of a value.
template <class V>
constexpr auto no_steps_like(V const&) {
  if constexpr (std::is_same_v<V, tensor>) return varve::detail::as_tensor(index_t{0});
  else return index_t{0};
}
/// Iterates x <- next(x, data) until all steps are small. The step of an unknown is small if it is less than
/// `tolerance` times the unknown. Unknowns that are 0 have no scale of their own: the greatest step that is not small
/// decides whether steps still shrink. They end if it is less than `tolerance` times the greatest unknown and does not
/// shrink at all, which is rounding; or if each is at most `tolerance` times its unknown at the start, and it shrinks
/// by less than a half.
template <class N, class V, class Data>
constexpr auto iterated(char const* name, N const& next, V const& start, Data const& data, index_t most,
                        double tolerance) {
  using varve::detail::greatest_or_zero;
  auto const unknown = add(varve::detail::constant_zeros(greatest(start)), std::numeric_limits<double>::infinity());
  auto const goes_on = [most](auto const&, auto const& error, auto const&, auto const& k, auto const&, auto const&) {
    return logical_and(gt(error, 0), lt(k, most));
  };
  auto const step = [next, tolerance](auto const& x, auto const&, auto const& before, auto const& k,
                                      auto const& at_start, auto const& d) {
    auto const y = next(x, d);
    auto const size = abs(sub(y, x)), scale = abs(y);
    auto const rest = where(lt(size, mul(scale, tolerance)), 0, size); // false for infinities
    auto const left = greatest_or_zero(rest);
    auto const rounds = logical_and(lt(left, mul(greatest_or_zero(scale), tolerance)), ge(left, before));
    auto const exceeds = greatest_or_zero(gt(rest, at_start));
    auto const stays = logical_and(eq(exceeds, false), ge(left, mul(before, 0.5)));
    return std::make_tuple(y, where(logical_or(rounds, stays), 0, left), left, k + 1);
  };
  auto const end = while_loop(goes_on, step, std::make_tuple(start, unknown, unknown, no_steps_like(start)),
                              mul(abs(start), tolerance), data);
  return accepted(name, eq(std::get<1>(end), 0), std::get<0>(end), std::get<3>(end), std::get<2>(end));
}
} // namespace detail

/// Newton's method with full steps. `linear` solves the equations of a step: `dense`, or a solver that needs products
/// only. It stops when the change of each unknown is at most `tolerance` times the unknown; 0 stands for the rounding
/// of the dtype to the power 2/3, after which a step that converges quadratically is exact. An unknown that is 0 may
/// also end where rounding keeps it from becoming smaller.
template <class Linear = dense>
struct newton {
  static constexpr bool solves_equations = true, reads_numbers = detail::solver_that_reads_numbers<Linear>;
  index_t max_steps = 50;
  double tolerance = 0;
  [[no_unique_address]] Linear linear{};

  template <class P, class V, class Data>
  constexpr auto solve(P const& p, V const& start, Data const& data) const {
    auto const next = [p, solver = linear](auto const& x, auto const& d) {
      auto const r = p.residual(x, d);
      auto const step = solver.step(detail::jacobian_of<P>{p}, detail::with_first(x, d), r);
      return sub(x, where(eq(detail::greatest(r), 0), 0, step)); // at a root the Jacobian may be singular
    };
    return detail::iterated("newton", next, start, data, max_steps,
                            detail::tolerance_or(tolerance, dtype_of(start), 2.0 / 3));
  }
};

} // namespace varve::implicit
