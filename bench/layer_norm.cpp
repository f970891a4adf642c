// SPDX-License-Identifier: BSL-1.0
/// @file
/// The backward pass through `gelu(layer_norm(x))`, 64 rows of 256 floats: gradients with respect to x, weight and bias
/// for a given cotangent.
#include "measure.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t rows = 64, size = 256;

constexpr auto product = [](auto x, auto w, auto b, auto g) {
  return vv::sum(g * vv::gelu(vv::layer_norm(x, vv::shape<size>, w, b)));
};
constexpr auto backward = vv::fuse(vv::grad<0, 1, 2>(product));
constexpr auto fast_backward = vv::fuse(vv::grad<0, 1, 2>(product), vv::fast_math);

using matrix = array<float, rows, size>;
using row = array<float, size>;
struct data {
  alignas(64) matrix x, g;
  alignas(64) row w, b;
};
struct results {
  alignas(64) matrix x;
  alignas(64) row w, b;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(data const& d, results& r) { backward.into(r.x, r.w, r.b)(d.x, d.w, d.b, d.g); }
KEEP fused_fast(data const& d, results& r) { fast_backward.into(r.x, r.w, r.b)(d.x, d.w, d.b, d.g); }
KEEP hand(data const& d, results& r) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>, n = size / W, side = 4;
  V const half(0.5f), one(1.0f), root_half(0.70710678f), density(0.39894228f);
  for (index_t j = 0; j < size; j += W) k::store<float>(r.w.data + j, V(0.0f)), k::store<float>(r.b.data + j, V(0.0f));
  for (index_t i = 0; i < rows; ++i) {
    float const *const x = d.x.data + i * size, *const g = d.g.data + i * size;
    alignas(64) float unit[size], slope[size];
    V s[side];
    auto const sum = [&] { return k::reduce_sum<float>(V((s[0] + s[1]) + (s[2] + s[3]))); };
    for (V& v : s) v = V(0.0f);
    for (index_t j = 0; j < n; j += side)
#pragma GCC unroll 4
      for (index_t u = 0; u < side; ++u) s[u] += k::load(x + (j + u) * W);
    V const mean(sum() * (1.0f / size));
    for (V& v : s) v = V(0.0f);
    for (index_t j = 0; j < n; j += side)
#pragma GCC unroll 4
      for (index_t u = 0; u < side; ++u) {
        V const c = k::load(x + (j + u) * W) - mean;
        s[u] = k::fma<float>(c, c, s[u]);
      }
    float const scale = 1.0f / std::sqrt(sum() * (1.0f / size) + 1e-5f);
    V along(0.0f), total(0.0f);
    for (index_t j = 0; j < size; j += W) {
      V const c = (k::load(x + j) - mean) * V(scale), w = k::load(d.w.data + j),
              z = k::fma<float>(c, w, k::load(d.b.data + j));
      V const normal = k::fma<float>(half, k::erf(V(root_half * z)), half);
      V const dz = k::load(g + j) * k::fma<float>(z * density, k::exp(V(V(-0.5f) * z * z)), normal);
      k::store<float>(r.b.data + j, k::load(r.b.data + j) + dz);
      k::store<float>(r.w.data + j, k::fma<float>(dz, c, k::load(r.w.data + j)));
      V const dc = dz * w;
      total += dc, along = k::fma<float>(dc, c, along);
      k::store<float>(unit + j, c), k::store<float>(slope + j, dc);
    }
    V const a(k::reduce_sum<float>(along) * (1.0f / size)), t(k::reduce_sum<float>(total) * (1.0f / size)), by(scale);
    for (index_t j = 0; j < size; j += W)
      k::store<float>(r.x.data + i * size + j, (k::fnma<float>(k::load(unit + j), a, k::load(slope + j)) - t) * by);
  }
}

void bench_layer_norm(benchmark::State& state, void (*f)(data const&, results&)) {
  static data d;
  static results a, b;
  bench::fill(d.x, 0, 2), bench::fill(d.g, 1), bench::fill(d.w, 2, 1, 1), bench::fill(d.b, 3);
  f(d, a), hand(d, b);
  bench::agree(state, a.x, b.x, 1e-5), bench::agree(state, a.w, b.w, 1e-5), bench::agree(state, a.b, b.b, 1e-5);
  bench::measure(state, [&] { f(d, a); });
}
BENCHMARK_CAPTURE(bench_layer_norm, fused, fused);
BENCHMARK_CAPTURE(bench_layer_norm, fused_fast, fused_fast);
BENCHMARK_CAPTURE(bench_layer_norm, hand, hand);
} // namespace

BENCHMARK_MAIN();
