// SPDX-License-Identifier: BSL-1.0
/// @file
/// What eager autograd costs: recording, a forward and backward pass over operators on 4 floats with the allocations it
/// makes, and chains of any length, whose gradient must stay a small multiple of the forward pass. torch.cpp measures
/// the rows of the same names with libtorch.
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <new>

namespace vv = varve;
using vv::tensor;

namespace {
std::size_t allocations = 0;

tensor ramp(vv::dims const& sizes) {
  tensor t = vv::contiguous(vv::zeros(sizes, vv::dtype::float32));
  for (vv::index_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = 0.1f + 0.01f * static_cast<float>(k % 97);
  return t;
}
void add_eager(benchmark::State& state) {
  tensor const a = ramp({4}), b = ramp({4});
  a.requires_grad_();
  for (auto _ : state) {
    tensor r = a + b;
    benchmark::DoNotOptimize(r);
  }
}
tensor chain(tensor const& x, tensor const& w, tensor const& b) {
  auto const u = vv::tanh(x * w + b);
  auto const v = vv::tanh(u * w + b);
  return vv::sum(vv::tanh(v * w + b));
}
void chain_backward(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4}), b = ramp({4});
  x.requires_grad_();
  std::size_t const before = allocations;
  for (auto _ : state) {
    chain(x, w, b).backward();
    x.zero_grad();
  }
  state.counters["allocations_per_operator"] =
      static_cast<double>(allocations - before) / (10.0 * static_cast<double>(state.iterations()));
}
/// A chain of products and sums with `range(0)` operators: forward alone, nothing recorded; recorded, and the graph let
/// go; and with its gradient.
tensor deep(tensor const& x, tensor const& w, vv::index_t n) {
  tensor r = x;
  for (vv::index_t k = 0; k < n; k += 2) r = r * w + x;
  return r;
}
void deep_forward(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4});
  for (auto _ : state) {
    tensor r = deep(x, w, state.range(0));
    benchmark::DoNotOptimize(r);
  }
}
void deep_recorded(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4});
  x.requires_grad_();
  for (auto _ : state) {
    tensor r = deep(x, w, state.range(0));
    benchmark::DoNotOptimize(r);
  }
}
void deep_gradient(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4});
  x.requires_grad_();
  for (auto _ : state) {
    vv::sum(deep(x, w, state.range(0))).backward();
    x.zero_grad();
  }
}
} // namespace

[[gnu::noinline]] void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  ++allocations;
  std::size_t const align = static_cast<std::size_t>(a);
  if (void* p = std::aligned_alloc(align, (n + align - 1) / align * align)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

BENCHMARK(add_eager)->Name("autograd/add");
BENCHMARK(chain_backward)->Name("autograd/chain_10");
BENCHMARK(deep_forward)->Name("autograd/deep_forward")->Arg(10)->Arg(1000)->Arg(100000)->Arg(1000000);
BENCHMARK(deep_recorded)->Name("autograd/deep_recorded")->Arg(10)->Arg(1000)->Arg(100000)->Arg(1000000);
BENCHMARK(deep_gradient)->Name("autograd/deep_gradient")->Arg(10)->Arg(1000)->Arg(100000)->Arg(1000000);

BENCHMARK_MAIN();
