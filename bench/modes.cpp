// SPDX-License-Identifier: BSL-1.0
// What the dispatcher costs a call: keys, tables, modes, subclasses, the state of a thread.
#include <varve/varve.hpp>

#include <benchmark/benchmark.h>

namespace vv = varve;
using vv::tensor;

namespace {
tensor four(float by) { return tensor({1.0f * by, 2.0f, 3.0f, 4.0f}); }

struct passing : vv::dispatch_mode<passing> {
  auto process(auto op, auto const&... args) { return op(args...); }
};
struct wrapped : vv::tensor_subclass<wrapped> {
  tensor value;
  explicit wrapped(tensor v) : value(std::move(v)) {}
  auto parts() const { return std::tie(value); }
  wrapped with_parts(tensor const& v) const { return wrapped(v); }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    return vv::make_subclass(wrapped(op(vv::unwrap_all<wrapped>(x))));
  }
};

void call(benchmark::State& state, tensor const& a, tensor const& b) {
  for (auto _ : state) {
    tensor c = a + b;
    benchmark::DoNotOptimize(c);
  }
}
void dispatch_direct(benchmark::State& state) { // the kernel, without any dispatcher
  tensor const a = four(1), b = four(2);
  for (auto _ : state) {
    tensor c = vv::evaluate_tensor(vv::bound<vv::add_t>{}, a, b);
    benchmark::DoNotOptimize(c);
  }
}
void dispatch_plain(benchmark::State& state) { call(state, four(1), four(2)); }
void dispatch_boxed(benchmark::State& state) { // by its handle: keys computed, the table jumped through
  vv::boxed_args const x(four(1), four(2));
  (void)(x[0] + x[1]);
  vv::boxed_op const op{vv::ops::find("add"), &vv::no_attributes};
  for (auto _ : state) {
    tensor c = op(x);
    benchmark::DoNotOptimize(c);
  }
}
void dispatch_boxed_kernel(benchmark::State& state) { // the same kernel without keys and table
  vv::boxed_args const x(four(1), four(2));
  (void)(x[0] + x[1]);
  auto const* table = vv::ops::find("add");
  for (auto _ : state) {
    tensor c = table->eval(vv::no_attributes, x);
    benchmark::DoNotOptimize(c);
  }
}
void dispatch_excluded(benchmark::State& state) {
  vv::exclude_keys const off(vv::dispatch_key::autograd);
  call(state, four(1), four(2));
}
void dispatch_modes_1(benchmark::State& state) {
  passing m;
  vv::mode_guard const a{m};
  call(state, four(1), four(2));
}
void dispatch_modes_5(benchmark::State& state) {
  passing m;
  vv::mode_guard const a{m}, b{m}, c{m}, d{m}, e{m};
  call(state, four(1), four(2));
}
void dispatch_subclass(benchmark::State& state) {
  call(state, vv::make_subclass(wrapped(four(1))), vv::make_subclass(wrapped(four(2))));
}
void dispatch_snapshot(benchmark::State& state) {
  for (auto _ : state) {
    vv::thread_snapshot s;
    benchmark::DoNotOptimize(s);
    vv::restored const here(s);
    benchmark::ClobberMemory();
  }
}

// A static mode and its effect written inline must be one program.
struct scaling : vv::dispatch_mode<scaling> {
  constexpr auto process(auto op, auto const&... args) const { return op(args...) * 2.0f; }
};
constexpr auto polynomial = [](auto const& x, auto const& y) { return (x * y + x) * y; };
void static_mode_with(benchmark::State& state) {
  double a = 1, b = 2;
  scaling m;
  for (auto _ : state) {
    benchmark::DoNotOptimize(a);
    benchmark::DoNotOptimize(b);
    double c = vv::with(m, polynomial, a, b);
    benchmark::DoNotOptimize(c);
  }
}
void static_mode_inline(benchmark::State& state) {
  double a = 1, b = 2;
  for (auto _ : state) {
    benchmark::DoNotOptimize(a);
    benchmark::DoNotOptimize(b);
    double c = ((a * b * 2.0f + a) * 2.0f) * b * 2.0f;
    benchmark::DoNotOptimize(c);
  }
}
using row = vv::array<float, 1024>;
constexpr auto in_mode = [](auto const& x, auto const& y) {
  scaling m;
  return vv::with(m, polynomial, x, y);
};
constexpr auto written_out = [](auto const& x, auto const& y) { return ((x * y * 2.0f + x) * 2.0f) * y * 2.0f; };
template <class F>
void fused(benchmark::State& state, F const& f) {
  static row a{}, b{}, c{};
  for (auto _ : state) {
    benchmark::DoNotOptimize(&a);
    f.into(c)(a, b);
    benchmark::ClobberMemory();
  }
}
void static_mode_fused(benchmark::State& state) { fused(state, vv::fuse(in_mode)); }
void static_mode_fused_inline(benchmark::State& state) { fused(state, vv::fuse(written_out)); }
} // namespace

BENCHMARK(dispatch_direct)->Name("dispatch/direct");
BENCHMARK(dispatch_plain)->Name("dispatch/plain");
BENCHMARK(dispatch_boxed_kernel)->Name("dispatch/boxed_kernel");
BENCHMARK(dispatch_boxed)->Name("dispatch/boxed");
BENCHMARK(dispatch_excluded)->Name("dispatch/excluded");
BENCHMARK(dispatch_modes_1)->Name("dispatch/modes_1");
BENCHMARK(dispatch_modes_5)->Name("dispatch/modes_5");
BENCHMARK(dispatch_subclass)->Name("dispatch/subclass");
BENCHMARK(dispatch_snapshot)->Name("dispatch/snapshot");
BENCHMARK(static_mode_inline)->Name("static_mode/inline");
BENCHMARK(static_mode_with)->Name("static_mode/with");
BENCHMARK(static_mode_fused_inline)->Name("static_mode/fused_inline");
BENCHMARK(static_mode_fused)->Name("static_mode/fused_with");
BENCHMARK_MAIN();
