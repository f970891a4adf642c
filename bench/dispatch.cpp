// SPDX-License-Identifier: BSL-1.0
/// @file
/// What the dynamic world costs: operators on small tensors, plain and below each kind of layer, next to the floor (the
/// loop and the allocation alone); and large ones next to the memory and the multiply-add units. torch.cpp measures the
/// rows of the same names with libtorch.
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <ctime>

namespace vv = varve;
using vv::tensor;

namespace {

tensor ramp(vv::dims const& sizes, float from = 0.1f) {
  tensor t = vv::contiguous(vv::zeros(sizes, vv::dtype::float32));
  for (vv::index_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = from + 0.01f * static_cast<float>(k % 97);
  return t;
}
struct watching : vv::dispatch_mode<watching> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};

// ---- one add of 4 floats
// --------------------------------------------------------------------------------------------------------------------
__attribute__((noinline)) void add_4(float const* a, float const* b, float* r) {
  for (int k = 0; k < 4; ++k) r[k] = a[k] + b[k];
}
void floor_loop(benchmark::State& state) {
  float a[4]{1, 2, 3, 4}, b[4]{5, 6, 7, 8}, r[4];
  for (auto _ : state) {
    add_4(a, b, r);
    benchmark::ClobberMemory();
  }
}
void floor_new(benchmark::State& state) {
  float a[4]{1, 2, 3, 4}, b[4]{5, 6, 7, 8};
  for (auto _ : state) {
    auto* r = new float[4];
    add_4(a, b, r);
    benchmark::DoNotOptimize(r);
    delete[] r;
  }
}
void add_plain(benchmark::State& state) {
  tensor const a = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    tensor r = a + b;
    benchmark::DoNotOptimize(r);
  }
}
void add_mode(benchmark::State& state) {
  tensor const a = ramp({4}), b = ramp({4});
  watching m;
  vv::mode_guard const on{m};
  for (auto _ : state) {
    tensor r = a + b;
    benchmark::DoNotOptimize(r);
  }
}
void add_jvp(benchmark::State& state) {
  tensor const a = ramp({4}), b = ramp({4});
  auto const f = [&](tensor const& x) {
    for (auto _ : state) {
      tensor r = x + b;
      benchmark::DoNotOptimize(r);
    }
    return x;
  };
  vv::jvp(f, std::tuple{a}, std::tuple{b});
}
void add_vmap(benchmark::State& state) {
  tensor const a = ramp({2, 2}), b = ramp({2, 2});
  auto const f = [&](tensor const& x, tensor const& y) {
    for (auto _ : state) {
      tensor r = x + y;
      benchmark::DoNotOptimize(r);
    }
    return x;
  };
  vv::vmap(f)(a, b);
}
/// A recording keeps its operators: a hundred are timed at once, as long as none is pulled back or let go.
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
  tensor const a = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    double seconds = 0;
    vv::grad([&](tensor const& x) {
      double const start = thread_seconds();
      tensor r = x;
      for (int k = 0; k < recorded; ++k) r = r + b;
      seconds = thread_seconds() - start - clock_seconds;
      return vv::sum(x);
    })(a);
    state.SetIterationTime(seconds / recorded);
  }
}

// ---- a chain of 10 operators on 4 floats
// -----------------------------------------------------------------------------------------------------------------
constexpr auto chain = [](auto const& x, auto const& w, auto const& b) {
  auto const u = vv::tanh(x * w + b);
  auto const v = vv::tanh(u * w + b);
  return vv::sum(vv::tanh(v * w + b));
};
constexpr auto fused_chain = vv::fuse(vv::grad(chain));

