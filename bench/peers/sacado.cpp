// SPDX-License-Identifier: BSL-1.0
/// @file
/// Sacado: a tape that is written anew at each point (`Rad`), and forward mode in all directions at once (`SFad`) where
/// inputs are few. Needs libtrilinos-sacado-dev.
#include "problems.hpp"

#include <Sacado_No_Kokkos.hpp>

namespace Sacado::Fad {
/// It has no `erf`.
template <class V, int N>
SFad<V, N> normal_distribution(SFad<V, N> const& x) {
  using bench::normal_distribution, std::exp;
  V const u = x.val(), exponent = -0.5 * u * u, density = 0.39894228040143267794 * exp(exponent);
  SFad<V, N> r(normal_distribution(u));
  r.resize(N);
  for (int k = 0; k < N; ++k) r.fastAccessDx(k) = density * x.dx(k);
  return r;
}
} // namespace Sacado::Fad

#include "peer.hpp"

namespace {
template <class P>
struct by_tape {
  static void run(benchmark::State& state) {
    using number = Sacado::Rad::ADvar<double>;
    bench::measure_points<P>(state, [&](double const* at, double* d) {
      std::vector<number> const x(at, at + P::inputs);
      number y[P::outputs], *all[P::outputs];
      P::value(x.data(), y);
      for (int r = 0; r < P::outputs; ++r) all[r] = &y[r];
      for (int r = 0; r < P::outputs; ++r) {
        double weight[P::outputs] = {};
        weight[r] = 1;
        number::Weighted_Gradcomp(P::outputs, all, weight);
        for (int k = 0; k < P::inputs; ++k) d[r * P::inputs + k] = x[static_cast<std::size_t>(k)].adj();
      }
    });
  }
};
template <class P>
struct forwards {
  static void run(benchmark::State& state) {
    constexpr int n = P::inputs;
    bench::measure_points<P>(state, [&](double const* at, double* d) {
      if constexpr (P::kind == bench::wanted::greeks) {
        using along = Sacado::Fad::SFad<double, 1>;
        using number = Sacado::Fad::SFad<along, n>;
        number x[n], y;
        for (int k = 0; k < n; ++k) x[k] = number(n, k, k ? along(at[k]) : along(1, 0, at[k]));
        P::value(x, &y);
        double first[n];
        for (int k = 0; k < n; ++k) first[k] = y.dx(k).val();
        bench::write_greeks(y.val().val(), first, y.dx(0).dx(0), d);
      } else {
        using number = Sacado::Fad::SFad<double, n>;
        number x[n], y[P::outputs];
        for (int k = 0; k < n; ++k) x[k] = number(n, k, at[k]);
        P::value(x, y);
        for (int r = 0; r < P::outputs; ++r)
          for (int k = 0; k < n; ++k) d[r * n + k] = y[r].dx(k);
      }
    });
  }
};
} // namespace

int main(int argc, char** argv) {
  bench::add<by_tape, bench::rosenbrock_problem, bench::logistic_problem, bench::softmax_problem, bench::mlp_problem,
             bench::attention_problem, bench::mixture_problem, bench::lorenz_problem, bench::bundle_problem,
             bench::arm_problem>("sacado");
  bench::add<forwards, bench::logistic_problem, bench::lorenz_problem, bench::greeks_problem, bench::bundle_problem,
             bench::arm_problem>("sacado_forward");
  return bench::run_all(argc, argv);
}
