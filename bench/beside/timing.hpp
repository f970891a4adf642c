// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// How the programs of bench/operators measure, and the lines that they print.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace rows {
using std::int64_t, std::string;

inline char const* only = nullptr; ///< a part of the names of the rows to be run
inline double budget = 0.01;       ///< seconds a row

inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
/// Nanoseconds of a call: the best of samples that are long enough for the clock.
template <class F>
double best(F const& f) {
  f();
  double const from = now();
  f();
  double const once = now() - from;
  long const calls = std::max(1L, static_cast<long>(2e-4 / std::max(once, 1e-9)));
  double least = 1e9;
  double const end = now() + budget;
  for (int sample = 0; sample < 5 || now() < end; ++sample) {
    double const start = now();
    for (long k = 0; k < calls; ++k) f();
    least = std::min(least, (now() - start) / static_cast<double>(calls));
  }
  return 1e9 * least;
}
inline bool wanted(string const& name) { return !only || name.find(only) != string::npos; }
inline void read_arguments(int argc, char** argv) {
  if (argc > 1) only = argv[1];
  if (char const* const seconds = std::getenv("BUDGET")) budget = std::atof(seconds);
}
inline void print_line(string const& name, double ns, double sum, double magnitude) {
  std::printf("%s\t%.1f\t%.9g\t%.9g\n", name.c_str(), ns, sum, magnitude);
  std::fflush(stdout);
}
/// The element that tensors of the rows hold at `k`.
inline float element(int64_t k, double scale, double offset) {
  return static_cast<float>(offset + scale * std::sin(1.3 * static_cast<double>(k % 100003)));
}
inline constexpr int64_t sides[] = {8, 100, 1000};
inline string text(int64_t n, int64_t m) { return std::to_string(n) + "x" + std::to_string(m); }
} // namespace rows
