// SPDX-License-Identifier: BSL-1.0
/// @file
/// Values with gradients where nothing but the calls themselves is to be vectorized, by `fuse(value_and_grad(f))`
/// beside code by hand: 1000 steps of Euler's method for the Lorenz system, one European call with its five greeks, and
/// Rosenbrock's valley, with its Hessian too.
#include "functions.hpp"
#include "measure.hpp"

#include <cmath>
#include <memory>
#include <tuple>

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
#define KEEP __attribute__((noinline)) void

// ---- the Lorenz system, the last x
constexpr index_t steps = 1000;
constexpr double dt = 1e-3;
constexpr auto euler = [](auto const& state, auto const& sigma, auto const& rho, auto const& beta) {
  auto const [x, y, z] = state;
  auto const [a, b, c] = bench::lorenz(x, y, z, sigma, rho, beta);
  return std::pair(std::tuple(x + dt * a, y + dt * b, z + dt * c), vv::none);
};
constexpr auto last_x = [](auto x, auto y, auto z, auto sigma, auto rho, auto beta) {
  return std::get<0>(vv::scan(vv::closure(euler, sigma, rho, beta), std::tuple(x, y, z), vv::steps<steps>).first);
};
constexpr auto lorenz_program = vv::fuse(vv::value_and_grad<0, 1, 2, 3, 4, 5>(last_x));

KEEP lorenz_fused(array<double, 6> const& p, array<double, 7>& r) {
  lorenz_program.into(r[0], r[1], r[2], r[3], r[4], r[5], r[6])(p[0], p[1], p[2], p[3], p[4], p[5]);
}
KEEP lorenz_hand(array<double, 6> const& p, array<double, 7>& r) {
  double xs[steps], ys[steps], zs[steps];
  double x = p[0], y = p[1], z = p[2];
  double const sigma = p[3], rho = p[4], beta = p[5];
  for (index_t i = 0; i < steps; ++i) {
    xs[i] = x, ys[i] = y, zs[i] = z;
    double const a = sigma * (y - x), b = x * (rho - z) - y, c = x * y - beta * z;
    x += dt * a, y += dt * b, z += dt * c;
  }
  double gx = 1, gy = 0, gz = 0, gs = 0, gr = 0, gb = 0;
  for (index_t i = steps; i-- > 0;) {
    double const a = dt * gx, b = dt * gy, c = dt * gz;
    gs += a * (ys[i] - xs[i]), gr += b * xs[i], gb -= c * zs[i];
    gx += -sigma * a + (rho - zs[i]) * b + ys[i] * c;
    gy += sigma * a - b + xs[i] * c;
    gz += -xs[i] * b - beta * c;
  }
  r[0] = x, r[1] = gx, r[2] = gy, r[3] = gz, r[4] = gs, r[5] = gr, r[6] = gb;
}

// ---- a call with five greeks: spot, strike, time, rate, volatility
constexpr auto option_program = vv::fuse(vv::value_and_grad<0, 1, 2, 3, 4>(bench::price));
constexpr auto option_fast_program = vv::fuse(vv::value_and_grad<0, 1, 2, 3, 4>(bench::price), vv::fast_math);

KEEP option_fused(array<double, 5> const& p, array<double, 6>& r) {
  option_program.into(r[0], r[1], r[2], r[3], r[4], r[5])(p[0], p[1], p[2], p[3], p[4]);
}
KEEP option_fast(array<double, 5> const& p, array<double, 6>& r) {
  option_fast_program.into(r[0], r[1], r[2], r[3], r[4], r[5])(p[0], p[1], p[2], p[3], p[4]);
}
KEEP option_hand(array<double, 5> const& p, array<double, 6>& r) {
  double const s = p[0], strike = p[1], t = p[2], rate = p[3], v = p[4], root_half = 0.70710678118654752440;
  double const root_t = k::sqrt(t), spread = v * root_t;
  double const d1 = (k::log(s / strike) + (rate + 0.5 * v * v) * t) / spread, d2 = d1 - spread;
  double const n1 = 0.5 * (1 + k::erf(root_half * d1)), n2 = 0.5 * (1 + k::erf(root_half * d2));
  double const density = 0.39894228040143267794 * k::exp(-0.5 * d1 * d1), factor = k::exp(-rate * t);
  double const in_money = strike * factor * n2, vega = s * density * root_t;
  r[0] = s * n1 - in_money, r[1] = n1, r[2] = -factor * n2;
  r[3] = 0.5 * vega * v / t + rate * in_money, r[4] = t * in_money, r[5] = vega;
}

