// SPDX-License-Identifier: BSL-1.0
/// @file
/// CppAD: each problem is recorded once, for one point, optimized and replayed. Needs its headers: libcppad-dev or
/// cppad, or a copy as in r-cran-tmb.
#include <cppad/cppad.hpp>

namespace CppAD {
/// A choice that the recording keeps.
inline AD<double> where_less(AD<double> const& a, double b, AD<double> const& then, AD<double> const& otherwise) {
  return CondExpLt(a, AD<double>(b), then, otherwise);
}
} // namespace CppAD

#include "peer.hpp"

namespace {
using number = CppAD::AD<double>;

template <class P>
struct by_cppad {
  static void run(benchmark::State& state) {
    std::vector<double> x = P::at(), direction(P::inputs, 0.0), weight(P::outputs), first(P::inputs);
    x.resize(P::inputs), direction[0] = 1;
    std::vector<number> in(x.begin(), x.end()), out(P::outputs);
    CppAD::Independent(in);
    P::value(in.data(), out.data());
    CppAD::ADFun<double> f(in, out);
    f.optimize();
    bench::measure_points<P>(state, [&](double const* at, double* d) {
      x.assign(at, at + P::inputs);
      std::vector<double> const y = f.Forward(0, x);
      if constexpr (P::kind == bench::wanted::greeks) { // the derivatives along the spot, back once: gradient and one
                                                        // row of the Hessian
        weight[0] = 1;
        f.Forward(1, direction);
        std::vector<double> const series = f.Reverse(2, weight);
        for (std::size_t k = 0; k < first.size(); ++k) first[k] = series[2 * k + 1];
        bench::write_greeks(y[0], first.data(), series[0], d);
      } else {
        for (std::size_t r = 0; r < weight.size(); ++r) {
          weight[r] = 1;
          std::vector<double> const row = f.Reverse(1, weight);
          std::copy(row.begin(), row.end(), d + r * row.size());
          weight[r] = 0;
        }
      }
    });
  }
};
} // namespace

int main(int argc, char** argv) {
  bench::add<by_cppad, bench::rosenbrock_problem, bench::logistic_problem, bench::softmax_problem, bench::mlp_problem,
             bench::attention_problem, bench::mixture_problem, bench::lorenz_problem, bench::bundle_problem,
             bench::arm_problem>("cppad");
  // Old versions approximate erf to 1e-3.
  if (std::fabs(CppAD::Value(CppAD::erf(number(0.5))) - std::erf(0.5)) < 1e-12)
    bench::add<by_cppad, bench::greeks_problem, bench::layer_norm_problem>("cppad");
  return bench::run_all(argc, argv);
}
