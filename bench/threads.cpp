// SPDX-License-Identifier: BSL-1.0
/// @file
/// Long fused loops, and operators on tensors of 1e6 elements, on one thread and on two, by OpenMP. Times are of the
/// clock on the wall.
#include "functions.hpp"
#include "measure.hpp"

#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/sorting.hpp>

#include <cstring>
#include <functional>
#include <memory>
#include <omp.h>
#include <string>
#include <utility>
#include <vector>

namespace vv = varve;
using vv::array, vv::index_t;

namespace {
constexpr index_t many = 1000000;
using floats = array<float, many>;
using doubles = array<double, many>;

constexpr auto greeks = vv::fuse(vv::vmap(bench::greeks, vv::in_dims<0, 0, 0, vv::none, 0>));
constexpr auto gate =
    vv::fuse(vv::grad<0, 1>([](auto const& x, auto const& w) { return vv::sum(vv::tanh(x * w) * x + x); }));
constexpr auto total = vv::fuse([](auto const& x, auto const& w) { return vv::sum(vv::tanh(x * w) * x + x); });

/// Runs `f`, which writes all of `r`, by `threads` threads, when it computes what one thread does.
template <class R, class F>
void measure(benchmark::State& state, R& r, F f) {
  auto const one = std::make_unique<R>();
  omp_set_num_threads(1);
  f();
  std::memcpy(static_cast<void*>(one.get()), &r, sizeof r);
  omp_set_num_threads(static_cast<int>(state.range(0)));
  f();
  if (std::memcmp(one.get(), &r, sizeof r) != 0) state.SkipWithError("threads change the result");
  bench::measure(state, f);
}

void bench_black_scholes(benchmark::State& state) {
  struct market {
    doubles spot, strike, time, volatility;
  };
  struct results {
    doubles price, delta, gamma, vega, theta, rho;
  };
  static auto const m = std::make_unique<market>();
  static auto const r = std::make_unique<results>();
  bench::fill(m->spot, 0, 40, 100), bench::fill(m->strike, 1, 40, 100), bench::fill(m->time, 2, 1.8, 1),
      bench::fill(m->volatility, 3, 0.4, 0.3);
  measure(state, *r, [&] {
    greeks.into(r->price, r->delta, r->gamma, r->vega, r->theta, r->rho)(m->spot, m->strike, m->time, 0.03,
                                                                         m->volatility);
  });
}
struct pair {
  floats x, w;
};
void bench_gate(benchmark::State& state) {
  static auto const m = std::make_unique<pair>(), r = std::make_unique<pair>();
  bench::fill(m->x, 0), bench::fill(m->w, 1);
  measure(state, *r, [&] { gate.into(r->x, r->w)(m->x, m->w); });
}
void bench_sum(benchmark::State& state) {
  static auto const m = std::make_unique<pair>();
  static float r = 0;
  bench::fill(m->x, 0), bench::fill(m->w, 1);
  measure(state, r, [&] { r = total(m->x, m->w); });
}
/// An operator, when two threads give what one gives.
void bench_operator(benchmark::State& state, std::function<vv::tensor()> const& f) {
  auto const drawn = [&] {
    vv::manual_seed(1);
    return f();
  };
  omp_set_num_threads(1);
  vv::tensor const one = drawn();
  omp_set_num_threads(static_cast<int>(state.range(0)));
  vv::tensor const y = drawn();
  if (std::memcmp(one.raw(), y.raw(), static_cast<std::size_t>(one.numel() * vv::itemsize(one.dtype()))) != 0)
    state.SkipWithError("threads change the result");
  bench::measure(state, [&] { benchmark::DoNotOptimize(f()); });
}
bool const registered = [] {
  using vv::tensor;
  vv::manual_seed(0);
  tensor const x = vv::randn({1000, 1000}), y = vv::randn({1000, 1000}), flat = vv::reshape(x, {-1});
  tensor const image = vv::randn({8, 32, 56, 56}), kernels = vv::randn({32, 32, 3, 3}), q = vv::randn({2, 8, 512, 64});
  tensor const order = vv::argsort(vv::reshape(y, {-1}), 0);
  std::vector<std::pair<char const*, std::function<tensor()>>> const all{
      {"add", [=] { return x + y; }},
      {"exp", [=] { return vv::exp(x); }},
      {"sum", [=] { return vv::sum(x); }},
      {"sum_of_columns", [=] { return vv::sum(x, 0); }},
      {"softmax", [=] { return vv::softmax(x, 1); }},
      {"layer_norm", [=] { return vv::layer_norm(x, vv::dims{1000}); }},
      {"matmul", [=] { return vv::matmul(x, y); }},
      {"conv2d", [=] { return vv::conv2d(image, kernels); }},
      {"avg_pool2d", [=] { return vv::avg_pool2d(image, 2); }},
      {"attention", [=] { return vv::scaled_dot_product_attention(q, q, q); }},
      {"sort_of_rows", [=] { return vv::sort(x, 1).first; }},
      {"sort_of_1e6", [=] { return vv::sort(flat, 0).first; }},
      {"gather_of_1e6", [=] { return vv::gather(flat, 0, order); }},
      {"cumsum", [=] { return vv::cumsum(x, 1); }},
      {"rand", [=] { return vv::rand({1000000}); }},
      {"randn", [=] { return vv::randn({1000000}); }},
      {"add_of_4", [a = vv::ones({4})] { return a + a; }}};
  for (auto const& [name, f] : all)
    benchmark::RegisterBenchmark(("threads/" + std::string(name)).c_str(),
                                 [f = f](benchmark::State& s) { bench_operator(s, f); })
        ->Arg(1)
        ->Arg(2)
        ->UseRealTime();
  return true;
}();
BENCHMARK(bench_black_scholes)->Name("threads/black_scholes")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(bench_gate)->Name("threads/gate_1e6")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(bench_sum)->Name("threads/sum_1e6")->Arg(1)->Arg(2)->UseRealTime();
} // namespace

BENCHMARK_MAIN();
