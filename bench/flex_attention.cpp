// SPDX-License-Identifier: BSL-1.0
/// @file
/// `flex_attention` of 8 heads, 512 positions with 64 numbers each: by tiles, by the formula, and a loop nest by hand.
/// libtorch's attention of these sizes is in torch_attention.cpp.
#include "blocks.hpp"

#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>

namespace vv = varve;
namespace k = varve::kernel;
using vv::dims, vv::index_t, vv::tensor;

namespace {
constexpr index_t heads = 8, length = 512, width = 64, rows = 64;

struct operands {
  tensor q, k, v;
  operands() {
    vv::manual_seed(1);
    for (tensor* x : {&q, &k, &v}) *x = vv::randn(dims{1, heads, length, width});
  }
};
operands const& given() {
  static operands const o;
  return o;
}
constexpr auto causal = [](auto const&, auto const&, auto const& i, auto const& j) { return i >= j; };
auto const causal_mask = vv::create_block_mask(causal, vv::none, vv::none, length, length);
tensor const& slopes() {
  static tensor const t = vv::arange(heads) * 0.01f;
  return t;
}
constexpr auto farther_is_less = [](auto const& s, auto const&, auto const& h, auto const& i, auto const& j) {
  return s - vv::index(slopes(), h) * (i - j);
};

/// 64 rows of scores at a time, whole.
__attribute__((noinline)) void hand(float const* q, float const* key, float const* v, float* out) {
  using V = k::batch<float>;
  constexpr index_t W = k::lanes<float>;
  struct work {
    alignas(64) float transposed[width * length], p[rows * length], scale[rows];
  };
  static auto const w = std::make_unique<work>();
  for (index_t h = 0; h < heads; ++h, q += length * width, key += length * width, v += length * width) {
    bench::transpose<length, width>(key, w->transposed);
    for (index_t i = 0; i < length; i += rows) {
      bench::blocks<rows, width, length>(q + i * width, width, 1, w->transposed, [&](index_t r, index_t c, V x) {
        k::store<float>(w->p + r * length + c, x * V(0.125f));
      });
      for (index_t r = 0; r < rows; ++r) {
        float* const p = w->p + r * length;
        V most = k::load(p), sum(0.0f);
        for (index_t j = W; j < length; j += W) most = k::select<float>(most < k::load(p + j), k::load(p + j), most);
        V const greatest(bench::greatest_lane(most));
        for (index_t j = 0; j < length; j += W) {
          V const e = k::exp(V(k::load(p + j) - greatest));
          k::store<float>(p + j, e), sum += e;
        }
        w->scale[r] = 1.0f / k::reduce_sum<float>(sum);
      }
      bench::blocks<rows, length, width>(w->p, length, 1, v, [&](index_t r, index_t c, V x) {
        k::store<float>(out + r * width + c, x * V(w->scale[r]));
      });
      out += rows * width;
    }
  }
}
tensor by_hand(operands const& o) {
  tensor y = tensor::empty(dims{1, heads, length, width}, vv::dtype::float32);
  hand(o.q.data<float>(), o.k.data<float>(), o.v.data<float>(), static_cast<float*>(y.raw()));
  return y;
}
template <class F, class M>
tensor by_formula(operands const& o, F const& f, M const& m) {
  return std::get<0>(vv::detail::attention_formula::parts(o.q, o.k, o.v, f, m, vv::none, false));
}

/// A row, once its result is that of the formula.
template <class F, class M, class Run>
void row(benchmark::State& state, F const& f, M const& m, Run const& run) {
  tensor const d = vv::abs(run() - by_formula(given(), f, m));
  if (!(vv::amax(d, dims{}).template item<float>() < 1e-5f)) return state.SkipWithError("not what the formula gives");
  for (auto _ : state) benchmark::DoNotOptimize(run());
}
void full(benchmark::State& s) {
  row(s, vv::none, vv::none, [] { return vv::flex_attention(given().q, given().k, given().v); });
}
void full_by_hand(benchmark::State& s) {
  row(s, vv::none, vv::none, [] { return by_hand(given()); });
}
void full_by_formula(benchmark::State& s) {
  row(s, vv::none, vv::none, [] { return by_formula(given(), vv::none, vv::none); });
}
void causal_only(benchmark::State& s) {
  row(s, vv::none, causal_mask,
      [] { return vv::flex_attention(given().q, given().k, given().v, vv::none, causal_mask); });
}
void causal_only_by_formula(benchmark::State& s) {
  row(s, vv::none, causal_mask, [] { return by_formula(given(), vv::none, causal_mask); });
}
void sloped(benchmark::State& s) {
  row(s, farther_is_less, vv::none,
      [] { return vv::flex_attention(given().q, given().k, given().v, farther_is_less); });
}
void sloped_by_formula(benchmark::State& s) {
  row(s, farther_is_less, vv::none, [] { return by_formula(given(), farther_is_less, vv::none); });
}
template <class Attend>
void both_ways(benchmark::State& state, Attend const& attend) {
  operands const o;
  for (tensor const* x : {&o.q, &o.k, &o.v}) x->requires_grad_();
  for (auto _ : state) {
    tensor const y = attend(o);
    benchmark::DoNotOptimize(vv::autograd::grad({y}, {o.q, o.k, o.v}, {given().q}));
  }
}
void with_gradient(benchmark::State& s) {
  both_ways(s, [](operands const& o) { return vv::flex_attention(o.q, o.k, o.v); });
}
void with_gradient_by_formula(benchmark::State& s) {
  both_ways(s, [](operands const& o) { return by_formula(o, vv::none, vv::none); });
}
BENCHMARK(full);
BENCHMARK(full_by_hand);
BENCHMARK(full_by_formula);
BENCHMARK(causal_only);
BENCHMARK(causal_only_by_formula);
BENCHMARK(sloped);
BENCHMARK(sloped_by_formula);
BENCHMARK(with_gradient);
BENCHMARK(with_gradient_by_formula);
} // namespace

BENCHMARK_MAIN();
