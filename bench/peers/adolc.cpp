// SPDX-License-Identifier: BSL-1.0
/// @file
/// ADOL-C: each problem is traced once, for one point or 16 of many, and its drivers replay the trace. Needs
/// libadolc-dev.
#include <adolc/adolc.h>

/// A choice that the trace keeps.
inline adouble where_less(adouble const& a, double b, adouble const& then, adouble const& otherwise) {
  adouble r;
  condassign(r, b - a, then, otherwise);
  return r;
}

#include "peer.hpp"

#include <algorithm>

namespace {
short tags = 0;

template <class P>
struct by_adolc {
  static constexpr int together = P::points > 1 ? 16 : 1, inputs = together * P::inputs,
                       outputs = together * P::outputs; // a replay costs a microsecond before it begins
  static_assert(P::points % together == 0);
  static inline short const tag = ++tags; // one for all runs: the package keeps the buffers of each
  static void trace(double const* x, double* y) {
    trace_on(tag);
    {
      std::vector<adouble> in(inputs), out(outputs);
      for (std::size_t k = 0; k < in.size(); ++k) in[k] <<= x[k];
      for (int k = 0; k < together; ++k)
        P::value(&in[static_cast<std::size_t>(k * P::inputs)], &out[static_cast<std::size_t>(k * P::outputs)]);
      for (std::size_t k = 0; k < out.size(); ++k) out[k] >>= y[k];
    }
    trace_off();
  }
  static void run(benchmark::State& state) {
    bench::data<P> d;
    std::vector<double> y(outputs), slope(outputs), direction(inputs), weight(outputs), row(inputs), series(2 * inputs);
    std::vector<double*> degrees(inputs);
    trace(d.x.data(), y.data());
    for (int k = 0; k < inputs; ++k)
      degrees[static_cast<std::size_t>(k)] = &series[static_cast<std::size_t>(2 * k)],
      direction[static_cast<std::size_t>(k)] = k % P::inputs == 0;
    auto const all = [&] {
      for (int from = 0; from < P::points; from += together) {
        double const* const at = d.point(from);
        if constexpr (P::kind == bench::wanted::gradient) {
          gradient(tag, inputs, at, d.at(from));
        } else if constexpr (P::kind == bench::wanted::jacobian) { // one row of all points after the other
          zos_forward(tag, outputs, inputs, 1, at, y.data());
          for (int r = 0; r < P::outputs; ++r) {
            for (int k = 0; k < outputs; ++k) weight[static_cast<std::size_t>(k)] = k % P::outputs == r;
            fos_reverse(tag, outputs, inputs, weight.data(), row.data());
            for (int k = 0; k < together; ++k)
              std::copy_n(&row[static_cast<std::size_t>(k * P::inputs)], P::inputs, d.at(from + k) + r * P::inputs);
          }
        } else { // the derivatives along the spots, back once: gradients and one row of each Hessian
          fos_forward(tag, outputs, inputs, 2, at, direction.data(), y.data(), slope.data());
          weight.assign(outputs, 1);
          hos_reverse(tag, outputs, inputs, 1, weight.data(), degrees.data());
          for (std::size_t k = 0; k < together; ++k) {
            double first[P::inputs];
            for (std::size_t c = 0; c < P::inputs; ++c) first[c] = series[2 * (k * P::inputs + c)];
            bench::write_greeks(y[k], first, series[2 * k * P::inputs + 1], d.at(from + static_cast<int>(k)));
          }
        }
      }
    };
    bench::measure<P>(state, d, all, [&] { return d.in_blocks(d.d, bench::results<P>); });
  }
};
} // namespace

int main(int argc, char** argv) { // long traces last: after them replays are slower
  bench::add<by_adolc, bench::rosenbrock_problem, bench::logistic_problem, bench::softmax_problem, bench::mlp_problem,
             bench::lorenz_problem, bench::greeks_problem, bench::bundle_problem, bench::arm_problem,
             bench::mixture_problem, bench::layer_norm_problem, bench::attention_problem>("adolc");
  return bench::run_all(argc, argv);
}
