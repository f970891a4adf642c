// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/implicit/root.hpp>

namespace varve::implicit {

/// Iterates x <- g(x, data) until the change of each unknown is at most `tolerance` times the unknown; 0 stands for
/// the rounding of the dtype to the power 0.9. Near the solution g must be a contraction.
struct simple_iteration {
  static constexpr bool solves_equations = true, reads_numbers = false;
  index_t max_steps = 1000;
  double tolerance = 0;

  template <class P, class V, class Data>
  constexpr auto solve(P const& p, V const& start, Data const& data) const {
    auto const next = [p](auto const& x, auto const& d) { return sub(x, p.residual(x, d)); };
    return detail::iterated("simple_iteration", next, start, data, max_steps,
                            detail::tolerance_or(tolerance, dtype_of(start), 0.9));
  }
};

/// The acceleration of Anderson (1965) of an iteration x <- g(x, data), with the last `Depth` steps
/// (`jaxopt.AndersonAcceleration`). Each step solves a small least-squares problem. Also converges for many g that are
/// no contraction. It stops when the greatest residual is at most `tolerance` times the greatest unknown, whatever the
/// others are; 0 stands for the same as for `newton`.
template <int Depth = 5>
struct anderson {
  static_assert(Depth > 0, "varve: anderson: the depth is at least 1");
  static constexpr bool solves_equations = true, reads_numbers = false;
  index_t max_steps = 200;
  double tolerance = 0;
  double ridge = 1e-10; ///< added to the small equations, relative to their greatest element

  template <class P, class V, class Data>
  constexpr auto solve(P const& p, V const& start, Data const& data) const {
    double const enough = detail::tolerance_or(tolerance, dtype_of(start), 2.0 / 3);
    auto const scale = detail::greatest(start);
    auto const unknown = add(varve::detail::constant_zeros(scale), std::numeric_limits<double>::infinity());
    auto const none = rows_of_zeros(start);
    auto const goes_on = [most = max_steps](auto const&, auto const&, auto const&, auto const&, auto const& error,
                                            auto const& k,
                                            auto const&...) { return logical_and(gt(error, 0), lt(k, most)); };
    auto const step = [p, enough, least = ridge](auto const& x, auto const& r, auto const& steps, auto const& changes,
                                                 auto const&, auto const& k, auto const& d) {
      auto const move = sub(mixed(steps, changes, r, least), r);
      auto const y = add(x, move);
      auto const next = p.residual(y, d);
      auto const size = detail::greatest(next);
      auto const finite = lt(size, std::numeric_limits<double>::infinity());
      auto const done = logical_and(finite, le(size, mul(detail::greatest(y), enough)));
      return std::make_tuple(y, next, moved_up(steps, move), moved_up(changes, sub(next, r)), where(done, 0, size),
                             k + 1);
    };
    auto const end = while_loop(
        goes_on, step,
        std::make_tuple(start, p.residual(start, data), none, none, unknown, detail::no_steps_like(start)), data);
    return detail::accepted("anderson", eq(std::get<4>(end), 0), std::get<0>(end), std::get<5>(end),
                            detail::greatest(std::get<1>(end)));
  }

private:
  template <class V>
  static constexpr auto rows_of_zeros(V const& x) {
    auto const with = [](dims const& s) {
      dims r = s;
      return r.insert(0, Depth);
    };
    return add(expand(varve::detail::constant_zeros(x), on_dims(with, shape_of(x))), 0);
  }
  template <class A, class R>
  static constexpr auto moved_up(A const& a, R const& row) {
    if constexpr (Depth == 1) return unsqueeze(row, axis<0>);
    else
      return cat(std::make_tuple(narrow(a, ints<0>{}, ints<1>{}, ints<Depth - 1>{}), unsqueeze(row, axis<0>)), axis<0>);
  }
  /// Returns the combination of past steps and changes of the residual whose residual is least: g^T (changes - steps)
  /// with the g that makes r - changes^T g least.
  template <class A, class R>
  static constexpr auto mixed(A const& steps, A const& changes, R const& r, double least) {
    auto const square = matmul(changes, transpose(changes));
    auto const shift = add(mul(amax(abs(square)), least), (std::numeric_limits<float>::min)());
    auto const right = squeeze(matmul(changes, unsqueeze(r, axis<-1>)), axis<-1>);
    auto const g = varve::solve(add(square, mul(shift, varve::detail::identity_like(square))), right, ints<0>{});
    return squeeze(matmul(unsqueeze(g, axis<0>), sub(changes, steps)), axis<0>);
  }
};

namespace detail {
/// x - g(x, data...).
template <class G>
struct change_by {
  [[no_unique_address]] G g;
  template <class X, class... T>
  constexpr auto operator()(X const& x, T const&... data) const {
    return tree_map([](auto const& a, auto const& b) { return sub(a, b); }, x, g(x, data...));
  }
};
} // namespace detail

/// Returns the function (x0, data...) of the x near x0 for which g(x, data...) is x (`jaxopt.FixedPointIteration`,
/// `jaxopt.AndersonAcceleration`). g returns a tree of the structure of x. `solver` is `simple_iteration`, `anderson`,
/// or one for roots of x - g(x, data...), such as `newton`. Derivatives, data and errors are those of `root`.
///
///     auto kepler = implicit::fixed_point([](auto e, auto m, auto eccentricity) { return m + eccentricity *
///     vv::sin(e); }); vv::grad<1>(kepler)(1.0, 1.0, 0.5);
template <class G, class S = simple_iteration, class L = dense>
constexpr auto fixed_point(G const& g, S const& solver = {}, L const& linear = {}) {
  using change = detail::change_by<std::remove_cvref_t<decltype(varve::detail::without_captures(g))>>;
  return varve::detail::call_with(
      [&](auto const&... c) {
        change const f{varve::detail::without_captures(g)};
        if constexpr (sizeof...(c) == 0) return root(f, solver, linear);
        else return root(closure(f, c...), solver, linear);
      },
      varve::detail::captures_of(g));
}

} // namespace varve::implicit
