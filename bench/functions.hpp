// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Functions whose derivatives are measured, as a user of varve writes them: beside derivatives by hand in the programs
/// of this folder, and beside other packages in peers/.
#include "../examples/support/snavely.hpp"

#include <varve/varve.hpp>

#include <functional>
#include <tuple>
#include <utility>

namespace bench {
using varve::index_t;

/// The valley, with `N` coordinates.
template <index_t N>
constexpr auto rosenbrock = [](auto x) {
  namespace vv = varve;
  auto a = vv::slice(x, vv::axis<0>, vv::range<1, N>), b = vv::slice(x, vv::axis<0>, vv::range<0, N - 1>);
  auto r = a - b * b, q = 1.0 - b;
  return vv::sum(100.0 * r * r + q * q);
};

/// Mean loss of logistic regression over the `Samples` rows of x, as a sum and by a product of matrices.
template <index_t Samples>
constexpr auto logistic_sum = [](auto w, auto x, auto y) {
  namespace vv = varve;
  auto z = vv::sum(x * w, vv::axis<1>);
  return vv::sum(vv::log(1.0 + vv::exp(z)) - y * z) / double(Samples);
};
template <index_t Samples>
constexpr auto logistic_mm = [](auto w, auto x, auto y) {
  namespace vv = varve;
  auto z = vv::mm(x, w);
  return vv::sum(vv::log(1.0 + vv::exp(z)) - y * z) / double(Samples);
};

/// Mean cross entropy of softmax regression.
template <index_t Samples, index_t Classes>
constexpr auto softmax_regression = [](auto w, auto b, auto x, auto y) {
  namespace vv = varve;
  auto const scores = vv::log_softmax(vv::mm(x, w) + b, vv::axis<1>);
  return -vv::sum(scores * vv::one_hot(y, vv::ints<Classes>{})) / double(Samples);
};

/// Mean squared error of a network with two hidden layers.
template <index_t Samples>
constexpr auto mlp = [](auto W1, auto b1, auto W2, auto b2, auto W3, auto b3, auto x, auto y) {
  namespace vv = varve;
  auto h1 = vv::tanh(vv::mm(x, W1) + b1);
  auto h2 = vv::tanh(vv::mm(h1, W2) + b2);
  auto d = vv::mm(h2, W3) + b3 - y;
  return vv::sum(d * d) / double(Samples);
};

/// Steps of a thousandth of the Lorenz system, by Runge and Kutta of order four.
constexpr double lorenz_step = 1e-3;
constexpr auto lorenz = [](auto const& x, auto const& y, auto const& z, auto const& sigma, auto const& rho,
                           auto const& beta) {
  return std::tuple(sigma * (y - x), x * (rho - z) - y, x * y - beta * z);
};
constexpr auto runge_kutta = [](auto const& state, auto const& sigma, auto const& rho, auto const& beta) {
  constexpr double dt = lorenz_step;
  auto const [x, y, z] = state;
  auto const [a1, b1, c1] = lorenz(x, y, z, sigma, rho, beta);
  auto const [a2, b2, c2] = lorenz(x + dt / 2 * a1, y + dt / 2 * b1, z + dt / 2 * c1, sigma, rho, beta);
  auto const [a3, b3, c3] = lorenz(x + dt / 2 * a2, y + dt / 2 * b2, z + dt / 2 * c2, sigma, rho, beta);
  auto const [a4, b4, c4] = lorenz(x + dt * a3, y + dt * b3, z + dt * c3, sigma, rho, beta);
  auto const next =
      std::tuple(x + dt / 6 * (a1 + 2.0 * a2 + 2.0 * a3 + a4), y + dt / 6 * (b1 + 2.0 * b2 + 2.0 * b3 + b4),
                 z + dt / 6 * (c1 + 2.0 * c2 + 2.0 * c3 + c4));
  return std::pair(next, varve::none);
};
/// The last x, with respect to the initial state and the three parameters.
template <index_t Steps, index_t Segment = 0>
constexpr auto last_x = [](auto x, auto y, auto z, auto sigma, auto rho, auto beta) {
  namespace vv = varve;
  return std::get<0>(
      vv::scan<0, Segment>(vv::closure(runge_kutta, sigma, rho, beta), std::tuple(x, y, z), vv::steps<Steps>).first);
};

/// The price of a call by Black and Scholes, with delta, vega, theta, rho (one reverse pass) and gamma (a derivative of
/// delta).
constexpr auto normal = [](auto const& x) { return 0.5 * (1.0 + varve::erf(0.70710678118654752440 * x)); };
constexpr auto moneyness = [](auto spread, auto spot, auto strike, auto time, auto rate, auto volatility) {
  return (varve::log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread;
};
template <auto Seen>
constexpr auto price_by = [](auto spot, auto strike, auto time, auto rate, auto volatility) {
  namespace vv = varve;
  auto const spread = volatility * vv::sqrt(time);
  auto const d1 = Seen(moneyness(spread, spot, strike, time, rate, volatility));
  return spot * normal(d1) - strike * vv::exp(-rate * time) * normal(d1 - spread);
};
constexpr auto price = price_by<std::identity{}>;
constexpr auto delta = varve::grad(price);
/// The same price, told what the closed formulas of its derivatives use: it is greatest over d1 where d1 is the
/// moneyness (spot * density(d1) = strike * e^(-rate * time) * density(d2)), so that its derivative by d1 is 0. Delta
/// is what the first term is multiplied by.
constexpr auto stationary_price = price_by<varve::detach>;
constexpr auto stationary_delta = [](auto spot, auto strike, auto time, auto rate, auto volatility) {
  return normal(moneyness(volatility * varve::sqrt(time), spot, strike, time, rate, volatility));
};

template <auto Price, auto Delta>
constexpr auto greeks_by = [](auto... market) {
  auto const [value, first] = varve::value_and_grad<0, 2, 3, 4>(Price)(market...);
  auto const [by_spot, by_time, by_rate, by_volatility] = first;
  return std::tuple(value, by_spot, varve::grad(Delta)(market...), by_volatility, -by_time, by_rate);
};
constexpr auto greeks = greeks_by<price, delta>;
constexpr auto stationary_greeks = greeks_by<stationary_price, stationary_delta>;

/// The Jacobian of a reprojection error, one row after the other, each by a gradient with respect to twelve numbers:
/// nothing is put together before the end.
constexpr auto reprojection_rows = [](auto const& p, auto const&) {
  namespace vv = varve;
  return [&]<index_t... K>(std::integer_sequence<index_t, K...>) {
    auto const row = [&](auto component) {
      auto const f = [](auto const&... x) { return std::get<decltype(component)::value>(reproject(x...)); };
      return vv::stack(vv::grad(f, vv::argnums<K...>)(vv::select(p, vv::axis<0>, vv::axis<K>)...), vv::axis<0>);
    };
    return vv::stack(
        std::tuple{row(std::integral_constant<std::size_t, 0>{}), row(std::integral_constant<std::size_t, 1>{})},
        vv::axis<0>);
  }(std::make_integer_sequence<index_t, reprojection_size>{});
};

/// The log-likelihood of a mixture of Gaussians in `D` dimensions with a Wishart prior, as in ADBench: of each
/// component the logarithm of its weight, the mean, and the inverse of the covariance's factor (logarithms of the
/// diagonal, then the columns below it); `x` are the points, number by number. Terms that no parameter changes are left
/// out.
template <int D>
struct mixture {
  static constexpr int below = D * (D - 1) / 2, factor = D + below;
  static constexpr double gamma = 1, m = 0; // of the prior
  /// Where the factor's element in this row and column lies.
  static constexpr int at(int row, int column) { return D + column * (2 * D - column - 1) / 2 + row - column - 1; }

  static constexpr auto log_likelihood = [](auto const& weights, auto const& means, auto const& factors,
                                            auto const& x) {
    namespace vv = varve;
    return [&]<int... I, int... L>(std::integer_sequence<int, I...>, std::integer_sequence<int, L...>) {
      auto const column = [](auto const& v) {
        return vv::unsqueeze(v, vv::axis<1>);
      }; // a number of each component, the same for all points
      std::tuple const logarithms{vv::select(factors, vv::axis<1>, vv::axis<I>)...};
      std::tuple const under{vv::select(factors, vv::axis<1>, vv::axis<D + L>)...};
      std::tuple const diagonal{vv::exp(std::get<I>(logarithms))...};
      std::tuple const centered{
          (vv::select(x, vv::axis<0>, vv::axis<I>) - column(vv::select(means, vv::axis<1>, vv::axis<I>)))...};
      auto const row = [&]<int R>(std::integral_constant<int, R>) {
        return [&]<int... J>(std::integer_sequence<int, J...>) {
          return ((column(std::get<R>(diagonal)) * std::get<R>(centered)) + ... +
                  (column(std::get<at(R, J) - D>(under)) * std::get<J>(centered)));
        }(std::make_integer_sequence<int, R>{});
      };
      auto const squared = [](auto const& v) { return v * v; };
      auto const log_determinant = (std::get<I>(logarithms) + ...);
      auto const densities =
          column(weights + log_determinant) - 0.5 * (squared(row(std::integral_constant<int, I>{})) + ...);
      auto const prior =
          0.5 * gamma * gamma * ((squared(std::get<I>(diagonal)) + ...) + (squared(std::get<L>(under)) + ...)) -
          m * log_determinant;
      return vv::sum(vv::logsumexp(densities, vv::axis<0>) - vv::logsumexp(weights, vv::axis<0>)) + vv::sum(prior);
    }(std::make_integer_sequence<int, D>{}, std::make_integer_sequence<int, below>{});
  };
};

/// An arm: every joint turns around its z axis; then comes a link along z, and a quarter turn around x by `quarter`
/// (-1, 0 or 1), as in arms with seven joints of their kind.
struct link {
  double length;
  int quarter;
};
constexpr index_t joints = 7;
constexpr link links[joints] = {{0.34, -1}, {0, 1}, {0.4, 1}, {0, -1}, {0.4, -1}, {0, 1}, {0.126, 0}};
constexpr double tool_offset = 0.08; // along x of the last link

template <class X, class Y = X, class Z = X>
struct point {
  X x;
  Y y;
  Z z;
};
template <class X, class Y, class Z>
point(X, Y, Z) -> point<X, Y, Z>;
/// The place of a point of link `Joint` as seen from the base.
template <int Joint>
constexpr auto from_base(auto const& angles, auto const& p) {
  constexpr link l = links[Joint];
  auto const turned = [&] { // around x, then along z
    if constexpr (l.quarter == 0) return point{p.x, p.y, p.z + l.length};
    else if constexpr (l.quarter > 0) return point{p.x, -p.z, p.y + l.length};
    else return point{p.x, p.z, l.length - p.y};
  }();
  auto const& angle = std::get<Joint>(angles);
  auto const c = varve::cos(angle), s = varve::sin(angle);
  point const r{c * turned.x - s * turned.y, s * turned.x + c * turned.y, turned.z};
  if constexpr (Joint == 0) return r;
  else return from_base<Joint - 1>(angles, r);
}
constexpr auto tool = [](auto const&... angles) {
  auto const& angle = std::get<joints - 1>(std::tie(angles...));
  auto const along = links[joints - 1].length;
  return from_base<joints - 2>(std::tie(angles...),
                               point{varve::cos(angle) * tool_offset, varve::sin(angle) * tool_offset, along});
};
constexpr auto on_array = [](auto const& f, auto const& angles) {
  return [&]<index_t... K>(std::integer_sequence<index_t, K...>) {
    return f(varve::select(angles, varve::axis<0>, varve::axis<K>)...);
  }(std::make_integer_sequence<index_t, joints>{});
};
constexpr auto tool_of_array = [](auto angles) {
  auto const p = on_array(tool, angles);
  return varve::stack(std::tuple{p.x, p.y, p.z}, varve::axis<0>);
};
/// The Jacobian of the tool's position, one row after the other: the gradient of each coordinate.
constexpr auto tool_rows = [](auto angles) {
  auto const row = [&](auto coordinate) {
    auto const f = [coordinate](auto const&... q) { return coordinate(tool(q...)); };
    return varve::stack(on_array(varve::grad<0, 1, 2, 3, 4, 5, 6>(f), angles), varve::axis<0>);
  };
  return varve::stack(std::tuple{row([](auto const& p) { return p.x; }), row([](auto const& p) { return p.y; }),
                                 row([](auto const& p) { return p.z; })},
                      varve::axis<0>);
};
} // namespace bench
