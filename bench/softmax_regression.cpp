// SPDX-License-Identifier: BSL-1.0
/// @file
/// Softmax regression, 100 samples of 64 numbers in 10 classes: the gradient of the mean cross entropy with respect to
/// the weights and the biases.
#include "blocks.hpp"
#include "functions.hpp"
#include "measure.hpp"

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t samples = 100, features = 64, classes = 10;

constexpr auto gradient = vv::fuse(vv::grad<0, 1>(bench::softmax_regression<samples, classes>));

struct data {
  alignas(64) array<float, features, classes> w;
  alignas(64) array<float, classes> b;
  alignas(64) array<float, samples, features> x;
  alignas(64) array<std::int64_t, samples> y;
};
struct results {
  alignas(64) array<float, features, classes> w;
  alignas(64) array<float, classes> b;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(data const& d, results& r) { gradient.into(r.w, r.b)(d.w, d.b, d.x, d.y); }

/// Rows of ten classes lie in registers whose other lanes stay empty; scores of several samples and gradients of
/// several features are summed side by side.
KEEP hand(data const& d, results& r) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>, per_row = (classes + W - 1) / W, width = per_row * W;
  alignas(64) float w[features * width]{}, g[samples * width];
  for (index_t f = 0; f < features; ++f)
    for (index_t c = 0; c < classes; ++c) w[f * width + c] = d.w.data[f * classes + c];
  V bias[per_row], total[per_row], number[per_row];
  for (index_t q = 0; q < per_row; ++q) {
    alignas(64) float all[W];
    for (index_t l = 0; l < W; ++l) all[l] = static_cast<float>(q * W + l);
    number[q] = k::load(all);
  }
  constexpr index_t at_once = 10;
  static_assert(samples % at_once == 0);
  for (index_t q = 0; q < per_row; ++q) {
    bias[q] = k::load_first(d.b.data + q * W, static_cast<std::size_t>(classes - q * W < W ? classes - q * W : W)),
    total[q] = V(0.0f);
    if ((q + 1) * W > classes) { // what is beyond the classes is nothing after exp
      alignas(64) float all[W];
      k::store(all, bias[q]);
      for (index_t l = classes - q * W; l < W; ++l) all[l] = -1e30f;
      bias[q] = k::load(all);
    }
  }
  for (index_t i = 0; i < samples; i += at_once) {
    V s[at_once][per_row];
#pragma GCC unroll 16
    for (index_t u = 0; u < at_once; ++u)
      for (index_t q = 0; q < per_row; ++q) s[u][q] = bias[q];
    for (index_t f = 0; f < features; ++f) {
      V row[per_row];
      for (index_t q = 0; q < per_row; ++q) row[q] = k::load(w + f * width + q * W);
#pragma GCC unroll 16
      for (index_t u = 0; u < at_once; ++u)
        for (index_t q = 0; q < per_row; ++q)
          s[u][q] = k::fma<float>(V(d.x.data[(i + u) * features + f]), row[q], s[u][q]);
    }
    for (index_t u = 0; u < at_once; ++u) {
      V most = s[u][0];
      for (index_t q = 1; q < per_row; ++q) most = k::maximum(most, s[u][q]);
      float const greatest = bench::greatest_lane(most);
      V e[per_row], sum(0.0f);
      for (index_t q = 0; q < per_row; ++q) e[q] = k::exp(V(s[u][q] - V(greatest))), sum += e[q];
      V const scale(1.0f / (static_cast<float>(samples) * k::reduce_sum<float>(sum)));
      float* const row = g + (i + u) * width;
      V const target(static_cast<float>(d.y.data[i + u]));
      for (index_t q = 0; q < per_row; ++q) {
        V const v = k::fma<float>(e[q], scale, k::select<float>(number[q] == target, V(-1.0f / samples), V(0.0f)));
        k::store<float>(row + q * W, v);
        total[q] += v;
      }
    }
  }
  alignas(64) float out[width];
  auto const put = [&](float* to, V const* from) {
    for (index_t q = 0; q < per_row; ++q) k::store<float>(out + q * W, from[q]);
    for (index_t c = 0; c < classes; ++c) to[c] = out[c];
  };
  put(r.b.data, total);
  constexpr index_t block = 8;
  for (index_t f = 0; f < features; f += block) {
    V s[block][per_row];
#pragma GCC unroll 16
    for (index_t u = 0; u < block; ++u)
      for (index_t q = 0; q < per_row; ++q) s[u][q] = V(0.0f);
    for (index_t i = 0; i < samples; ++i) {
      V row[per_row];
      for (index_t q = 0; q < per_row; ++q) row[q] = k::load(g + i * width + q * W);
#pragma GCC unroll 16
      for (index_t u = 0; u < block; ++u)
        for (index_t q = 0; q < per_row; ++q)
          s[u][q] = k::fma<float>(V(d.x.data[i * features + f + u]), row[q], s[u][q]);
    }
    for (index_t u = 0; u < block; ++u) put(r.w.data + (f + u) * classes, s[u]);
  }
}

void bench_softmax_regression(benchmark::State& state, void (*f)(data const&, results&)) {
  static data d;
  static results a, b;
  bench::fill(d.w, 0, 0.3), bench::fill(d.b, 1), bench::fill(d.x, 2, 2);
  for (index_t i = 0; i < samples; ++i) d.y[i] = i * 7 % classes;
  fused(d, a), hand(d, b);
  bench::agree(state, a.w, b.w, 1e-5), bench::agree(state, a.b, b.b, 1e-5);
  bench::measure(state, [&] { f(d, a); });
}
BENCHMARK_CAPTURE(bench_softmax_regression, fused, fused);
BENCHMARK_CAPTURE(bench_softmax_regression, hand, hand);
} // namespace

BENCHMARK_MAIN();
