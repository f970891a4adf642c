// SPDX-License-Identifier: BSL-1.0
// What capture costs: an operator on metadata, on fake tensors, of symbolic sizes, without writes; a node of a trace; a
// guard.
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

#include <tuple>

namespace vv = varve;
using vv::tensor;

namespace {
void add(benchmark::State& state, tensor const& a) {
  for (auto _ : state) {
    tensor c = a + a;
    benchmark::DoNotOptimize(c);
  }
}
void add_real(benchmark::State& state) { add(state, vv::ones(vv::dims{4, 8})); }
void add_meta(benchmark::State& state) { add(state, tensor::meta({4, 8}, vv::dtype::float32)); }
void add_fake(benchmark::State& state) {
  vv::fake_mode mode;
  tensor const a = mode.from_tensor(vv::ones(vv::dims{4, 8}));
  vv::fake_mode_guard const on(mode);
  add(state, a);
}
void add_fake_outside(benchmark::State& state) { // of its mode
  vv::fake_mode mode;
  add(state, mode.from_tensor(vv::ones(vv::dims{4, 8})));
}
void add_symbolic(benchmark::State& state) {
  vv::shape_environment e;
  vv::fake_mode mode{{.environment = &e}};
  tensor const a = mode.from_tensor(vv::ones(vv::dims{4, 8}));
  vv::fake_mode_guard const on(mode);
  add(state, a);
}
void add_functional(benchmark::State& state) { // under the mode
  vv::functional_mode mode;
  tensor const a = mode.to_functional_tensor(vv::ones(vv::dims{4, 8}));
  vv::functional_mode_guard const on(mode);
  add(state, a);
}
void add_functionalize(benchmark::State& state) { // by the transform
  vv::functionalize([&](tensor const& a) {
    add(state, a);
    return a;
  })(vv::ones(vv::dims{4, 8}));
}
BENCHMARK(add_real)->Name("capture_add/real");
BENCHMARK(add_meta)->Name("capture_add/meta");
BENCHMARK(add_fake)->Name("capture_add/fake");
BENCHMARK(add_fake_outside)->Name("capture_add/fake_outside");
BENCHMARK(add_symbolic)->Name("capture_add/symbolic");
BENCHMARK(add_functional)->Name("capture_add/functional_mode");
BENCHMARK(add_functionalize)->Name("capture_add/functionalize");

/// A chain of 100 products, per node.
template <class... How>
void trace(benchmark::State& state, How const&... how) {
  constexpr int nodes = 100;
  auto const chain = [](tensor const& x) {
    tensor y = x;
    for (int k = 0; k < nodes; ++k) y = y * x;
    return y;
  };
  tensor const x = vv::ones(vv::dims{4, 8});
  for (auto _ : state) {
    vv::graph g = vv::make_fx(chain, how...)(x);
    benchmark::DoNotOptimize(g);
  }
  state.counters["per_node"] =
      benchmark::Counter(nodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
void trace_real(benchmark::State& state) { trace(state); }
void trace_fake(benchmark::State& state) { trace(state, vv::tracing::fake); }
void trace_symbolic(benchmark::State& state) { trace(state, vv::tracing::symbolic); }
BENCHMARK(trace_real)->Name("capture_trace/real");
BENCHMARK(trace_fake)->Name("capture_trace/fake");
BENCHMARK(trace_symbolic)->Name("capture_trace/symbolic");

/// Ten guards over three symbols.
void guards(benchmark::State& state) {
  vv::shape_environment e;
  vv::extent const a = e.size(5), b = e.size(7), c = e.size(11);
  for (int k = 0; k < 5; ++k) (void)(a * b < c * (k + 4)), (void)(a + k == b);
  vv::index_t numbers[] = {5, 7, 11};
  for (auto _ : state) {
    bool holds = e.hold(numbers);
    benchmark::DoNotOptimize(holds);
    benchmark::DoNotOptimize(numbers);
  }
  state.counters["guards"] = static_cast<double>(e.guards().size());
}
BENCHMARK(guards)->Name("capture_guards/ten");
} // namespace

BENCHMARK_MAIN();
