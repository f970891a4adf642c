// SPDX-License-Identifier: BSL-1.0
/// @file
/// The price of 1e6 European calls by Black and Scholes, with delta, vega, theta, rho (one reverse pass) and gamma (a
/// derivative of delta), beside the closed formulas of the textbook.
#include "functions.hpp"
#include "measure.hpp"

#include <memory>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t options = 1000000;
constexpr double root_half = 0.70710678118654752440;

constexpr auto greeks = vv::fuse(vv::vmap(bench::greeks, vv::in_dims<0, 0, 0, vv::none, 0>));
constexpr auto stationary_greeks = vv::fuse(vv::vmap(bench::stationary_greeks, vv::in_dims<0, 0, 0, vv::none, 0>));
constexpr auto fast_greeks = vv::fuse(vv::vmap(bench::greeks, vv::in_dims<0, 0, 0, vv::none, 0>), vv::fast_math);

using numbers = array<double, options>;
struct market {
  alignas(64) numbers spot, strike, time, volatility;
  double rate = 0.03;
};
struct results {
  alignas(64) numbers price, delta, gamma, vega, theta, rho;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(market const& m, results& r) {
  greeks.into(r.price, r.delta, r.gamma, r.vega, r.theta, r.rho)(m.spot, m.strike, m.time, m.rate, m.volatility);
}
KEEP fused_stationary(market const& m, results& r) {
  stationary_greeks.into(r.price, r.delta, r.gamma, r.vega, r.theta, r.rho)(m.spot, m.strike, m.time, m.rate,
                                                                            m.volatility);
}
KEEP fused_fast(market const& m, results& r) {
  fast_greeks.into(r.price, r.delta, r.gamma, r.vega, r.theta, r.rho)(m.spot, m.strike, m.time, m.rate, m.volatility);
}
KEEP hand(market const& m, results& r) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  V const one(1.0), half(0.5), root(root_half), rate(m.rate), inverse_root_two_pi(0.39894228040143267794);
  for (index_t i = 0; i + W <= options; i += W) {
    V const s = k::load(m.spot.data + i), x = k::load(m.strike.data + i), t = k::load(m.time.data + i),
            v = k::load(m.volatility.data + i);
    V const root_t = k::sqrt(t), spread = v * root_t;
    V const inverse_spread = one / spread,
            d1 = k::fma<double>(k::fma<double>(half * v, v, rate), t, k::log(V(s / x))) * inverse_spread,
            d2 = d1 - spread;
    V const n1 = k::fma<double>(half, k::erf(V(root * d1)), half),
            n2 = k::fma<double>(half, k::erf(V(root * d2)), half);
    V const density = inverse_root_two_pi * k::exp(V(V(-0.5) * d1 * d1)), discounted = x * k::exp(V(V(-m.rate) * t)),
            in_money = discounted * n2;
    k::store<double>(r.price.data + i, k::fma<double>(s, n1, -in_money));
    k::store<double>(r.delta.data + i, n1);
    k::store<double>(r.gamma.data + i, density * inverse_spread / s);
    V const vega = s * density * root_t;
    k::store<double>(r.vega.data + i, vega);
    k::store<double>(r.theta.data + i, -(k::fma<double>(half * vega, v / t, rate * in_money)));
    k::store<double>(r.rho.data + i, t * in_money);
  }
}
static_assert(options % 16 == 0);

void bench_black_scholes(benchmark::State& state, void (*f)(market const&, results&)) {
  static auto const m = std::make_unique<market>();
  static auto const a = std::make_unique<results>(), b = std::make_unique<results>();
  bench::fill(m->spot, 0, 40, 100), bench::fill(m->strike, 1, 40, 100), bench::fill(m->time, 2, 1.8, 1),
      bench::fill(m->volatility, 3, 0.4, 0.3);
  f(*m, *a), hand(*m, *b);
  bench::agree(state, a->price, b->price, 1e-12), bench::agree(state, a->delta, b->delta, 1e-12),
      bench::agree(state, a->gamma, b->gamma, 1e-12);
  bench::agree(state, a->vega, b->vega, 1e-12), bench::agree(state, a->theta, b->theta, 1e-12),
      bench::agree(state, a->rho, b->rho, 1e-12);
  bench::measure(state, [&] { f(*m, *a); });
}
BENCHMARK_CAPTURE(bench_black_scholes, fused, fused);
BENCHMARK_CAPTURE(bench_black_scholes, fused_stationary, fused_stationary);
BENCHMARK_CAPTURE(bench_black_scholes, fused_fast, fused_fast);
BENCHMARK_CAPTURE(bench_black_scholes, hand, hand);
} // namespace

BENCHMARK_MAIN();
