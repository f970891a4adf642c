// SPDX-License-Identifier: BSL-1.0
/// @file
/// The gradient of a mixture of Gaussians' log-likelihood, as in ADBench: 25 components in ten dimensions, 1000 points,
/// a Wishart prior; with respect to all weights, means and factors.
#include "functions.hpp"
#include "measure.hpp"

#include <limits>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr int size = 10;
constexpr index_t components = 25, samples = 1000;
using mixture = bench::mixture<size>;
constexpr auto gradient = vv::fuse(vv::grad<0, 1, 2>(mixture::log_likelihood));
constexpr auto fast_gradient = vv::fuse(vv::grad<0, 1, 2>(mixture::log_likelihood), vv::fast_math);

struct parameters {
  alignas(64) array<double, components> weights;
  alignas(64) array<double, components, size> means;
  alignas(
      64) array<double, components, mixture::factor> factors; // logarithms of the diagonal, then the columns below it
};
struct data : parameters {
  alignas(64) array<double, size, samples> x;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(data const& d, parameters& r) {
  gradient.into(r.weights, r.means, r.factors)(d.weights, d.means, d.factors, d.x);
}
KEEP fused_fast(data const& d, parameters& r) {
  fast_gradient.into(r.weights, r.means, r.factors)(d.weights, d.means, d.factors, d.x);
}

/// One pass over the points for the logarithms of all densities, one for their softmax, one for the gradient: rows of
/// the factor's product are computed twice rather than kept.
KEEP hand(data const& d, parameters& r) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  static_assert(samples % W == 0);
  alignas(64) static double density[components][samples];
  V const zero(0.0);
  auto const rows = [&](index_t c, double const* diagonal, index_t i, V* centered,
                        V* q) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int j = 0; j < size; ++j) {
      centered[j] = k::load(d.x.data + j * samples + i) - V(d.means.data[c * size + j]);
      q[j] = V(diagonal[j]) * centered[j];
    }
#pragma GCC unroll 16
    for (int j = 0; j < size; ++j)
#pragma GCC unroll 16
      for (int row = j + 1; row < size; ++row)
        q[row] = k::fma<double>(V(d.factors.data[c * mixture::factor + mixture::at(row, j)]), centered[j], q[row]);
  };
  double diagonal[components][size], log_weights = 0, greatest = -std::numeric_limits<double>::infinity();
  for (index_t c = 0; c < components; ++c) {
    double const* const f = d.factors.data + c * mixture::factor;
    double sum = d.weights.data[c];
    for (int j = 0; j < size; ++j) diagonal[c][j] = k::exp(f[j]), sum += f[j];
    for (index_t i = 0; i < samples; i += W) {
      V centered[size], q[size], squares = zero;
      rows(c, diagonal[c], i, centered, q);
#pragma GCC unroll 16
      for (int j = 0; j < size; ++j) squares = k::fma<double>(q[j], q[j], squares);
      k::store<double>(density[c] + i, k::fma<double>(V(-0.5), squares, V(sum)));
    }
    greatest = std::fmax(greatest, d.weights.data[c]);
  }
  for (index_t c = 0; c < components; ++c) log_weights += std::exp(d.weights.data[c] - greatest);
  for (index_t i = 0; i < samples; i += W) {
    V most = k::load(density[0] + i), sum = zero;
    for (index_t c = 1; c < components; ++c) most = k::maximum(most, k::load(density[c] + i));
    for (index_t c = 0; c < components; ++c) {
      V const e = k::exp(V(k::load(density[c] + i) - most));
      k::store<double>(density[c] + i, e);
      sum += e;
    }
    V const scale = V(1.0) / sum;
    for (index_t c = 0; c < components; ++c) k::store<double>(density[c] + i, k::load(density[c] + i) * scale);
  }
  for (index_t c = 0; c < components; ++c) {
    double const* const f = d.factors.data + c * mixture::factor;
    double* const g = r.factors.data + c * mixture::factor;
    V weight = zero, mean[size], factor[mixture::factor];
    for (V& v : mean) v = zero;
    for (V& v : factor) v = zero;
    for (index_t i = 0; i < samples; i += W) {
      V centered[size], q[size];
      rows(c, diagonal[c], i, centered, q);
      V const p = k::load(density[c] + i);
      weight += p;
#pragma GCC unroll 16
      for (int j = 0; j < size; ++j) q[j] = q[j] * p;
#pragma GCC unroll 16
      for (int j = 0; j < size; ++j) {
        V by_mean = V(diagonal[c][j]) * q[j];
        factor[j] = k::fma<double>(q[j], centered[j], factor[j]);
#pragma GCC unroll 16
        for (int row = j + 1; row < size; ++row) {
          by_mean = k::fma<double>(V(f[mixture::at(row, j)]), q[row], by_mean);
          factor[mixture::at(row, j)] = k::fma<double>(q[row], centered[j], factor[mixture::at(row, j)]);
        }
        mean[j] += by_mean;
      }
    }
    double const total = k::reduce_sum<double>(weight);
    r.weights.data[c] = total - samples * std::exp(d.weights.data[c] - greatest) / log_weights;
    for (int j = 0; j < size; ++j) {
      r.means.data[c * size + j] = k::reduce_sum<double>(mean[j]);
      g[j] = total - diagonal[c][j] * k::reduce_sum<double>(factor[j]) +
             mixture::gamma * mixture::gamma * diagonal[c][j] * diagonal[c][j] - mixture::m;
      for (int row = j + 1; row < size; ++row)
        g[mixture::at(row, j)] = mixture::gamma * mixture::gamma * f[mixture::at(row, j)] -
                                 k::reduce_sum<double>(factor[mixture::at(row, j)]);
    }
  }
}

void bench_mixture(benchmark::State& state, void (*f)(data const&, parameters&)) {
  static data d;
  static parameters a, b;
  bench::fill(d.weights, 0), bench::fill(d.means, 1, 2), bench::fill(d.factors, 2), bench::fill(d.x, 3, 4);
  f(d, a), hand(d, b);
  bench::agree(state, a.weights, b.weights, 1e-11), bench::agree(state, a.means, b.means, 1e-11),
      bench::agree(state, a.factors, b.factors, 1e-11);
  bench::measure(state, [&] { f(d, a); });
}
BENCHMARK_CAPTURE(bench_mixture, fused, fused);
BENCHMARK_CAPTURE(bench_mixture, fused_fast, fused_fast);
BENCHMARK_CAPTURE(bench_mixture, hand, hand);
} // namespace

BENCHMARK_MAIN();
