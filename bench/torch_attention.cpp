// SPDX-License-Identifier: BSL-1.0
/// @file
/// libtorch's time for attention as in flex_attention.cpp, on one thread. Built where libtorch-dev is found.
#include <benchmark/benchmark.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

namespace {
using at::Tensor;

struct operands {
  Tensor q, k, v;
  explicit operands(bool differentiated) {
    at::manual_seed(1);
    for (Tensor* x : {&q, &k, &v}) *x = at::randn({1, 8, 512, 64}).requires_grad_(differentiated);
  }
};
Tensor attend(operands const& o) {
  Tensor const scores = at::matmul(o.q, at::transpose(o.k, -2, -1)) * 0.125;
  return at::matmul(at::softmax(scores, -1), o.v);
}
Tensor attend_at_once(operands const& o) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(o.q, o.k, o.v);
#else
  return std::get<0>(at::_scaled_dot_product_attention(o.q, o.k, o.v));
#endif
}
void full(benchmark::State& state) {
  operands const o(false);
  for (auto _ : state) benchmark::DoNotOptimize(attend_at_once(o));
}
void full_by_formula(benchmark::State& state) {
  operands const o(false);
  for (auto _ : state) benchmark::DoNotOptimize(attend(o));
}
void with_gradient(benchmark::State& state) {
  operands const o(true);
  Tensor const g = at::randn({1, 8, 512, 64});
  for (auto _ : state) benchmark::DoNotOptimize(torch::autograd::grad({attend_at_once(o)}, {o.q, o.k, o.v}, {g}));
}
BENCHMARK(full);
BENCHMARK(full_by_formula);
BENCHMARK(with_gradient);
} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