__attribute__((noinline)) void chain_by_hand(float const* x, float const* w, float const* b, float* g) {
  for (int k = 0; k < 4; ++k) {
    float const u = std::tanh(x[k] * w[k] + b[k]), v = std::tanh(u * w[k] + b[k]), t = std::tanh(v * w[k] + b[k]);
    g[k] = (1 - t * t) * w[k] * (1 - v * v) * w[k] * (1 - u * u) * w[k];
  }
}
void chain_hand(benchmark::State& state) {
  float x[4]{.1f, .2f, .3f, .4f}, w[4]{1, 2, 3, 4}, b[4]{.5f, .6f, .7f, .8f}, g[4];
  for (auto _ : state) {
    chain_by_hand(x, w, b, g);
    benchmark::ClobberMemory();
  }
}
void chain_fused(benchmark::State& state) {
  vv::array<float, 4> x{.1f, .2f, .3f, .4f}, w{1, 2, 3, 4}, b{.5f, .6f, .7f, .8f};
  for (auto _ : state) {
    benchmark::DoNotOptimize(x);
    auto g = fused_chain(x, w, b);
    benchmark::DoNotOptimize(g);
  }
}
void chain_taped(benchmark::State& state) { // static values, not fused: a tape on the stack
  vv::array<float, 4> x{.1f, .2f, .3f, .4f}, w{1, 2, 3, 4}, b{.5f, .6f, .7f, .8f};
  for (auto _ : state) {
    benchmark::DoNotOptimize(x);
    auto g = vv::grad(chain)(x, w, b);
    benchmark::DoNotOptimize(g);
  }
}
void chain_forward(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    tensor y = chain(x, w, b);
    benchmark::DoNotOptimize(y);
  }
}
void chain_gradient(benchmark::State& state) {
  tensor const x = ramp({4}), w = ramp({4}), b = ramp({4});
  for (auto _ : state) {
    tensor g = vv::grad(chain)(x, w, b);
    benchmark::DoNotOptimize(g);
  }
}

// ---- a chain of numbers under a bare static grad
// ---------------------------------------------------------------------------------------------------------
constexpr auto numbers = [](auto x, auto y) {
  auto const t = x * y + vv::sin(x), u = vv::exp(-(t * t));
  return u / (1.0 + y * y) + vv::tanh(t) * x;
};
void numbers_taped(benchmark::State& state) {
  double x = 0.7, y = -0.3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(x);
    auto g = vv::grad<0, 1>(numbers)(x, y);
    benchmark::DoNotOptimize(g);
  }
}
void numbers_hand(benchmark::State& state) {
  double x = 0.7, y = -0.3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(x);
    double const t = x * y + std::sin(x), u = std::exp(-(t * t)), d = 1.0 / (1.0 + y * y), h = std::tanh(t),
                 gt = (1.0 - h * h) * x - 2.0 * t * (u * d);
    std::pair g(gt * (y + std::cos(x)) + h, gt * x - u * d * d * 2.0 * y);
    benchmark::DoNotOptimize(g);
  }
}

// ---- large ones
// --------------------------------------------------------------------------------------------------------------------
constexpr std::size_t million = 1000000;
/// The bandwidth that two loads and a store leave: into memory at hand, as one asks of a tensor library with
/// `add_`-like reuse.
void big_triad(benchmark::State& state) {
  tensor const a = ramp({million}), b = ramp({million}), r = ramp({million});
  float const *pa = a.data<float>(), *pb = b.data<float>();
  float* pr = r.data<float>();
  for (auto _ : state) {
    for (std::size_t k = 0; k < million; ++k) pr[k] = pa[k] + pb[k];
    benchmark::ClobberMemory();
  }
}
void big_memcpy(benchmark::State& state) {
  tensor const a = ramp({million}), r = ramp({million});
  for (auto _ : state) {
    std::memcpy(r.raw(), a.raw(), million * sizeof(float));
    benchmark::ClobberMemory();
  }
}
void big_add(benchmark::State& state) {
  tensor const a = ramp({million}), b = ramp({million});
  for (auto _ : state) {
    tensor r = a + b;
    benchmark::DoNotOptimize(r);
  }
}
void big_add_in_place(benchmark::State& state) {
  tensor const a = ramp({million}), b = ramp({million});
  for (auto _ : state) {
    vv::add_(a, b);
    benchmark::ClobberMemory();
  }
}
void matmul(benchmark::State& state) {
  vv::index_t const n = state.range(0);
  tensor const a = ramp({n, n}), b = ramp({n, n});
  for (auto _ : state) {
    tensor r = vv::matmul(a, b);
    benchmark::DoNotOptimize(r);
  }
  double const n3 = static_cast<double>(n * n * n);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * n3, benchmark::Counter::kIsIterationInvariantRate);
}

