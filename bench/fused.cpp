// SPDX-License-Identifier: BSL-1.0
/// @file
/// Gradients made by `fuse(grad(f))` next to what a careful engineer writes by hand with SIMD registers: the same math
/// functions, the same memory traffic, one pass where one pass is possible. `x/fused` over `x/hand` is the ratio that
/// matters. Both are kept out of line, and both write to memory they are given.
#include "functions.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <memory>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {

template <class A>
void fill(A& a, double phase) {
  for (index_t i = 0; i < A::size(); ++i)
    a.data[i] = static_cast<typename A::value_type>(0.5 * std::sin(phase + 1.3 * static_cast<double>(i)));
}
#define KEEP __attribute__((noinline)) void

#include "fused_chain.hpp"

// ---- 3. Rosenbrock: neighbours
// --------------------------------------------------------------------------------------------------------------------
constexpr index_t R = 100;
constexpr auto rosenbrock_gradient = vv::fuse(vv::grad(bench::rosenbrock<R>));
constexpr auto rosenbrock_fast_gradient = vv::fuse(vv::grad(bench::rosenbrock<R>), vv::fast_math);

KEEP rosenbrock_fused(array<double, R> const& x, array<double, R>& g) { rosenbrock_gradient.into(g)(x); }
KEEP rosenbrock_fused_fast(array<double, R> const& x, array<double, R>& g) { rosenbrock_fast_gradient.into(g)(x); }
KEEP rosenbrock_hand(array<double, R> const& x, array<double, R>& g) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  auto one = [&](index_t i) {
    double r = 0;
    if (i > 0) r += 200 * (x[i] - x[i - 1] * x[i - 1]);
    if (i < R - 1) r += 200 * (x[i + 1] - x[i] * x[i]) * (-2 * x[i]) - 2 * (1 - x[i]);
    g[i] = r;
  };
  one(0);
  index_t i = 1;
  for (; i + W <= R - 1; i += W) {
    V const p = k::load(x.data + i - 1), c = k::load(x.data + i), n = k::load(x.data + i + 1);
    V const r0 = k::fnma<double>(p, p, c), r1 = k::fnma<double>(c, c, n);
    k::store<double>(g.data + i,
                     k::fma<double>(V(200.0) * r1, V(-2.0) * c, k::fma<double>(V(-2.0), V(1.0) - c, V(200.0) * r0)));
  }
  for (; i < R; ++i) one(i);
}

// ---- 4. logistic regression, 100 samples of 10
// ----------------------------------------------------------------------------------------------------------
constexpr index_t S = 100, P = 10;
constexpr auto logistic_sum_gradient = vv::fuse(vv::grad(bench::logistic_sum<S>));
constexpr auto logistic_mm_gradient = vv::fuse(vv::grad(bench::logistic_mm<S>));

KEEP logistic_sum_fused(array<float, P> const& w, array<float, S, P> const& x, array<float, S> const& y,
                        array<float, P>& g) {
  logistic_sum_gradient.into(g)(w, x, y);
}
KEEP logistic_mm_fused(array<float, P, 1> const& w, array<float, S, P> const& x, array<float, S, 1> const& y,
                       array<float, P, 1>& g) {
  logistic_mm_gradient.into(g)(w, x, y);
}
/// Eight floats, whatever the width of a register: rows of ten leave a wider one half empty.
typedef float eight __attribute__((vector_size(32)));
VARVE_INLINE eight load_eight(float const* p) {
  eight r;
  std::memcpy(&r, p, sizeof r);
  return r;
}
/// The fastest of the forms tried: rows as 8 + 2 (a row-wise sum each), then the sigmoid on whole vectors, then rows
/// again. (Gathering columns costs 450 ns with AVX2, this 210; with AVX-512 whole rows by masks cost 250, columns that
/// way 400.)
KEEP logistic_hand(float const* w, float const* x, float const* y, float* g) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  alignas(64) float z[S + W], d[S + W];
  eight const u = load_eight(w);
  for (index_t i = 0; i < S; ++i) {
    float const* r = x + i * P;
    eight const s = load_eight(r) * u;
    auto const four = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
    auto const two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
    z[i] = two[0] + two[1] + (r[8] * w[8] + r[9] * w[9]);
  }
  for (index_t i = 0; i < S; i += W) {
    V const e = k::exp(k::load(z + i));
    V const t = i + W <= S ? k::load(y + i) : k::load_first(y + i, static_cast<std::size_t>(S - i));
    k::store<float>(d + i, (e / (V(1.0f) + e) - t) * V(1.0f / S));
  }
  eight even{}, odd{};
  float even8 = 0, even9 = 0, odd8 = 0, odd9 = 0;
  for (index_t i = 0; i < S; i += 2) {
    float const *r = x + i * P, *q = r + P;
    even = d[i] * load_eight(r) + even;
    odd = d[i + 1] * load_eight(q) + odd;
    even8 += d[i] * r[8], odd8 += d[i + 1] * q[8];
    even9 += d[i] * r[9], odd9 += d[i + 1] * q[9];
  }
  even += odd;
  std::memcpy(g, &even, sizeof even);
  g[8] = even8 + odd8, g[9] = even9 + odd9;
}

