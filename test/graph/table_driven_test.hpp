// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Fused functions as tables and as code, and how far their results are apart.
#include "../sample/apart.hpp"

#include <cmath>
#include <varve_test.hpp>

// Fused functions that stay tables: the same results as those whose operations are code.
namespace table_driven_test {
namespace vv = varve;
using sample::filled;
using vv::array, vv::index_t, vv::spec, vv::table_driven, vv::tensor;

/// Greatest difference of two results, relative to 1 + |expected|. Of integers and booleans any difference counts as 1.
template <class T>
double apart_numbers(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    double const x = a, y = b;
    return x == y || (x != x && y != y)                  ? 0
           : std::fabs(x - y) / (1 + std::fabs(y)) < 1e9 ? std::fabs(x - y) / (1 + std::fabs(y))
                                                         : 1e9;
  } else {
    return a == b ? 0 : 1;
  }
}
template <class R>
double apart(R const& a, R const& b) {
  if constexpr (std::is_arithmetic_v<R>) {
    return apart_numbers(a, b);
  } else if constexpr (requires { R::size(); }) {
    double worst = 0;
    for (index_t i = 0; i < R::size(); ++i) worst = std::fmax(worst, apart_numbers(a.data[i], b.data[i]));
    return worst;
  } else {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      double worst = 0;
      ((worst = std::fmax(worst, apart(std::get<K>(a), std::get<K>(b)))), ...);
      return worst;
    }(std::make_index_sequence<std::tuple_size_v<R>>{});
  }
}
/// The types of the results are the same, by the parameter.
template <class F, class... X>
double forms_differ(F const& f, X const&... x) {
  return apart(vv::fuse(f, table_driven)(x...), vv::fuse(f)(x...));
}

using floats = array<float, 1003>;
using matrix = array<double, 17, 9>;
inline constexpr auto counts = [] {
  array<float, 40> a{};
  for (index_t k = 0; k < 40; ++k) a[k] = static_cast<float>(k);
  return a;
}();
inline constexpr auto functions = [](auto x, auto y) {
  return vv::exp(-(x * x)) / (1.0 + y * y) + vv::sin(x * y) - vv::log1p(vv::abs(x)) * vv::tanh(y);
};
inline constexpr auto softmax_loss = [](auto w, auto x, auto y) {
  return vv::mean(vv::logsumexp(vv::matmul(x, w), vv::axis<1>) - vv::sum(vv::matmul(x, w) * y, vv::axis<1>));
};
inline constexpr auto logistic = [](auto w, auto x, auto y) {
  auto p = vv::sigmoid(vv::dot(w, x));
  return -(y * vv::log(p) + (1 - y) * vv::log(1 - p));
};
inline constexpr auto rosenbrock = [](auto x) {
  auto a = vv::slice(x, vv::axis<0>, vv::range<1, 41>), b = vv::slice(x, vv::axis<0>, vv::range<0, 40>);
  auto r = a - b * b, q = 1.0 - b;
  return vv::sum(100.0 * r * r + q * q);
};
inline constexpr auto branches = [](auto x, auto w) {
  return vv::cond(
      vv::sum(x) > 0.0, [](auto a, auto b) { return vv::sum(vv::sin(a) * b); },
      [](auto a, auto b) {
        return vv::cond(
            vv::sum(b) > 1.0, [](auto q) { return vv::sum(q * q); }, [](auto q) { return vv::sum(vv::exp(q)); }, a);
      },
      x, w);
};
inline constexpr auto recurrence = [](auto c, auto xs) {
  auto const [last, ys] = vv::scan(
      [](auto u, auto x) {
        auto n = vv::tanh(u * 0.9 + x);
        return std::pair{n, n * n};
      },
      c, xs);
  return vv::sum(last) + vv::sum(ys * ys);
};
inline constexpr auto until = [](auto x, auto w) {
  auto const [y, n] = vv::while_loop<16>(
      [](auto y, auto, auto) { return vv::sum(y * y) < 100.0; },
      [](auto y, auto n, auto w) { return std::tuple{vv::tanh(w) * y + y * y, n + 1.0}; }, std::tuple{x, 0.0}, w);
  return vv::sum(y) + n;
};

inline constexpr auto chain = [](auto const& x) {
  auto y = x * 1.0f;
  for (int k = 0; k < 350; ++k) y = vv::sin(y) * 0.5f + x;
  return y;
};
} // namespace table_driven_test
