// SPDX-License-Identifier: BSL-1.0
/// @file
/// Sparse derivatives: the Hessian of Rosenbrock's function and the Jacobian of a tridiagonal equation, fused, beside
/// one gradient and code by hand; and the parts of a plan at run time: pattern, coloring, recovery.
#include "measure.hpp"

#include <varve/sparse.hpp>
#include <varve/varve.hpp>

namespace vv = varve;
using vv::array, vv::tensor;

namespace {
constexpr vv::index_t n = 1000;
constexpr auto rosenbrock = [](auto const& x) {
  auto const a = vv::slice(x, vv::axis<0>, vv::range<0, -1>), b = vv::slice(x, vv::axis<0>, vv::range<1, vv::end>);
  return vv::sum(100.0 * vv::square(b - a * a) + vv::square(1.0 - a));
};
constexpr auto bratu = [](auto const& u) {
  auto const p = vv::pad(u, vv::ints<1, 1>{});
  return vv::slice(p, vv::axis<0>, vv::range<0, -2>) - 2.0 * u + vv::slice(p, vv::axis<0>, vv::range<2, vv::end>) +
         0.1 * vv::exp(u);
};
constexpr auto gradient = vv::fuse(vv::grad(rosenbrock));
constexpr auto hessian = vv::fuse([](auto const& x) { return vv::sparse_hessian(rosenbrock).values(x); });
constexpr auto hessian_compressed =
    vv::fuse([](auto const& x) { return vv::sparse_hessian(rosenbrock).compressed(x); });
constexpr auto jacobian = vv::fuse([](auto const& x) { return vv::sparse_jacobian(bratu).values(x); });
/// The entries of the Jacobian of `bratu`, row by row.
struct jacobian_by_hand {
  struct writer {
    array<double, 3 * n - 2>& to;
    [[gnu::noinline]] void operator()(array<double, n> const& u) const {
      double* y = to.data;
      for (vv::index_t k = 0; k < n; ++k) {
        if (k > 0) *y++ = 1;
        *y++ = -2 + 0.1 * std::exp(u.data[k]);
        if (k + 1 < n) *y++ = 1;
      }
    }
  };
  writer into(array<double, 3 * n - 2>& to) const { return {to}; }
  array<double, 3 * n - 2> operator()(array<double, n> const& u) const {
    array<double, 3 * n - 2> r;
    return into(r)(u), r;
  }
};
/// Times a function at the same point. The compiler knows neither the point nor who reads the result.
template <class F>
void at_point(benchmark::State& state, F const& f) {
  static array<double, n> x;
  for (vv::index_t k = 0; k < n; ++k) x.data[k] = 0.5 + 1e-4 * static_cast<double>(k);
  static decltype(f(x)) y;
  bench::measure(state, [&] {
    benchmark::DoNotOptimize(x.data);
    f.into(y)(x);
    benchmark::DoNotOptimize(y.data);
  });
}
void rosenbrock_gradient(benchmark::State& s) { at_point(s, gradient); }
void rosenbrock_hessian(benchmark::State& s) { at_point(s, hessian); }
void rosenbrock_hessian_compressed(benchmark::State& s) { at_point(s, hessian_compressed); }
void bratu_jacobian(benchmark::State& s) {
  array<double, n> x;
  bench::fill(x, 0.3);
  bench::agree(s, jacobian(x), jacobian_by_hand{}(x), 1e-15);
  at_point(s, jacobian);
}
void bratu_jacobian_by_hand(benchmark::State& s) { at_point(s, jacobian_by_hand{}); }
BENCHMARK(rosenbrock_gradient);
BENCHMARK(rosenbrock_hessian);
BENCHMARK(rosenbrock_hessian_compressed);
BENCHMARK(bratu_jacobian);
BENCHMARK(bratu_jacobian_by_hand);

/// The five-point Laplacian with a sine on a grid of m x m.
tensor laplace(tensor const& x) {
  tensor const p = vv::pad(x, vv::dims{1, 1, 1, 1});
  auto const part = [&](vv::index_t i, vv::index_t j) {
    return vv::slice(vv::slice(p, 0, i, i + x.size(0)), 1, j, j + x.size(1));
  };
  return part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - 4.0 * x + vv::sin(x);
}
tensor energy(tensor const& x) { return vv::sum(vv::square(laplace(x))); }
tensor grid(benchmark::State const& s) { return vv::zeros({s.range(0), s.range(0)}, vv::dtype::float64) + 0.3; }

template <class F>
void counted(benchmark::State& state, F const& derivative) {
  tensor const x = grid(state);
  auto const p = derivative.pattern(x);
  state.counters["colors"] = derivative.passes(x);
  state.counters["entries"] = p.count();
  state.counters["fill"] = p.count() / (static_cast<double>(p.rows) * p.columns);
  for (auto _ : state) benchmark::DoNotOptimize(derivative.values(x));
}
void grid_value(benchmark::State& state) {
  tensor const x = grid(state);
  for (auto _ : state) benchmark::DoNotOptimize(laplace(x));
}
void grid_jacobian(benchmark::State& state) { counted(state, vv::sparse_jacobian(laplace)); }
void grid_hessian_star(benchmark::State& state) { counted(state, vv::sparse_hessian(energy)); }
void grid_hessian_acyclic(benchmark::State& state) { counted(state, vv::sparse_hessian(energy, vv::by_substitution)); }
void grid_pattern(benchmark::State& state) {
  tensor const x = grid(state);
  for (auto _ : state) benchmark::DoNotOptimize(vv::sparsity(laplace)(x));
}
void grid_coloring(benchmark::State& state) {
  auto const p = vv::sparsity(laplace)(grid(state));
  for (auto _ : state) benchmark::DoNotOptimize(vv::color_columns(p).colors);
}
BENCHMARK(grid_value)->Arg(100);
BENCHMARK(grid_jacobian)->Arg(100);
BENCHMARK(grid_hessian_star)->Arg(100);
BENCHMARK(grid_hessian_acyclic)->Arg(100);
BENCHMARK(grid_pattern)->Arg(100);
BENCHMARK(grid_coloring)->Arg(100);
} // namespace
BENCHMARK_MAIN();
