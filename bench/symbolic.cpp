// SPDX-License-Identifier: BSL-1.0
/// @file
/// Fused gradients whose number of rows is a symbol, next to the same functions fused for that very number, and to what
/// is written by hand for a number of rows known at run time. All read and write tensors, and check them at entry.
#include "measure.hpp"

#include <varve/varve.hpp>

#include <memory>

namespace vv = varve;
namespace k = varve::kernel;
using vv::index_t, vv::tensor, vv::spec;

namespace {
#define KEEP __attribute__((noinline)) void
constexpr index_t n = vv::dim<"n">, columns = 10;

tensor waves(vv::dims const& sizes, double phase) {
  tensor t = tensor::empty(sizes, vv::dtype::float32);
  for (index_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(0.5 * std::sin(phase + 1.3 * static_cast<double>(i)));
  return t;
}
void agree(benchmark::State& state, tensor const& a, tensor const& b) {
  for (index_t i = 0; i < a.numel(); ++i)
    if (!(std::fabs(a.data<float>()[i] - b.data<float>()[i]) <= 1e-4 * (1 + std::fabs(b.data<float>()[i]))))
      return state.SkipWithError("the gradients differ");
}

// ---- one pass over two arrays
// --------------------------------------------------------------------------------------------------------------------
constexpr auto gate = vv::grad<0, 1>([](auto x, auto w) { return vv::sum(vv::tanh(x * w) * x + x); });
constexpr auto gate_symbolic = vv::fuse<spec<float, n>, spec<float, n>>(gate);
template <index_t N>
constexpr auto gate_static = vv::fuse<spec<float, N>, spec<float, N>>(gate);

KEEP gate_hand(index_t count, float const* x, float const* w, float* gx, float* gw) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  V const one(1.0f);
  index_t i = 0;
  for (; i + W <= count; i += W) {
    V const a = k::load(x + i), b = k::load(w + i), t = k::tanh(V(a * b));
    V const d = k::fnma<float>(t, t, one) * a;
    k::store<float>(gx + i, k::fma<float>(d, b, t) + one);
    k::store<float>(gw + i, d * a);
  }
  if (auto const rest = static_cast<std::size_t>(count - i); rest > 0) {
    V const a = k::load_first(x + i, rest), b = k::load_first(w + i, rest), t = k::tanh(V(a * b));
    V const d = k::fnma<float>(t, t, one) * a;
    k::store_first<float>(gx + i, rest, k::fma<float>(d, b, t) + one);
    k::store_first<float>(gw + i, rest, d * a);
  }
}
template <index_t N>
void bench_gate(benchmark::State& state, int form) {
  tensor const x = waves({N}, 0), w = waves({N}, 1);
  tensor gx = waves({N}, 2), gw = waves({N}, 2), hx = waves({N}, 2), hw = waves({N}, 2);
  auto const by_hand = [&] { gate_hand(N, x.data<float>(), w.data<float>(), hx.data<float>(), hw.data<float>()); };
  by_hand();
  auto const fused = [&](auto const& f) {
    f.into(gx, gw)(x, w);
    agree(state, gx, hx), agree(state, gw, hw);
    bench::measure(state, [&] { f.into(gx, gw)(x, w); });
  };
  if (form == 0) bench::measure(state, by_hand);
  else if (form == 1) fused(gate_symbolic);
  else fused(gate_static<N>);
}
void bench_symbolic_gate_1e3(benchmark::State& state, int form) { bench_gate<1000>(state, form); }
void bench_symbolic_gate_1e6(benchmark::State& state, int form) { bench_gate<1000000>(state, form); }

// ---- logistic regression: rows of ten
// -----------------------------------------------------------------------------------------------------------------
constexpr auto logistic = vv::grad([](auto w, auto x, auto y) {
  auto z = vv::sum(x * w, vv::axis<1>);
  return vv::mean(vv::log(1.0 + vv::exp(z)) - y * z);
});
constexpr auto logistic_symbolic = vv::fuse<spec<float, columns>, spec<float, n, columns>, spec<float, n>>(logistic);
template <index_t N>
constexpr auto logistic_static = vv::fuse<spec<float, columns>, spec<float, N, columns>, spec<float, N>>(logistic);

/// As many rows at a time as a register has lanes, in one pass: their columns are loads with a stride, which the
/// library's own transposition makes of whole pieces of rows.
KEEP logistic_hand(index_t rows, float const* w, float const* x, float const* y, float* g) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  constexpr int fields = vv::fusion::fields_at_once<float>;
  V sum[columns];
  for (V& s : sum) s = V(0.0f);
  V const one(1.0f), scale(1.0f / static_cast<float>(rows));
  index_t i = 0;
  for (; i + W <= rows; i += W) {
    V c[columns];
    float const* const p = x + i * columns;
    vv::fusion::load_fields<float>(p, columns, c);
    vv::fusion::load_fields<float>(p + fields, columns, c + fields);
    vv::fusion::load_fields<float>(p + columns - fields, columns, c + columns - fields);
    V even = c[0] * V(w[0]), odd = c[1] * V(w[1]);
    for (index_t j = 2; j < columns; j += 2)
      even = k::fma<float>(c[j], V(w[j]), even), odd = k::fma<float>(c[j + 1], V(w[j + 1]), odd);
    V const e = k::exp(V(even + odd)), d = (e / (one + e) - k::load(y + i)) * scale;
    for (index_t j = 0; j < columns; ++j) sum[j] = k::fma<float>(d, c[j], sum[j]);
  }
  for (index_t j = 0; j < columns; ++j) g[j] = k::reduce_sum<float>(sum[j]);
  for (float const *p = x + i * columns, *t = y + i; t != y + rows; p += columns, ++t) {
    float z = 0;
    for (index_t j = 0; j < columns; ++j) z += p[j] * w[j];
    float const e = k::exp(z), d = (e / (1 + e) - *t) / static_cast<float>(rows);
    for (index_t j = 0; j < columns; ++j) g[j] += d * p[j];
  }
}
template <index_t N>
void bench_logistic(benchmark::State& state, int form) {
  tensor const w = waves({columns}, 0), x = waves({N, columns}, 1), y = waves({N}, 2);
  tensor g = waves({columns}, 3), h = waves({columns}, 3);
  auto const by_hand = [&] { logistic_hand(N, w.data<float>(), x.data<float>(), y.data<float>(), h.data<float>()); };
  by_hand();
  auto const fused = [&](auto const& f) {
    f.into(g)(w, x, y);
    agree(state, g, h);
    bench::measure(state, [&] { f.into(g)(w, x, y); });
  };
  if (form == 0) bench::measure(state, by_hand);
  else if (form == 1) fused(logistic_symbolic);
  else fused(logistic_static<N>);
}
void bench_symbolic_logistic_1e3(benchmark::State& state, int form) { bench_logistic<100>(state, form); }
void bench_symbolic_logistic_1e6(benchmark::State& state, int form) { bench_logistic<100000>(state, form); }

#define ROWS(name)                                                                                                     \
  BENCHMARK_CAPTURE(name, fused, 1);                                                                                   \
  BENCHMARK_CAPTURE(name, fused_static, 2);                                                                            \
  BENCHMARK_CAPTURE(name, hand, 0);
ROWS(bench_symbolic_gate_1e3)
ROWS(bench_symbolic_gate_1e6)
ROWS(bench_symbolic_logistic_1e3)
ROWS(bench_symbolic_logistic_1e6)
} // namespace

BENCHMARK_MAIN();
