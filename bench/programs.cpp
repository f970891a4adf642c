// SPDX-License-Identifier: BSL-1.0
// Whole programs: fused gradients beside gradients written by hand.
#include "functions.hpp"

#include <benchmark/benchmark.h>

namespace vv = varve;

// ---- 1e4 steps of the Lorenz system by Runge-Kutta of order four: the gradient of the last x with respect to the
// initial state and the three parameters
namespace {
constexpr vv::index_t steps = 10000;
constexpr double dt = bench::lorenz_step;

struct vector {
  double x, y, z;
};
struct parameters {
  double sigma, rho, beta;
};
vector rate(vector u, parameters p) {
  return {p.sigma * (u.y - u.x), u.x * (p.rho - u.z) - u.y, u.x * u.y - p.beta * u.z};
}
/// Adds the cotangents of a rate's operands, given that of the rate.
void pull_rate(vector u, parameters p, vector g, vector& du, parameters& dp) {
  du.x += (p.rho - u.z) * g.y + u.y * g.z - p.sigma * g.x;
  du.y += p.sigma * g.x - g.y + u.x * g.z;
  du.z -= u.x * g.y + p.beta * g.z;
  dp.sigma += g.x * (u.y - u.x);
  dp.rho += g.y * u.x;
  dp.beta -= g.z * u.z;
}
vector along(vector u, double a, vector k) { return {u.x + a * k.x, u.y + a * k.y, u.z + a * k.z}; }
struct gradient {
  vector state;
  parameters of;
};
vector next(vector u, parameters p) {
  vector const k1 = rate(u, p), k2 = rate(along(u, dt / 2, k1), p), k3 = rate(along(u, dt / 2, k2), p),
               k4 = rate(along(u, dt, k3), p);
  return {u.x + dt / 6 * (k1.x + 2 * k2.x + 2 * k3.x + k4.x), u.y + dt / 6 * (k1.y + 2 * k2.y + 2 * k3.y + k4.y),
          u.z + dt / 6 * (k1.z + 2 * k2.z + 2 * k3.z + k4.z)};
}
/// From the cotangents behind a step to those before it.
void pull_step(vector v, parameters p, gradient& r) {
  vector const k1 = rate(v, p), v2 = along(v, dt / 2, k1), k2 = rate(v2, p), v3 = along(v, dt / 2, k2),
               k3 = rate(v3, p), v4 = along(v, dt, k3);
  vector const g = r.state;
  vector g1{dt / 6 * g.x, dt / 6 * g.y, dt / 6 * g.z}, g2{dt / 3 * g.x, dt / 3 * g.y, dt / 3 * g.z}, g3 = g2, d{};
  pull_rate(v4, p, g1, d, r.of);
  r.state = along(r.state, 1, d), g3 = along(g3, dt, d), d = {};
  pull_rate(v3, p, g3, d, r.of);
  r.state = along(r.state, 1, d), g2 = along(g2, dt / 2, d), d = {};
  pull_rate(v2, p, g2, d, r.of);
  r.state = along(r.state, 1, d), g1 = along(g1, dt / 2, d), d = {};
  pull_rate(v, p, g1, d, r.of);
  r.state = along(r.state, 1, d);
}
[[gnu::noinline]] gradient by_hand(vector u, parameters p) {
  static vector before[steps];
  for (vector& kept : before) kept = u, u = next(u, p);
  gradient r{{1, 0, 0}, {0, 0, 0}};
  for (vv::index_t k = steps - 1; k >= 0; --k) pull_step(before[k], p, r);
  return r;
}
/// ... which keeps what is between segments, and runs each again when it comes back to it.
[[gnu::noinline]] gradient by_hand_in_segments(vector u, parameters p) {
  constexpr vv::index_t segment = 100;
  static_assert(segment * segment == steps);
  static vector between[steps / segment], before[segment];
  for (vector& kept : between) {
    kept = u;
    for (vv::index_t k = 0; k < segment; ++k) u = next(u, p);
  }
  gradient r{{1, 0, 0}, {0, 0, 0}};
  for (vv::index_t s = steps / segment - 1; s >= 0; --s) {
    u = between[s];
    for (vector& kept : before) kept = u, u = next(u, p);
    for (vv::index_t k = segment - 1; k >= 0; --k) pull_step(before[k], p, r);
  }
  return r;
}
double start = 1;

void lorenz_hand(benchmark::State& state, gradient (*f)(vector, parameters)) {
  for (auto _ : state) benchmark::DoNotOptimize(f({start, 1, 1}, {10, 28, 8.0 / 3}));
}
template <vv::index_t Segment>
[[gnu::noinline]] gradient by_fuse(vector u, parameters p) {
  constexpr auto f = vv::fuse(vv::grad<0, 1, 2, 3, 4, 5>(bench::last_x<steps, Segment>));
  gradient r;
  f.into(r.state.x, r.state.y, r.state.z, r.of.sigma, r.of.rho, r.of.beta)(u.x, u.y, u.z, p.sigma, p.rho, p.beta);
  return r;
}
template <vv::index_t Segment>
void lorenz_fused(benchmark::State& state) {
  vector const at{start, 1, 1};
  parameters const p{10, 28, 8.0 / 3};
  if (std::abs(by_fuse<Segment>(at, p).of.sigma / by_hand(at, p).of.sigma - 1) > 1e-9)
    state.SkipWithError("another gradient than by hand");
  for (auto _ : state) benchmark::DoNotOptimize(by_fuse<Segment>(at, p));
}
} // namespace

BENCHMARK_CAPTURE(lorenz_hand, , by_hand)->Name("bench_lorenz/hand");
BENCHMARK(lorenz_fused<0>)->Name("bench_lorenz/fused");
BENCHMARK_CAPTURE(lorenz_hand, , by_hand_in_segments)->Name("bench_lorenz_segments/hand");
BENCHMARK(lorenz_fused<vv::sqrt_segments>)->Name("bench_lorenz_segments/fused");

BENCHMARK_MAIN();