/// Eight images of side `range(2)`, a kernel of 3 x 3 from `range(0)` to `range(1)` channels; with `gradient` also both
/// gradients.
template <bool gradient>
void conv2d(benchmark::State& state) {
  vv::index_t const in = state.range(0), out = state.range(1), side = state.range(2);
  tensor const x = ramp({8, in, side, side}), w = ramp({out, in, 3, 3}), g = ramp({8, out, side, side});
  auto const f = [](auto const& a, auto const& b) { return vv::conv2d(a, b, vv::none, 1, 1); };
  for (auto _ : state) {
    if constexpr (gradient) {
      auto r = vv::vjp(f, x, w).second(g);
      benchmark::DoNotOptimize(r);
    } else {
      tensor r = f(x, w);
      benchmark::DoNotOptimize(r);
    }
  }
  double const flops = static_cast<double>((gradient ? 3 : 1) * 2 * 8 * in * out * side * side * 9);
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// What the multiply-add units give when nothing is loaded: the wall before `matmul`.
constexpr double peak_flops = 2000000;
void peak(benchmark::State& state) {
  namespace k = vv::kernel;
  using V = k::batch<float>;
  constexpr int chains = 12; // enough to hide the latency, few enough for 16 registers
  V a[chains], x(1.0f), y(1e-9f);
  benchmark::DoNotOptimize(x);
  benchmark::DoNotOptimize(y);
  for (auto& v : a) v = x;
  constexpr int rounds = static_cast<int>(peak_flops) / (2 * chains * static_cast<int>(k::lanes<float>));
  for (auto _ : state) {
    for (int r = 0; r < rounds; ++r)
      for (auto& v : a) v = k::fma<float>(v, x, y);
    benchmark::DoNotOptimize(a);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * peak_flops, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(floor_loop)->Name("add_4/loop");
BENCHMARK(floor_new)->Name("add_4/loop_and_new");
BENCHMARK(add_plain)->Name("add_4/plain");
BENCHMARK(add_grad)->Name("add_4/grad")->UseManualTime()->MinTime(0.002);
BENCHMARK(add_jvp)->Name("add_4/jvp");
BENCHMARK(add_vmap)->Name("add_4/vmap");
BENCHMARK(add_mode)->Name("add_4/mode");
BENCHMARK(chain_hand)->Name("chain_10/hand");
BENCHMARK(chain_fused)->Name("chain_10/fused_gradient");
BENCHMARK(chain_taped)->Name("chain_10/taped_gradient");
BENCHMARK(chain_forward)->Name("chain_10/forward");
BENCHMARK(chain_gradient)->Name("chain_10/gradient");
BENCHMARK(numbers_hand)->Name("numbers/hand");
BENCHMARK(numbers_taped)->Name("numbers/taped_gradient");
BENCHMARK(big_memcpy)->Name("add_1e6/memcpy");
BENCHMARK(big_triad)->Name("add_1e6/loop");
BENCHMARK(big_add)->Name("add_1e6/plain");
BENCHMARK(big_add_in_place)->Name("add_1e6/in_place");
BENCHMARK(matmul)->Name("matmul")->Arg(64)->Arg(256)->Arg(1024);
BENCHMARK(conv2d<false>)->Name("conv2d/forward")->Args({16, 32, 32})->Args({64, 64, 14});
BENCHMARK(conv2d<true>)->Name("conv2d/gradient")->Args({16, 32, 32})->Args({64, 64, 14});
BENCHMARK(peak);
} // namespace

BENCHMARK_MAIN();
