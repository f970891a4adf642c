// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What all programs of this folder share: a package's derivatives must agree with varve's before they are timed, and a
/// program in which one does not fails.
#include "problems.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

namespace bench {
inline bool failed = false;

/// The points of a problem and room for their derivatives, point by point, as tapes want them, and the same in blocks,
/// as varve wants them.
template <class P>
struct data {
  static constexpr int points = P::points;
  std::vector<double> x = P::at(), d = std::vector<double>(static_cast<std::size_t>(points * results<P>)),
                      blocks = in_blocks(x, P::inputs), expected = d;
  data() { derivatives<P>(blocks.data(), expected.data()); }
  double const* point(int k) const { return x.data() + k * P::inputs; }
  double* at(int k) { return d.data() + k * results<P>; }
  /// Numbers that lie point by point, `n` of each.
  static std::vector<double> in_blocks(std::vector<double> const& rows, int n) {
    std::vector<double> r;
    for (int from = 0; from < points; from += P::block)
      for (int c = 0; c < n; ++c)
        for (int k = from; k < from + P::block; ++k) r.push_back(rows[static_cast<std::size_t>(k * n + c)]);
    return r;
  }
  /// Whether derivatives in blocks are the expected ones, relative to the greatest of those by the same number, or of a
  /// gradient.
  bool agrees(std::vector<double> const& found, double tolerance) const {
    std::vector<double> greatest(P::points > 1 ? results<P> : 1);
    auto const kind = [&](std::size_t k) { return k / P::block % greatest.size(); };
    for (std::size_t k = 0; k < expected.size(); ++k)
      greatest[kind(k)] = std::fmax(greatest[kind(k)], std::fabs(expected[k]));
    for (std::size_t k = 0; k < expected.size(); ++k)
      if (found.size() != expected.size() || !(std::fabs(found[k] - expected[k]) <= tolerance * greatest[kind(k)]))
        return false;
    return true;
  }
};

/// Runs `f`, after which `found()` gives the derivatives in blocks, once to compare and then for its time per point.
template <class P, class F, class G>
void measure(benchmark::State& state, data<P> const& d, F f, G found, double tolerance = 1e-9) {
  f();
  if (!d.agrees(found(), tolerance)) {
    failed = true;
    return state.SkipWithError("another derivative");
  }
  while (state.KeepRunningBatch(P::points)) {
    f();
    benchmark::ClobberMemory();
  }
}
/// One point after the other: `one(x, d)` writes the derivatives at x to d.
template <class P, class F>
void measure_points(benchmark::State& state, F one) {
  data<P> d;
  measure<P>(
      state, d,
      [&] {
        for (int k = 0; k < P::points; ++k) one(d.point(k), d.at(k));
      },
      [&] { return d.in_blocks(d.d, results<P>); });
}
/// Price and derivatives by spot, strike, time, rate, volatility, and those of delta, in the order of the results.
inline void write_greeks(double price, double const* first, double gamma, double* d) {
  d[0] = price, d[1] = first[0], d[2] = gamma, d[3] = first[4], d[4] = -first[2], d[5] = first[3];
}

/// Adds the row `<problem>/<package>` of each problem; `Run<P>::run(state)` is what is measured.
template <template <class> class Run, class... P>
void add(std::string const& package) {
  (benchmark::RegisterBenchmark((std::string("peers/") + P::name + "/" + package).c_str(), &Run<P>::run), ...);
}
inline int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return failed;
}
} // namespace bench
