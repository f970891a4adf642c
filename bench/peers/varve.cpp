// SPDX-License-Identifier: BSL-1.0
/// @file
/// varve's own time; here the derivatives are compared with central differences of the text that the tapes record: with
/// respect to all inputs, or of more than 2000 to some of them.
#include "peer.hpp"

namespace {
template <class P>
void differences(double const* x, double* d) {
  std::vector<double> at(x, x + P::inputs);
  double up[P::outputs], down[P::outputs], first[P::inputs]; // of the last output
  auto const both = [&](int k, double h) {
    at[static_cast<std::size_t>(k)] = x[k] + h, P::value(at.data(), up);
    at[static_cast<std::size_t>(k)] = x[k] - h, P::value(at.data(), down);
    at[static_cast<std::size_t>(k)] = x[k];
  };
  for (int k = 0; k < P::inputs; k += P::inputs > 2000 ? 61 : 1) {
    double const h = 1e-5 * std::fmax(1, std::fabs(x[k]));
    both(k, h);
    for (int r = 0; r < P::outputs; ++r) {
      first[k] = (up[r] - down[r]) / (2 * h);
      if constexpr (P::kind != bench::wanted::greeks) d[r * P::inputs + k] = first[k];
    }
  }
  if constexpr (P::kind == bench::wanted::greeks) {
    double price, h = 1e-2;
    P::value(x, &price);
    both(0, h);
    bench::write_greeks(price, first, (up[0] - 2 * price + down[0]) / (h * h), d);
  }
}

template <class P>
struct by_varve {
  static void run(benchmark::State& state) {
    bench::data<P> d;
    std::vector<double> result(d.d.size());
    if (P::points == 1) d.d = d.expected;
    for (int k = 0; k < P::points; ++k) differences<P>(d.point(k), d.at(k));
    d.expected = d.in_blocks(d.d, bench::results<P>);
    bench::measure<P>(
        state, d, [&] { bench::derivatives<P>(d.blocks.data(), result.data()); }, [&] { return result; }, 1e-5);
  }
};
} // namespace

int main(int argc, char** argv) {
  bench::add<by_varve, bench::rosenbrock_problem, bench::logistic_problem, bench::softmax_problem, bench::mlp_problem,
             bench::layer_norm_problem, bench::attention_problem, bench::mixture_problem, bench::lorenz_problem,
             bench::greeks_problem, bench::bundle_problem, bench::arm_problem>("varve");
  return bench::run_all(argc, argv);
}
