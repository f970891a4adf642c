// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/flat.hpp>
#include <varve/transform/vjp.hpp>

#include <vector>

namespace varve::optim {

namespace detail {
/// The state of L-BFGS: recent steps with the changes of the gradient along them, and the current loss and gradient.
template <class V>
struct curvature {
  struct pair {
    V step, change;
    double inverse; // 1 / (step . change)
  };
  std::vector<pair> pairs;
  bool known = false; // true if the loss and the gradient belong to the current parameters
  double loss = 0;
  V gradient{};
  int evaluations = 0;
};
} // namespace detail

/// The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (`torch.optim.LBFGS`). Its line search finds
/// points that satisfy the weak Wolfe conditions by bisection, so that every stored pair has positive curvature. The
/// method calls the loss itself: use `lbfgs{}.minimize(loss, p, x, y)`, or `step` for single steps. Where the loss is
/// not finite the line search shortens the step.
struct lbfgs {
  double lr = 1;                  ///< the first step length tried along a direction
  int iterations = 100;           ///< bound on the steps of `minimize`
  int history = 10;               ///< the number of recent steps that are stored
  double tolerance_grad = 1e-7;   ///< bound on the largest gradient element
  double tolerance_change = 1e-9; ///< bound on the decrease of the loss, relative to the loss

  template <class P>
  constexpr auto init(P const& parameters) const {
    return detail::curvature<std::remove_cvref_t<decltype(detail::flat(parameters))>>{};
  }
  /// Makes one step along the quasi-Newton direction. Returns false if no further progress is possible. The parameters
  /// become those of the smallest loss found along the direction; the loss never increases.
  template <class P, class F, class S, class... X>
  constexpr bool step(P& parameters, F const& loss, S& s, X const&... data) const {
    auto const x = detail::flat_start(parameters);
    if (!s.known) s.loss = evaluate(loss, parameters, x, s.gradient, s, data...), s.known = true;
    if (greatest(s.gradient) <= tolerance_grad) return false;
    auto direction = along(s);
    double slope = detail::dot(direction, s.gradient);
    if (!(slope < 0)) // rounding has spoilt the stored pairs
      s.pairs.clear(), direction = -s.gradient, slope = detail::dot(direction, s.gradient);
    auto at = x;
    auto gradient = s.gradient;
    double low = 0, high = 0, length = s.pairs.empty() ? first_length(s.gradient) : lr, found = s.loss;
    bool bounded = false, better = false;
    for (int k = 0; k < 40; ++k) {
      auto const tried = x + direction * length;
      auto there = s.gradient;
      double const value = evaluate(loss, parameters, tried, there, s, data...);
      bool const lower = value <= s.loss + 1e-4 * length * slope;
      if (lower && (!better || value <= found)) at = tried, gradient = there, found = value, better = true;
      if (!lower) high = length, bounded = true;
      else if (detail::dot(there, direction) < 0.9 * slope) low = length;
      else break;
      length = bounded ? (low + high) / 2 : 2 * length;
    }
    if (!better) return false;
    remember(s, at - x, gradient - s.gradient);
    double const gain = s.loss - found;
    s.loss = found, s.gradient = gradient;
    parameters = detail::as_tree(at, parameters);
    return gain > tolerance_change * (found < 0 ? -found : found);
  }
  /// Makes steps until a tolerance is reached, at most `iterations`, and returns the loss.
  template <class P, class F, class... X>
  constexpr double minimize(F const& loss, P& parameters, X const&... data) const {
    auto s = init(parameters);
    for (int k = 0; k < iterations; ++k)
      if (!step(parameters, loss, s, data...)) break;
    return s.loss;
  }

private:
  template <class F, class P, class V, class S, class... X>
  static constexpr double evaluate(F const& loss, P const& like, V const& at, V& gradient, S& s, X const&... data) {
    ++s.evaluations;
    auto const of_vector = [&](auto const& v, auto const&... d) { return loss(detail::unflat(v, like), d...); };
    auto const run = vjp(closure(of_vector, data...), at);
    gradient = std::get<0>(run.second(ones_like(run.first)));
    return detail::as_number(run.first);
  }
  template <class V>
  static constexpr double greatest(V const& v) {
    return detail::as_number(amax(abs(v)));
  }
  /// Returns the length of the first step; only the gradient indicates the scale.
  template <class V>
  constexpr double first_length(V const& gradient) const {
    double const all = detail::as_number(sum(abs(gradient)));
    return all > 1 ? lr / all : lr;
  }
  /// Returns minus the approximate inverse Hessian times the gradient, by two passes over the stored pairs.
  template <class S>
  static constexpr auto along(S const& s) {
    auto q = -s.gradient;
    std::vector<double> part(s.pairs.size(), 0.0); // clang refuses (n) in constant expressions of libstdc++ 12
    for (std::size_t k = s.pairs.size(); k-- > 0;) {
      part[k] = s.pairs[k].inverse * detail::dot(s.pairs[k].step, q);
      q = q - s.pairs[k].change * part[k];
    }
    if (!s.pairs.empty()) {
      auto const& last = s.pairs.back();
      q = q * (1 / (last.inverse * detail::dot(last.change, last.change)));
    }
    for (std::size_t k = 0; k < s.pairs.size(); ++k)
      q = q + s.pairs[k].step * (part[k] - s.pairs[k].inverse * detail::dot(s.pairs[k].change, q));
    return q;
  }
  template <class S, class V>
  constexpr void remember(S& s, V const& step, V const& change) const {
    double const curved = detail::dot(step, change);
    if (!(curved > 1e-12 * detail::dot(change, change))) return;
    if (s.pairs.size() >= static_cast<std::size_t>(history)) s.pairs.erase(s.pairs.begin());
    s.pairs.push_back({step, change, 1 / curved});
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
