// SPDX-License-Identifier: BSL-1.0
/// @file
/// Jacobians of reprojection errors, as bundle adjustment needs them: time per observation. The problem is that of
/// examples/bundle_adjustment.cpp; the environment variable VARVE_BAL names a greater one. Blocks hold 64 observations,
/// number by number, so that SIMD registers hold one number of several.
#include "../examples/support/bal.hpp"
#include "functions.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t inputs = reprojection_size, outputs = 2, block_size = 64;

constexpr auto block_by_jacrev = vv::fuse(vv::vmap(vv::jacrev(reprojection_error), vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto block_by_gradients = vv::fuse(vv::vmap(bench::reprojection_rows, vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto one_by_jacrev = vv::fuse(vv::jacrev(reprojection_error));
constexpr auto on_tensors = vv::vmap(vv::jacrev(reprojection_error));

using one_in = array<double, inputs>;
using one_seen = array<double, outputs>;
using one_out = array<double, outputs, inputs>;
struct block {
  alignas(64) array<double, inputs, block_size> p;
  alignas(64) array<double, outputs, block_size> seen;
  alignas(64) array<double, outputs, inputs, block_size> jacobian;
};

#define KEEP __attribute__((noinline)) void
KEEP fused_jacrev(block& b) { block_by_jacrev.into(b.jacobian)(b.p, b.seen); }
KEEP fused_gradients(block& b) { block_by_gradients.into(b.jacobian)(b.p, b.seen); }
KEEP hand(block& b) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  for (index_t i = 0; i < block_size; i += W) {
    V p[inputs], j[outputs * inputs];
    for (index_t c = 0; c < inputs; ++c) p[c] = k::load(b.p.data + c * block_size + i);
    reprojection_jacobian_by_hand<double>(p, j);
    for (index_t c = 0; c < outputs * inputs; ++c) k::store<double>(b.jacobian.data + c * block_size + i, j[c]);
  }
}
KEEP fused_one(one_in const& p, one_seen const& seen, one_out& j) { one_by_jacrev.into(j)(p, seen); }
KEEP hand_one(one_in const& p, one_seen const&, one_out& j) { reprojection_jacobian_by_hand<double>(p.data, j.data); }

/// All observations, as rows and in blocks; the last block is filled up with the last observation.
struct problem {
  index_t size;
  std::vector<one_in> p;
  std::vector<one_seen> seen;
  std::vector<one_out> by_hand;
  std::vector<block> blocks;

  problem() {
    char const* const path = std::getenv("VARVE_BAL");
    bal_problem const b = load_bal(path ? path : VARVE_EXAMPLE_DATA "/problem-16-120-pre.txt");
    std::vector<double> const numbers = b.parameters();
    size = static_cast<index_t>(b.size());
    p.resize(b.size()), seen.resize(b.size()), by_hand.resize(b.size());
    blocks.resize(static_cast<std::size_t>((size + block_size - 1) / block_size));
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::copy_n(&numbers[i * inputs], inputs, p[i].data);
      std::copy_n(&b.seen[i * outputs], outputs, seen[i].data);
      hand_one(p[i], seen[i], by_hand[i]);
    }
    for (std::size_t i = 0; i < blocks.size() * block_size; ++i) {
      std::size_t const from = std::min(i, b.size() - 1);
      for (index_t c = 0; c < inputs; ++c)
        blocks[i / block_size].p(c, static_cast<index_t>(i % block_size)) = p[from][c];
      for (index_t c = 0; c < outputs; ++c)
        blocks[i / block_size].seen(c, static_cast<index_t>(i % block_size)) = seen[from][c];
    }
  }
};
problem& data() {
  static problem p;
  return p;
}
/// Every version must agree with derivatives by hand, one observation at a time, before it is timed.
template <class At>
void check(benchmark::State& state, At at) {
  for (index_t i = 0; i < data().size; ++i) {
    one_out const& expected = data().by_hand[static_cast<std::size_t>(i)];
    for (index_t r = 0; r < outputs; ++r) {
      double greatest = 0;
      for (index_t c = 0; c < inputs; ++c) greatest = std::max(greatest, std::fabs(expected(r, c)));
      for (index_t c = 0; c < inputs; ++c)
        if (!(std::fabs(at(i, r, c) - expected(r, c)) <= 1e-9 * std::max(std::fabs(expected(r, c)), 1e-6 * greatest)))
          return state.SkipWithError("the Jacobians differ");
    }
  }
}

void bench_bundle(benchmark::State& state, void (*f)(block&)) {
  auto& blocks = data().blocks;
  for (block& b : blocks) b.jacobian = {}, f(b);
  check(state, [&](index_t i, index_t r, index_t c) {
    return blocks[static_cast<std::size_t>(i / block_size)].jacobian(r, c, i % block_size);
  });
  while (state.KeepRunningBatch(static_cast<index_t>(blocks.size()) * block_size)) {
    for (block& b : blocks) f(b);
    benchmark::ClobberMemory();
  }
}
void bench_bundle_single(benchmark::State& state, void (*f)(one_in const&, one_seen const&, one_out&)) {
  auto const& [size, p, seen, by_hand, blocks] = data();
  std::vector<one_out> j(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) f(p[i], seen[i], j[i]);
  check(state, [&](index_t i, index_t r, index_t c) { return j[static_cast<std::size_t>(i)](r, c); });
  while (state.KeepRunningBatch(size)) {
    for (std::size_t i = 0; i < p.size(); ++i) f(p[i], seen[i], j[i]);
    benchmark::ClobberMemory();
  }
}
void bench_bundle_tensors(benchmark::State& state) {
  auto const& d = data();
  vv::tensor const p = vv::tensor::from_data(d.p[0].data, {d.size, inputs}),
                   seen = vv::tensor::from_data(d.seen[0].data, {d.size, outputs});
  vv::tensor j = vv::contiguous(on_tensors(p, seen));
  check(state, [&](index_t i, index_t r, index_t c) { return j.data<double>()[(i * outputs + r) * inputs + c]; });
  while (state.KeepRunningBatch(d.size)) {
    j = on_tensors(p, seen);
    benchmark::DoNotOptimize(j.raw());
  }
}

BENCHMARK_CAPTURE(bench_bundle, fused, fused_jacrev);
BENCHMARK_CAPTURE(bench_bundle, fused_gradients, fused_gradients);
BENCHMARK_CAPTURE(bench_bundle, hand, hand);
BENCHMARK_CAPTURE(bench_bundle_single, fused, fused_one);
BENCHMARK_CAPTURE(bench_bundle_single, hand, hand_one);
BENCHMARK(bench_bundle_tensors)->Name("bench_bundle/tensors");
} // namespace

BENCHMARK_MAIN();
