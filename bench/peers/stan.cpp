// SPDX-License-Identifier: BSL-1.0
/// @file
/// Stan Math: a tape that is written anew at each point. Needs its headers, as in r-cran-stanheaders.
#include "peer.hpp"

#include <stan/math/mix/mat.hpp>

namespace {
template <class P>
struct by_stan {
  static void run(benchmark::State& state) {
    constexpr std::size_t n = P::inputs;
    bench::measure_points<P>(state, [&](double const* at, double* d) {
      using stan::math::var;
      if constexpr (P::kind == bench::wanted::greeks) {
        using number = stan::math::fvar<var>;
        std::vector<number> x(n);
        for (std::size_t k = 0; k < n; ++k) x[k] = number(var(at[k]), k == 0 ? 1.0 : 0.0);
        number y;
        P::value(x.data(), &y);
        double first[n];
        stan::math::grad(y.val_.vi_);
        for (std::size_t k = 0; k < n; ++k) first[k] = x[k].val_.adj();
        stan::math::set_zero_all_adjoints();
        stan::math::grad(y.d_.vi_);
        bench::write_greeks(y.val_.val(), first, x[0].val_.adj(), d);
      } else {
        std::vector<var> const x(at, at + n);
        var y[P::outputs];
        P::value(x.data(), y);
        for (int r = 0; r < P::outputs; ++r) {
          if (r) stan::math::set_zero_all_adjoints();
          stan::math::grad(y[r].vi_);
          for (std::size_t k = 0; k < n; ++k) d[static_cast<std::size_t>(r) * n + k] = x[k].adj();
        }
      }
      stan::math::recover_memory();
    });
  }
};
} // namespace

int main(int argc, char** argv) {
  bench::add<by_stan, bench::rosenbrock_problem, bench::logistic_problem, bench::softmax_problem, bench::mlp_problem,
             bench::layer_norm_problem, bench::attention_problem, bench::mixture_problem, bench::lorenz_problem,
             bench::greeks_problem, bench::bundle_problem, bench::arm_problem>("stan");
  return bench::run_all(argc, argv);
}
