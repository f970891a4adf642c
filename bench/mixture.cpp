// SPDX-License-Identifier: BSL-1.0
/// @file
/// The log-likelihood of a Gaussian mixture with a Wishart prior, in the form of ADBench (d = 10, K = 25, 1000 points), and its gradient with respect to weights, means and inverse
/// covariance factors. Numbers of the points lie side by side, so that registers hold several points.
#include "measure.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t d = 10, K = 25, n = 1000, triangle = d * (d + 1) / 2;
constexpr double wishart = 1.0, degrees = 0.0;
/// The place of element (row, column) of a factor among the numbers it is made of: the logarithms of the diagonal, then the columns below it.
constexpr index_t place(index_t row, index_t column) {
  index_t at = d;
  for (index_t c = 0; c < column; ++c) at += d - 1 - c;
  return row == column ? row : at + row - column - 1;
}

template <index_t... I>
constexpr auto sum_of(auto const& f, std::integer_sequence<index_t, I...>) {
  return (f(std::integral_constant<index_t, I>{}) + ...);
}
/// Arguments: the points (d, n), the weights, the means number by number, the factors number by number, each for all components.
constexpr auto likelihood = [](auto const& x, auto const& alphas, auto const&... numbers) {
  auto const all = std::tie(numbers...);
  auto const factor = [&](auto at) -> auto const& { return std::get<d + decltype(at)::value>(all); };
  auto const down = [](auto const& v) { return vv::unsqueeze(v, vv::axis<1>); };
  auto const distance = sum_of(
      [&](auto a) {
        auto const part = [&](auto b) {
          constexpr index_t row = decltype(a)::value, column = decltype(b)::value;
          auto const q = down(factor(std::integral_constant<index_t, place(row, column)>{}));
          auto const away = vv::select(x, vv::axis<0>, vv::axis<column>) - down(std::get<column>(all));
          if constexpr (row == column) return vv::exp(q) * away;
          else return q * away;
        };
        auto const v = sum_of(part, std::make_integer_sequence<index_t, decltype(a)::value + 1>{});
        return v * v;
      },
      std::make_integer_sequence<index_t, d>{});
  auto const logs = sum_of(factor, std::make_integer_sequence<index_t, d>{});
  auto const spread = sum_of([&](auto c) { return vv::exp(factor(c)) * vv::exp(factor(c)); }, std::make_integer_sequence<index_t, d>{});
  auto const below = sum_of(
      [&](auto c) {
        auto const& q = factor(std::integral_constant<index_t, d + decltype(c)::value>{});
        return q * q;
      },
      std::make_integer_sequence<index_t, triangle - d>{});
  auto const prior = vv::sum(0.5 * wishart * wishart * (spread + below) - degrees * logs);
  return vv::sum(vv::logsumexp(down(alphas + logs) - 0.5 * distance, vv::axis<0>)) - double(n) * vv::logsumexp(alphas, vv::axis<0>) + prior;
};
template <int... I>
constexpr auto gradient_of(std::integer_sequence<int, I...>) {
  return vv::fuse(vv::grad<(1 + I)...>(likelihood));
}
constexpr auto gradient = gradient_of(std::make_integer_sequence<int, 1 + d + triangle>{});

struct parameters {
  alignas(64) array<double, K> alphas;
  alignas(64) array<double, K> numbers[d + triangle]; // the means, the factors
};
struct data : parameters {
  alignas(64) array<double, d, n> x;
};

