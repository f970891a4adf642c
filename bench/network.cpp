// SPDX-License-Identifier: BSL-1.0
/// @file
/// One step of stochastic gradient descent for a network 64-32-10 with relu and cross entropy, 32 samples: the new
/// weights and biases.
#include "blocks.hpp"
#include "measure.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t samples = 32, inputs = 64, hidden = 32, classes = 10;
constexpr float rate = 0.1f;

constexpr auto loss = [](auto w1, auto b1, auto w2, auto b2, auto x, auto y) {
  auto const h = vv::relu(vv::mm(x, w1) + b1);
  auto const scores = vv::log_softmax(vv::mm(h, w2) + b2, vv::axis<1>);
  return -vv::sum(scores * vv::one_hot(y, vv::ints<classes>{})) / double(samples);
};
constexpr auto descend = [](auto w1, auto b1, auto w2, auto b2, auto x, auto y) {
  auto const [d1, e1, d2, e2] = vv::grad<0, 1, 2, 3>(loss)(w1, b1, w2, b2, x, y);
  return std::tuple(w1 - rate * d1, b1 - rate * e1, w2 - rate * d2, b2 - rate * e2);
};
constexpr auto step = vv::fuse(descend);

struct weights {
  alignas(64) array<float, inputs, hidden> w1;
  alignas(64) array<float, hidden> b1;
  alignas(64) array<float, hidden, classes> w2;
  alignas(64) array<float, classes> b2;
};
struct data : weights {
  alignas(64) array<float, samples, inputs> x;
  alignas(64) array<std::int64_t, samples> y;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(data const& d, weights& r) { step.into(r.w1, r.b1, r.w2, r.b2)(d.w1, d.b1, d.w2, d.b2, d.x, d.y); }

/// Products in register blocks that take up bias, relu and the step of the descent; rows of ten classes lie in
/// registers whose other lanes stay empty.
KEEP hand(data const& d, weights& r) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>, per_row = (classes + W - 1) / W, width = per_row * W, many = hidden / W;
  alignas(64) float h[samples * hidden], s[samples * width], w2[hidden * width]{}, transposed[width * hidden]{},
      g[samples * hidden];
  V const zero(0.0f), by(-rate);
  V number[per_row], bias[per_row], total[per_row];
  for (index_t q = 0; q < per_row; ++q) {
    alignas(64) float all[W], b[W];
    for (index_t l = 0; l < W; ++l)
      all[l] = static_cast<float>(q * W + l),
      b[l] = q * W + l < classes ? d.b2.data[q * W + l] : -1e30f; // nothing after exp
    number[q] = k::load(all), bias[q] = k::load(b), total[q] = zero;
  }
  for (index_t f = 0; f < hidden; ++f)
    for (index_t c = 0; c < classes; ++c) w2[f * width + c] = transposed[c * hidden + f] = d.w2.data[f * classes + c];
  bench::blocks<samples, inputs, hidden>(d.x.data, inputs, 1, d.w1.data, [&](index_t i, index_t j, V v) {
    k::store<float>(h + i * hidden + j, k::maximum(V(v + k::load(d.b1.data + j)), zero));
  });
  bench::blocks<samples, hidden, width, 8, per_row>(
      h, hidden, 1, w2, [&](index_t i, index_t j, V v) { k::store<float>(s + i * width + j, v + bias[j / W]); });
  for (index_t i = 0; i < samples; ++i) {
    V e[per_row], most, sum(0.0f);
    for (index_t q = 0; q < per_row; ++q)
      e[q] = k::load(s + i * width + q * W), most = q ? k::maximum(most, e[q]) : e[q];
    V const greatest(bench::greatest_lane(most)), target(static_cast<float>(d.y.data[i]));
    for (index_t q = 0; q < per_row; ++q) e[q] = k::exp(V(e[q] - greatest)), sum += e[q];
    V const scale(1.0f / (static_cast<float>(samples) * k::reduce_sum<float>(sum)));
    for (index_t q = 0; q < per_row; ++q) {
      V const v = k::fma<float>(e[q], scale, k::select<float>(number[q] == target, V(-1.0f / samples), zero));
      k::store<float>(s + i * width + q * W, v);
      total[q] += v;
    }
  }
  alignas(64) float out[width];
  for (index_t q = 0; q < per_row; ++q) k::store<float>(out + q * W, total[q]);
  for (index_t c = 0; c < classes; ++c) r.b2.data[c] = d.b2.data[c] - rate * out[c];
  alignas(64) float d2[hidden * width];
  bench::blocks<hidden, samples, width, 8, per_row>(
      h, 1, hidden, s, [&](index_t i, index_t j, V v) { k::store<float>(d2 + i * width + j, v); });
  for (index_t f = 0; f < hidden; ++f)
    for (index_t c = 0; c < classes; ++c)
      r.w2.data[f * classes + c] = d.w2.data[f * classes + c] - rate * d2[f * width + c];
  V sums[many];
  for (V& v : sums) v = zero;
  bench::blocks<samples, classes, hidden>(s, width, 1, transposed, [&](index_t i, index_t j, V v) {
    V const u = k::select<float>(k::load(h + i * hidden + j) > zero, v, zero);
    k::store<float>(g + i * hidden + j, u);
    sums[j / W] += u;
  });
  for (index_t j = 0; j < many; ++j)
    k::store<float>(r.b1.data + j * W, k::fma<float>(by, sums[j], k::load(d.b1.data + j * W)));
  bench::blocks<inputs, samples, hidden>(d.x.data, 1, inputs, g, [&](index_t i, index_t j, V v) {
    k::store<float>(r.w1.data + i * hidden + j, k::fma<float>(by, v, k::load(d.w1.data + i * hidden + j)));
  });
}

void bench_network(benchmark::State& state, void (*f)(data const&, weights&)) {
  static data d;
  static weights a, b;
  bench::fill(d.w1, 0, 0.5), bench::fill(d.b1, 1), bench::fill(d.w2, 2, 0.5), bench::fill(d.b2, 3),
      bench::fill(d.x, 4, 2);
  for (index_t i = 0; i < samples; ++i) d.y[i] = i * 7 % classes;
  fused(d, a), hand(d, b);
  bench::agree(state, a.w1, b.w1, 1e-6), bench::agree(state, a.b1, b.b1, 1e-6), bench::agree(state, a.w2, b.w2, 1e-6),
      bench::agree(state, a.b2, b.b2, 1e-6);
  bench::measure(state, [&] { f(d, a); });
}
BENCHMARK_CAPTURE(bench_network, fused, fused);
BENCHMARK_CAPTURE(bench_network, hand, hand);
} // namespace

BENCHMARK_MAIN();
