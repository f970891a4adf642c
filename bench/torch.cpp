// SPDX-License-Identifier: BSL-1.0
/// @file
/// libtorch's time for the rows of the same names in dispatch.cpp. Built where libtorch-dev is found.
#include <benchmark/benchmark.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ctime>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

namespace {
using at::Tensor;

Tensor ramp(at::IntArrayRef sizes) {
  Tensor t = at::empty(sizes);
  for (std::int64_t k = 0; k < t.numel(); ++k) t.data_ptr<float>()[k] = 0.1f + 0.01f * static_cast<float>(k % 97);
  return t;
}

void add_plain(benchmark::State& state) {
  Tensor const a = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    Tensor r = at::add(a, b);
    benchmark::DoNotOptimize(r);
  }
}
constexpr int recorded = 100;
double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
/// What asking for the time takes, a system call: as much as four recorded operators.
double const clock_seconds = [] {
  double least = 1;
  for (int k = 0; k < 1000; ++k) {
    double const start = thread_seconds(), d = thread_seconds() - start;
    least = d < least ? d : least;
  }
  return least;
}();
void add_grad(benchmark::State& state) {
  Tensor const a = ramp({4}).requires_grad_(), b = ramp({4});
  for (auto _ : state) {
    double const start = thread_seconds();
    Tensor r = a;
    for (int k = 0; k < recorded; ++k) r = at::add(r, b);
    state.SetIterationTime((thread_seconds() - start - clock_seconds) / recorded);
  }
}
void add_vmap(benchmark::State& state) { // one level of functorch's vmap, which C++ programs have no public door to
  namespace ft = at::functorch;
  Tensor const a = ramp({2, 2}), b = ramp({2, 2});
  auto const level = ft::initAndPushDynamicLayer(ft::TransformType::Vmap, 2, ft::RandomnessType::Error);
  {
    Tensor const x = ft::makeBatched(a, 0, level), y = ft::makeBatched(b, 0, level);
    for (auto _ : state) {
      Tensor r = at::add(x, y);
      benchmark::DoNotOptimize(r);
    }
  }
  ft::popDynamicLayerAndDeleteMetadata();
}

Tensor chain(Tensor const& x, Tensor const& w, Tensor const& b) {
  auto const u = at::tanh(x * w + b);
  auto const v = at::tanh(u * w + b);
  return at::sum(at::tanh(v * w + b));
}
void chain_forward(benchmark::State& state) {
  Tensor const x = ramp({4}), w = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    Tensor y = chain(x, w, b);
    benchmark::DoNotOptimize(y);
  }
}
void chain_gradient(benchmark::State& state) {
  Tensor const x = ramp({4}).requires_grad_(), w = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    auto g = torch::autograd::grad({chain(x, w, b)}, {x});
    benchmark::DoNotOptimize(g);
  }
}

void add_eager(benchmark::State& state) {
  Tensor const a = ramp({4}).requires_grad_(), b = ramp({4});
  for (auto _ : state) {
    Tensor r = at::add(a, b);
    benchmark::DoNotOptimize(r);
  }
}
void chain_backward(benchmark::State& state) {
  Tensor x = ramp({4}).requires_grad_(), w = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    chain(x, w, b).backward();
    x.mutable_grad() = Tensor();
  }
}

void big_add(benchmark::State& state) {
  Tensor const a = ramp({1000000}), b = ramp({1000000});
  for (auto _ : state) {
    Tensor r = at::add(a, b);
    benchmark::DoNotOptimize(r);
  }
}
void big_add_in_place(benchmark::State& state) {
  Tensor a = ramp({1000000}), b = ramp({1000000});
  for (auto _ : state) {
    a.add_(b);
    benchmark::ClobberMemory();
  }
}
void matmul(benchmark::State& state) {
  auto const n = state.range(0);
  Tensor const a = ramp({n, n}), b = ramp({n, n});
  for (auto _ : state) {
    Tensor r = at::matmul(a, b);
    benchmark::DoNotOptimize(r);
  }
  double const n3 = static_cast<double>(n * n * n);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * n3, benchmark::Counter::kIsIterationInvariantRate);
}
template <bool gradient>
void conv2d(benchmark::State& state) {
  auto const in = state.range(0), out = state.range(1), side = state.range(2);
  Tensor const x = ramp({8, in, side, side}).requires_grad_(gradient),
               w = ramp({out, in, 3, 3}).requires_grad_(gradient), g = ramp({8, out, side, side});
  for (auto _ : state) {
    Tensor r = at::conv2d(x, w, {}, 1, 1);
    if constexpr (gradient) {
      auto d = torch::autograd::grad({r}, {x, w}, {g});
      benchmark::DoNotOptimize(d);
    }
    benchmark::DoNotOptimize(r);
  }
  double const flops = static_cast<double>((gradient ? 3 : 1) * 2 * 8 * in * out * side * side * 9);
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * flops, benchmark::Counter::kIsIterationInvariantRate);
}
void dispatch_excluded(benchmark::State& state) {
  at::AutoDispatchBelowADInplaceOrView const off;
  add_plain(state);
}
void dispatch_boxed(benchmark::State& state) {
  Tensor const a = ramp({4}), b = ramp({4});
  auto const op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  for (auto _ : state) {
    torch::jit::Stack stack{a, b, at::Scalar(1)};
    op.callBoxed(&stack);
    benchmark::DoNotOptimize(stack);
  }
}
void dispatch_snapshot(benchmark::State& state) {
  for (auto _ : state) {
    at::ThreadLocalState const s;
    at::ThreadLocalStateGuard const here(s);
    benchmark::ClobberMemory();
  }
}

BENCHMARK(dispatch_excluded)->Name("dispatch/excluded");
BENCHMARK(dispatch_boxed)->Name("dispatch/boxed");
BENCHMARK(dispatch_snapshot)->Name("dispatch/snapshot");
BENCHMARK(add_plain)->Name("add_4/plain");
BENCHMARK(add_grad)->Name("add_4/grad")->UseManualTime()->MinTime(0.002);
BENCHMARK(add_vmap)->Name("add_4/vmap");
BENCHMARK(chain_forward)->Name("chain_10/forward");
BENCHMARK(chain_gradient)->Name("chain_10/gradient");
BENCHMARK(add_eager)->Name("autograd/add");
BENCHMARK(chain_backward)->Name("autograd/chain_10");
BENCHMARK(big_add)->Name("add_1e6/plain");
BENCHMARK(big_add_in_place)->Name("add_1e6/in_place");
BENCHMARK(matmul)->Name("matmul")->Arg(64)->Arg(256)->Arg(1024);
BENCHMARK(conv2d<false>)->Name("conv2d/forward")->Args({16, 32, 32})->Args({64, 64, 14});
BENCHMARK(conv2d<true>)->Name("conv2d/gradient")->Args({16, 32, 32})->Args({64, 64, 14});
} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1); // varve has one thread, too
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
