// SPDX-License-Identifier: BSL-1.0
/// @file
/// Attention of 64 positions with 64 numbers each, forwards and backwards: the output, and the gradients with respect
/// to query, key and value for a given cotangent.
#include "blocks.hpp"
#include "measure.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t n = 64;

constexpr auto attention = [](auto q, auto key, auto v) {
  return vv::mm(vv::softmax(vv::mm(q, vv::transpose(key)) * 0.125, vv::axis<1>), v);
};
constexpr auto both_ways = [](auto q, auto key, auto v, auto g) {
  auto const [out, pullback] = vv::vjp(attention, q, key, v);
  return std::tuple_cat(std::tuple(out), pullback(g));
};
constexpr auto program = vv::fuse(both_ways);

using matrix = array<float, n, n>;
struct data {
  alignas(64) matrix q, k, v, g;
};
struct results {
  alignas(64) matrix out, q, k, v;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(data const& d, results& r) { program.into(r.out, r.q, r.k, r.v)(d.q, d.k, d.v, d.g); }
KEEP hand(data const& d, results& r) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>, per_row = n / W;
  alignas(64) float transposed[n * n], p[n * n], s[n * n];
  auto const store = [](float* to) { return [to](index_t i, index_t j, V v) { k::store<float>(to + i * n + j, v); }; };
  bench::transpose<n, n>(d.k.data, transposed);
  bench::blocks<n, n, n>(d.q.data, n, 1, transposed, store(p));
  for (index_t i = 0; i < n; ++i) {
    V e[per_row], most, sum(0.0f);
    for (index_t j = 0; j < per_row; ++j)
      e[j] = k::load(p + i * n + j * W) * V(0.125f), most = j ? k::maximum(most, e[j]) : e[j];
    V const greatest(bench::greatest_lane(most));
    for (index_t j = 0; j < per_row; ++j) e[j] = k::exp(V(e[j] - greatest)), sum += e[j];
    V const scale(1.0f / k::reduce_sum<float>(sum));
    for (index_t j = 0; j < per_row; ++j) k::store<float>(p + i * n + j * W, e[j] * scale);
  }
  bench::blocks<n, n, n>(p, n, 1, d.v.data, store(r.out.data));
  bench::blocks<n, n, n>(p, 1, n, d.g.data, store(r.v.data));
  bench::transpose<n, n>(d.v.data, transposed);
  bench::blocks<n, n, n>(d.g.data, n, 1, transposed, store(s));
  for (index_t i = 0; i < n; ++i) {
    V sum(0.0f);
    for (index_t j = 0; j < n; j += W) sum = k::fma<float>(k::load(p + i * n + j), k::load(s + i * n + j), sum);
    V const mean(k::reduce_sum<float>(sum));
    for (index_t j = 0; j < n; j += W)
      k::store<float>(s + i * n + j, (k::load(s + i * n + j) - mean) * k::load(p + i * n + j) * V(0.125f));
  }
  bench::blocks<n, n, n>(s, n, 1, d.k.data, store(r.q.data));
  bench::blocks<n, n, n>(s, 1, n, d.q.data, store(r.k.data));
}

void bench_attention(benchmark::State& state, void (*f)(data const&, results&)) {
  static data d;
  static results a, b;
  bench::fill(d.q, 0, 2), bench::fill(d.k, 1, 2), bench::fill(d.v, 2, 2), bench::fill(d.g, 3, 2);
  fused(d, a), hand(d, b);
  bench::agree(state, a.out, b.out, 1e-5), bench::agree(state, a.q, b.q, 1e-5), bench::agree(state, a.k, b.k, 1e-5),
      bench::agree(state, a.v, b.v, 1e-5);
  bench::measure(state, [&] { f(d, a); });
}
BENCHMARK_CAPTURE(bench_attention, fused, fused);
BENCHMARK_CAPTURE(bench_attention, hand, hand);
} // namespace

BENCHMARK_MAIN();