// ---- the valley
constexpr index_t R = 100;
constexpr auto valley_program = vv::fuse(vv::value_and_grad(bench::rosenbrock<R>));
struct valley_result {
  alignas(64) array<double, R> g;
  double value;
  static constexpr index_t size() { return R + 1; }
  double operator[](index_t i) const { return i < R ? g[i] : value; }
};
KEEP valley_fused(array<double, R> const& x, valley_result& r) { valley_program.into(r.value, r.g)(x); }
KEEP valley_hand(array<double, R> const& x, valley_result& r) {
  using V = k::batch<double>;
  constexpr index_t W = k::lanes<double>;
  array<double, R>& g = r.g;
  auto const whole = [&](V p, V c, V n, V& value) {
    V const r0 = k::fnma<double>(p, p, c), r1 = k::fnma<double>(c, c, n), q = V(1.0) - c;
    value = k::fma<double>(V(V(100.0) * r1), r1, k::fma<double>(q, q, value));
    return k::fma<double>(V(200.0) * r1, V(-2.0) * c, k::fma<double>(V(-2.0), q, V(200.0) * r0));
  };
  V value(0.0);
  { // the first
    double const d = x[1] - x[0] * x[0], q = 1 - x[0];
    g[0] = -400 * d * x[0] - 2 * q;
    r.value = 100 * d * d + q * q;
  }
  index_t i = 1;
  for (; i + W <= R - 1; i += W)
    k::store<double>(g.data + i, whole(k::load(x.data + i - 1), k::load(x.data + i), k::load(x.data + i + 1), value));
  if (auto const n = static_cast<std::size_t>(R - 1 - i)) {
    V const before = value;
    V const p = k::load_first(x.data + i - 1, n), c = k::load_first(x.data + i, n),
            next = k::load_first(x.data + i + 1, n);
    k::store_first<double>(g.data + i, n, whole(p, c, next, value));
    alignas(64) double a[W], b[W];
    k::store<double>(a, V(value - before)), k::store<double>(b, before);
    for (std::size_t j = n; j < W; ++j) a[j] = 0;
    value = k::load(a) + before;
  }
  r.value += k::reduce_sum(value);
  g[R - 1] = 200 * (x[R - 1] - x[R - 2] * x[R - 2]);
}

// ---- its Hessian, n by n, of which three diagonals are not 0
constexpr index_t H = 1000;
constexpr auto hessian_program = vv::fuse(vv::hessian(bench::rosenbrock<H>));
constexpr auto hessian_fast_program = vv::fuse(vv::hessian(bench::rosenbrock<H>), vv::fast_math);
constexpr auto long_gradient = vv::fuse(vv::grad(bench::rosenbrock<H>));
KEEP hessian_fused(array<double, H> const& x, array<double, H, H>& r) { hessian_program.into(r)(x); }
KEEP hessian_fast(array<double, H> const& x, array<double, H, H>& r) { hessian_fast_program.into(r)(x); }
KEEP hessian_hand(array<double, H> const& x, array<double, H, H>& r) {
  for (index_t i = 0; i < H; ++i) {
    double* const row = r.data + i * H;
    for (index_t j = 0; j < H; ++j) row[j] = 0;
    row[i] = i > 0 ? 200 : 0;
    if (i > 0) row[i - 1] = -400 * x[i - 1];
    if (i < H - 1) row[i + 1] = -400 * x[i], row[i] += 1200 * x[i] * x[i] - 400 * x[i + 1] + 2;
  }
}
KEEP hessian_gradients(array<double, H> const& x, array<double, H, H>& r) {
  static array<double, H> g;
  for (index_t i = 0; i < H; ++i) {
    long_gradient.into(g)(x);
    for (index_t j = 0; j < H; ++j) r.data[i * H + j] = g[j];
  }
}

template <class In, class Out>
void run(benchmark::State& state, In const& in, void (*f)(In const&, Out&), void (*hand)(In const&, Out&),
         double tolerance) {
  auto const a = std::make_unique<Out>(), b = std::make_unique<Out>();
  f(in, *a), hand(in, *b);
  if (tolerance < 1) bench::agree(state, *a, *b, tolerance);
  bench::measure(state, [&] { f(in, *a); });
}
void bench_euler(benchmark::State& state, void (*f)(array<double, 6> const&, array<double, 7>&)) {
  run(state, array<double, 6>{1.0, 1.1, 1.2, 10.0, 28.0, 8.0 / 3}, f, lorenz_hand, 1e-12);
}
void bench_option(benchmark::State& state, void (*f)(array<double, 5> const&, array<double, 6>&)) {
  run(state, array<double, 5>{100.0, 105.0, 0.7, 0.03, 0.25}, f, option_hand, 1e-12);
}
void bench_valley(benchmark::State& state, void (*f)(array<double, R> const&, valley_result&)) {
  alignas(64) array<double, R> x;
  bench::fill(x, 0);
  run(state, x, f, valley_hand, 1e-12);
}
void bench_hessian(benchmark::State& state, void (*f)(array<double, H> const&, array<double, H, H>&)) {
  static auto const x = std::make_unique<array<double, H>>();
  bench::fill(*x, 0);
  run(state, *x, f, hessian_hand, f == hessian_gradients ? 2 : 1e-12);
}
BENCHMARK_CAPTURE(bench_euler, fused, lorenz_fused);
BENCHMARK_CAPTURE(bench_euler, hand, lorenz_hand);
BENCHMARK_CAPTURE(bench_option, fused, option_fused);
BENCHMARK_CAPTURE(bench_option, fused_fast, option_fast);
BENCHMARK_CAPTURE(bench_option, hand, option_hand);
BENCHMARK_CAPTURE(bench_valley, fused, valley_fused);
BENCHMARK_CAPTURE(bench_valley, hand, valley_hand);
BENCHMARK_CAPTURE(bench_hessian, fused, hessian_fused);
BENCHMARK_CAPTURE(bench_hessian, fused_fast, hessian_fast);
BENCHMARK_CAPTURE(bench_hessian, hand, hessian_hand);
BENCHMARK_CAPTURE(bench_hessian, gradients, hessian_gradients);
} // namespace

BENCHMARK_MAIN();