#define KEEP __attribute__((noinline)) void
template <std::size_t... I>
VARVE_INLINE void fused_call(data const& v, parameters& r, std::index_sequence<I...>) {
  gradient.into(r.alphas, r.numbers[I]...)(v.x, v.alphas, v.numbers[I]...);
}
KEEP fused(data const& v, parameters& r) { fused_call(v, r, std::make_index_sequence<d + triangle>{}); }
KEEP hand(data const& v, parameters& r) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  static_assert(n % W == 0);
  alignas(64) static double terms[K][n], total[n];
  V factor[d][d], mean[d];
  double logs[K], greatest_alpha = v.alphas.data[0], sum_of_alphas = 0;
  auto const load = [&](index_t c) {
#pragma GCC unroll 16
    for (index_t a = 0; a < d; ++a) {
      mean[a] = V(v.numbers[a][c]);
#pragma GCC unroll 16
      for (index_t b = 0; b <= a; ++b) factor[a][b] = V(a == b ? std::exp(v.numbers[d + a][c]) : v.numbers[d + place(a, b)][c]);
    }
  };
  for (index_t i = 0; i < n; ++i) total[i] = -1e300;
  for (index_t c = 0; c < K; ++c) {
    load(c);
    logs[c] = 0;
    for (index_t a = 0; a < d; ++a) logs[c] += v.numbers[d + a][c];
    V const first(v.alphas.data[c] + logs[c]);
    for (index_t i = 0; i < n; i += W) {
      V away[d], s(0.0);
#pragma GCC unroll 16
      for (index_t a = 0; a < d; ++a) {
        away[a] = k::load(v.x.data + a * n + i) - mean[a];
        V q = factor[a][0] * away[0];
#pragma GCC unroll 16
        for (index_t b = 1; b <= a; ++b) q = k::fma<double>(factor[a][b], away[b], q);
        s = k::fma<double>(q, q, s);
      }
      V const t = k::fnma<double>(V(0.5), s, first);
      k::store<double>(&terms[c][i], t);
      k::store<double>(&total[i], k::maximum(k::load(&total[i]), t));
    }
  }
  for (index_t i = 0; i < n; i += W) { // terms become shares
    V const m = k::load(&total[i]);
    V s(0.0);
    for (index_t c = 0; c < K; ++c) {
      V const e = k::exp(V(k::load(&terms[c][i]) - m));
      k::store<double>(&terms[c][i], e);
      s += e;
    }
    k::store<double>(&total[i], V(1.0) / s);
  }
  for (index_t c = 0; c < K; ++c) greatest_alpha = v.alphas.data[c] > greatest_alpha ? v.alphas.data[c] : greatest_alpha;
  for (index_t c = 0; c < K; ++c) sum_of_alphas += std::exp(v.alphas.data[c] - greatest_alpha);
  for (index_t c = 0; c < K; ++c) {
    load(c);
    V by_factor[d][d], by_mean[d], shares(0.0);
#pragma GCC unroll 16
    for (index_t a = 0; a < d; ++a) {
      by_mean[a] = V(0.0);
#pragma GCC unroll 16
      for (index_t b = 0; b <= a; ++b) by_factor[a][b] = V(0.0);
    }
    for (index_t i = 0; i < n; i += W) {
      V const share = k::load(&terms[c][i]) * k::load(&total[i]);
      shares += share;
      V away[d];
#pragma GCC unroll 16
      for (index_t a = 0; a < d; ++a) {
        away[a] = k::load(v.x.data + a * n + i) - mean[a];
        V q = factor[a][0] * away[0];
#pragma GCC unroll 16
        for (index_t b = 1; b <= a; ++b) q = k::fma<double>(factor[a][b], away[b], q);
        V const e = q * share;
        by_mean[a] += e; // of the scaled distance; the factors come afterwards
#pragma GCC unroll 16
        for (index_t b = 0; b <= a; ++b) by_factor[a][b] = k::fma<double>(e, away[b], by_factor[a][b]);
      }
    }
    double const share = k::reduce_sum<double>(shares);
    r.alphas.data[c] = share - double(n) * std::exp(v.alphas.data[c] - greatest_alpha) / sum_of_alphas;
    double e[d], f[d][d];
    for (index_t a = 0; a < d; ++a) e[a] = k::reduce_sum<double>(by_mean[a]);
    for (index_t a = 0; a < d; ++a)
      for (index_t b = 0; b <= a; ++b) f[a][b] = a == b ? std::exp(v.numbers[d + a][c]) : v.numbers[d + place(a, b)][c];
    for (index_t b = 0; b < d; ++b) {
      double s = 0;
      for (index_t a = b; a < d; ++a) s += f[a][b] * e[a];
      r.numbers[b][c] = s;
    }
    for (index_t a = 0; a < d; ++a)
      for (index_t b = 0; b <= a; ++b) {
        double const g = k::reduce_sum<double>(by_factor[a][b]), q = f[a][b];
        r.numbers[d + place(a, b)][c] = a == b ? share - g * q + wishart * wishart * q * q - degrees : wishart * wishart * q - g;
      }
  }
}

void bench_mixture(benchmark::State& state, void (*f)(data const&, parameters&)) {
  static data v;
  static parameters a, b;
  bench::fill(v.alphas, 0), bench::fill(v.x, 3, 3);
  for (index_t c = 0; c < d + triangle; ++c) bench::fill(v.numbers[c], static_cast<double>(c), c < d ? 2 : 0.6);
  fused(v, a), hand(v, b);
  bench::agree(state, a.alphas, b.alphas, 1e-11);
  for (index_t c = 0; c < d + triangle; ++c) bench::agree(state, a.numbers[c], b.numbers[c], 1e-11);
  bench::measure(state, [&] { f(v, a); });
}
BENCHMARK_CAPTURE(bench_mixture, fused, fused);
BENCHMARK_CAPTURE(bench_mixture, hand, hand);
} // namespace

BENCHMARK_MAIN();
