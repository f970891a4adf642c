// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <benchmark/benchmark.h>
#include <varve/varve.hpp>

/// @file
/// What one operator costs on four floats in the dynamic world, for programs with and without an opponent beside it.
namespace dispatch_bench {

namespace vv = varve;

struct passing : vv::dispatch_mode<passing> {
  auto process(auto op, auto const&... args) { return op(args...); }
};

inline vv::tensor four(float a) { return vv::tensor({a, a + 1, a + 2, a + 3}); }

inline void add_plain(benchmark::State& state) {
  vv::tensor const a = four(1), b = four(2);
  for (auto _ : state) {
    vv::tensor c = vv::add(a, b);
    benchmark::DoNotOptimize(c);
  }
}
inline void add_under_mode(benchmark::State& state) {
  vv::tensor const a = four(1), b = four(2);
  passing p;
  vv::mode_guard const on{p};
  for (auto _ : state) {
    vv::tensor c = vv::add(a, b);
    benchmark::DoNotOptimize(c);
  }
}
/// Adds inside one `grad`, each recorded; items are operators.
inline void add_recording(benchmark::State& state) {
  vv::tensor const a = four(1), b = four(2);
  constexpr int count = 1000;
  for (auto _ : state) {
    vv::tensor g = vv::grad([&](auto const& x) {
      for (int k = 0; k < count; ++k) {
        vv::tensor c = vv::add(x, b);
        benchmark::DoNotOptimize(c);
      }
      return vv::sum(x);
    })(a);
    benchmark::DoNotOptimize(g);
  }
  state.SetItemsProcessed(state.iterations() * count);
}
/// Adds inside one `jvp` or `vmap`; items are operators.
inline void add_in_jvp(benchmark::State& state) {
  vv::tensor const a = four(1), b = four(2);
  constexpr int count = 1000;
  for (auto _ : state) {
    auto y = vv::jvp([&](auto const& x) {
      for (int k = 0; k < count; ++k) {
        vv::tensor c = vv::add(x, b);
        benchmark::DoNotOptimize(c);
      }
      return x;
    }, std::tuple{a}, std::tuple{b});
    benchmark::DoNotOptimize(y);
  }
  state.SetItemsProcessed(state.iterations() * count);
}
inline void add_in_vmap(benchmark::State& state) {
  vv::tensor const a = four(1), b = four(2);
  constexpr int count = 1000;
  for (auto _ : state) {
    auto y = vv::vmap([&](auto const& x, auto const& z) {
      for (int k = 0; k < count; ++k) {
        vv::tensor c = vv::add(x, z);
        benchmark::DoNotOptimize(c);
      }
      return x;
    })(a, b);
    benchmark::DoNotOptimize(y);
  }
  state.SetItemsProcessed(state.iterations() * count);
}
/// Ten chained products and their gradient; items are operators.
inline void chain_of_ten(benchmark::State& state) {
  vv::tensor const a = four(0.5f), b = four(0.25f);
  for (auto _ : state) {
    vv::tensor g = vv::grad([&](auto const& x) {
      vv::tensor y = x;
      for (int k = 0; k < 10; ++k) y = vv::mul(y, b);
      return vv::sum(y);
    })(a);
    benchmark::DoNotOptimize(g);
  }
  state.SetItemsProcessed(state.iterations() * 10);
}

} // namespace dispatch_bench
