// SPDX-License-Identifier: BSL-1.0
/// @file
/// Functions of tensors run operator by operator (`eager`), traced and fused at run time (`compiled`), compiled by the
/// system's compiler at run time (`cpp`), and fused by the compiler, every operation as code (`fused`) or as a table
/// (`table`).
#include <varve/export/cpp_backend.hpp>
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>

namespace vv = varve;
using vv::dims, vv::dtype, vv::index_t, vv::tensor;

namespace {
tensor waves(dims const& sizes, double phase) {
  tensor t = tensor::empty(sizes, dtype::float32);
  for (index_t k = 0; k < t.numel(); ++k)
    t.data<float>()[k] = static_cast<float>(std::sin(phase + 1.3 * static_cast<double>(k)));
  return t;
}

// ---- ten elementwise operators
constexpr auto arithmetic = [](auto const& x, auto const& y) {
  auto const a = x * y, b = a + x, c = b * y, d = c - x, e = d * a, f = e + b, g = f * c, h = g - d, i = h * e;
  return i + f;
};
constexpr auto functions = [](auto const& x, auto const& y) {
  auto const a = x * y, b = vv::tanh(a + x), c = b * b - y, d = vv::exp(-c) + 1.0;
  return x / d * b;
};
// ---- a gradient, and rows of softmax
constexpr auto gate = vv::grad<0, 1>([](auto const& x, auto const& y) { return vv::sum(vv::tanh(x * y) * x + x); });
constexpr auto rows = [](auto const& x, auto const& y) { return vv::softmax(x * y, vv::axis<1>); };

template <class F, class X>
void check(benchmark::State& state, F const& f, X const& x, X const& y) {
  auto one = [](auto const& r) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(r)>, tensor>) return r;
    else return std::get<0>(r);
  };
  tensor const a = one(vv::compile(f)(x, y)), b = one(f(x, y));
  for (index_t k = 0; k < a.numel(); ++k)
    if (!(std::fabs(a.data<float>()[k] - b.data<float>()[k]) <= 1e-5f * (1 + std::fabs(b.data<float>()[k]))))
      return state.SkipWithError("the compiled function differs");
}
template <auto F, index_t... D>
void eager(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  check(state, F, x, y);
  for (auto _ : state) benchmark::DoNotOptimize(F(x, y));
}
template <auto F, index_t... D>
void compiled(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  auto const f = vv::compile(F, x, y);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void cpp(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  auto const f = vv::compile(F, vv::backends::cpp.with({.wait = true}));
  f(x, y);
  if (vv::backends::cpp_status().fused) return state.SkipWithError("the compiler made no program");
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void fused(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  constexpr auto f = vv::fuse<vv::spec<float, D...>, vv::spec<float, D...>>(F);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void table(benchmark::State& state) {
  tensor const x = waves({D...}, 0.1), y = waves({D...}, 0.7);
  constexpr auto f = vv::fuse<vv::spec<float, D...>, vv::spec<float, D...>>(F, vv::table_driven);
  for (auto _ : state) benchmark::DoNotOptimize(f(x, y));
}
template <auto F, index_t... D>
void row(std::string const& name) {
  benchmark::RegisterBenchmark(("compiled/" + name + "/eager").c_str(), &eager<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/compiled").c_str(), &compiled<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/cpp").c_str(), &cpp<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/fused").c_str(), &fused<F, D...>);
  benchmark::RegisterBenchmark(("compiled/" + name + "/table").c_str(), &table<F, D...>);
}
} // namespace

int main(int argc, char** argv) {
  row<arithmetic, 1000000>("arithmetic_1e6");
  row<functions, 1000000>("functions_1e6");
  row<arithmetic, 1000>("arithmetic_1e3");
  row<functions, 1000>("functions_1e3");
  row<arithmetic, 16>("arithmetic_16");
  row<gate, 1000000>("gate_1e6");
  row<rows, 256, 1000>("softmax_256x1000");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