#include "fused_mlp.hpp"

// ---- the measurements
// --------------------------------------------------------------------------------------------------------------------
template <class F>
void measure(benchmark::State& state, F f) {
  for (auto _ : state) {
    f();
    benchmark::ClobberMemory();
  }
}
/// Both versions must agree before either is timed.
template <class A>
void agree(benchmark::State& state, A const& a, A const& b) {
  for (index_t i = 0; i < A::size(); ++i)
    if (!(std::fabs(static_cast<double>(a.data[i]) - static_cast<double>(b.data[i])) <=
          1e-4 * (1 + std::fabs(static_cast<double>(a.data[i])))))
      state.SkipWithError("the gradients differ");
}

void bench_chain(benchmark::State& state, bool fused) {
  double x = 0.7, y = -0.3, gx = 0, gy = 0, hx = 0, hy = 0;
  chain_fused(x, y, gx, gy), chain_hand(x, y, hx, hy);
  agree(state, array<double, 2>{gx, gy}, array<double, 2>{hx, hy});
  auto const f = fused ? &chain_fused : &chain_hand;
  measure(state, [&] { f(x, y, gx, gy); });
}
template <index_t N>
void bench_gate(benchmark::State& state, bool fused) {
  using A = array<float, N>;
  auto const x = std::make_unique<A>(), w = std::make_unique<A>(), gx = std::make_unique<A>(),
             gw = std::make_unique<A>(), hx = std::make_unique<A>(), hw = std::make_unique<A>();
  fill(*x, 0), fill(*w, 1);
  gate_fused(*x, *w, *gx, *gw), gate_hand(*x, *w, *hx, *hw);
  agree(state, *gx, *hx), agree(state, *gw, *hw);
  auto const f = fused ? &gate_fused<N> : &gate_hand<N>;
  measure(state, [&] { f(*x, *w, *gx, *gw); });
}
void bench_gate_1e3(benchmark::State& state, bool fused) { bench_gate<1000>(state, fused); }
void bench_gate_1e6(benchmark::State& state, bool fused) { bench_gate<1000000>(state, fused); }
void bench_rosenbrock(benchmark::State& state, void (*f)(array<double, R> const&, array<double, R>&)) {
  alignas(64) array<double, R> x, g, h;
  fill(x, 0);
  f(x, g), rosenbrock_hand(x, h);
  agree(state, g, h);
  measure(state, [&] { f(x, g); });
}
void bench_logistic(benchmark::State& state, int form) {
  alignas(64) array<float, P> w, g, h;
  alignas(64) array<float, P, 1> wm, gm;
  alignas(64) array<float, S, P> x;
  alignas(64) array<float, S> y;
  alignas(64) array<float, S, 1> ym;
  fill(w, 0), fill(wm, 0), fill(x, 1), fill(y, 2), fill(ym, 2);
  logistic_hand(w.data, x.data, y.data, h.data);
  logistic_sum_fused(w, x, y, g);
  agree(state, g, h);
  logistic_mm_fused(wm, x, ym, gm);
  for (index_t j = 0; j < P; ++j) g[j] = gm.data[j];
  agree(state, g, h);
  if (form == 0) measure(state, [&] { logistic_hand(w.data, x.data, y.data, h.data); });
  else if (form == 1) measure(state, [&] { logistic_sum_fused(w, x, y, g); });
  else measure(state, [&] { logistic_mm_fused(wm, x, ym, gm); });
}
void bench_mlp(benchmark::State& state, bool fused) {
  static mlp_values v;
  static mlp_gradients g, h;
  v.fill();
  mlp_fused(v, g), mlp_hand(v, h);
  agree(state, g.W1, h.W1), agree(state, g.b1, h.b1), agree(state, g.W2, h.W2), agree(state, g.b2, h.b2),
      agree(state, g.W3, h.W3), agree(state, g.b3, h.b3);
  auto const f = fused ? &mlp_fused : &mlp_hand;
  measure(state, [&] { f(v, g); });
}

BENCHMARK_CAPTURE(bench_chain, fused, true);
BENCHMARK_CAPTURE(bench_chain, hand, false);
BENCHMARK_CAPTURE(bench_gate_1e3, fused, true);
BENCHMARK_CAPTURE(bench_gate_1e3, hand, false);
BENCHMARK_CAPTURE(bench_gate_1e6, fused, true);
BENCHMARK_CAPTURE(bench_gate_1e6, hand, false);
BENCHMARK_CAPTURE(bench_rosenbrock, fused, rosenbrock_fused);
BENCHMARK_CAPTURE(bench_rosenbrock, fused_fast, rosenbrock_fused_fast);
BENCHMARK_CAPTURE(bench_rosenbrock, hand, rosenbrock_hand);
BENCHMARK_CAPTURE(bench_logistic, fused_sum, 1);
BENCHMARK_CAPTURE(bench_logistic, fused_mm, 2);
BENCHMARK_CAPTURE(bench_logistic, hand, 0);
BENCHMARK_CAPTURE(bench_mlp, fused, true);
BENCHMARK_CAPTURE(bench_mlp, hand, false);
} // namespace

BENCHMARK_MAIN();
