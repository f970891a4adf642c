// SPDX-License-Identifier: BSL-1.0
// Elementary functions of batches where the compiler may reorder what they compute: compiled with -ffast-math too, by
// programs of their own.
#include "varve_test.hpp"

#include <varve/kernel/math.hpp>

#include <algorithm>
#include <cmath>

namespace k = varve::kernel;

namespace {
/// The greatest error of f on [low, high], in units in the last place of its result.
template <class T>
double worst(double low, double high, k::batch<T> (*f)(k::batch<T>), long double (*exact)(long double)) {
  double r = 0;
  T x[k::lanes<T>], y[k::lanes<T>];
  for (int step = 0; step < 2000; ++step) {
    for (std::size_t i = 0; i < k::lanes<T>; ++i)
      x[i] = static_cast<T>(
          low + (high - low) * (step + (static_cast<double>(i) + 0.5) / static_cast<double>(k::lanes<T>)) / 2000);
    k::store(y, f(k::load(x)));
    for (std::size_t i = 0; i < k::lanes<T>; ++i) {
      long double const e = exact(x[i]);
      T const magnitude = static_cast<T>(std::fabs(e));
      r = std::max(r, static_cast<double>(std::fabs(static_cast<long double>(y[i]) - e) /
                                          (std::nextafter(magnitude, T(1e30)) - magnitude)));
    }
  }
  return r;
}
/// Beyond 1 the square root and the logarithm of 1 - erf(x) would not be numbers.
template <class T>
T greatest_erf() {
  T r = 0, y[k::lanes<T>];
  for (int step = 0; step < 200000; ++step) {
    k::store(y, k::batch<T>(k::erf(k::batch<T>(static_cast<T>(3.5 + step * 1.25e-5)))));
    r = std::max(r, y[0]);
  }
  return r;
}
template <class T>
void check() {
  using V = k::batch<T>;
  CHECK(worst<T>(-20, 20, [](V x) { return V(k::exp(x)); }, [](long double x) { return std::exp(x); }) < 4);
  CHECK(worst<T>(0.01, 9, [](V x) { return V(k::tanh(x)); }, [](long double x) { return std::tanh(x); }) < 6);
  CHECK(
      worst<T>(-8, 8, [](V x) { return V(k::sigmoid(x)); }, [](long double x) { return 1 / (1 + std::exp(-x)); }) < 6);
  CHECK(worst<T>(0.01, 7, [](V x) { return V(k::erf(x)); }, [](long double x) { return std::erf(x); }) < 6);
  CHECK(greatest_erf<T>() <= 1);
#ifdef __FMA__ // else they are the library's
  CHECK(worst<T>(0.1, 3, [](V x) { return V(k::sin(x)); }, [](long double x) { return std::sin(x); }) < 4);
  CHECK(worst<T>(0, 1.5, [](V x) { return V(k::cos(x)); }, [](long double x) { return std::cos(x); }) < 4);
#endif
}
} // namespace

TEST_CASE("batches: elementary functions keep their digits whatever the compiler may reorder", "[kernel][math]") {
  check<float>();
  check<double>();
}
