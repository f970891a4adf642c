// SPDX-License-Identifier: BSL-1.0
// Special functions against those of the standard library in long double, and against what they satisfy.
#include <varve/kernel/bessel.hpp>
#include <varve/kernel/error_functions.hpp>
#include <varve/kernel/recurrences.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace k = varve::kernel;

namespace {
/// The greatest error of `f` at 1000 places of [low, high], relative to the value or to 1, whichever is greater.
template <class F, class G>
double worst(F const& f, G const& g, double low, double high, bool relative = true) {
  long double r = 0;
  for (int i = 0; i <= 1000; ++i) {
    double const x = low + (high - low) * i / 1000.0 + 1e-9;
    long double const right = g(static_cast<long double>(x));
    long double const size = relative ? std::fabs(right) : std::fmax(1.0L, std::fabs(right));
    long double const e = std::fabs(static_cast<long double>(f(x)) - right) / size;
    if (!(e <= r)) r = e;
  }
  return static_cast<double>(r);
}
} // namespace

TEST_CASE("special functions: the gamma function's logarithm, and erf's complement", "[kernel]") {
  auto const gamma = [](double x) { return k::gamma::log(x); };
  auto const right = [](long double x) { return std::lgamma(x); };
  CHECK(worst(gamma, right, 1e-3, 3) < 2e-15);
  CHECK(worst(gamma, right, 3, 1e4) < 2e-15);
  CHECK(worst(gamma, right, -20, 0, false) < 2e-14);
  auto const erfc = [](long double x) { return std::erfc(x); };
  CHECK(worst([](double x) { return k::distribution::erfc(x); }, erfc, -5, 25) < 3e-15);
  auto const erfcx = [](long double x) { return std::exp(x * x) * std::erfc(x); };
  CHECK(worst([](double x) { return k::distribution::erfcx(x); }, erfcx, -20, 30) < 3e-15);
  auto const log_ndtr = [](long double x) { return std::log(std::erfc(-x * std::sqrt(0.5L)) / 2); };
  CHECK(worst([](double x) { return k::distribution::log_ndtr(x); }, log_ndtr, -30, 1) < 2e-15);
}
TEST_CASE("special functions: inverses give back what they were given", "[kernel]") {
  auto const same = [](long double x) { return x; };
  CHECK(worst([](double y) { return std::erf(static_cast<long double>(k::distribution::erfinv(y))); }, same, -0.99,
              0.99, false) < 1e-15);
  auto const ndtr = [](double p) {
    return std::erfc(-static_cast<long double>(k::distribution::ndtri(p)) * std::sqrt(0.5L)) / 2;
  };
  CHECK(worst(ndtr, same, 1e-10, 0.99) < 5e-15);
}
TEST_CASE("special functions: one step is enough for floats, and low and high ends are exact", "[kernel]") {
  auto const single = [](double (*f)(double, int)) { return [f](double x) { return static_cast<float>(f(x, 1)); }; };
  auto const twice = [](double (*f)(double, int)) {
    return [f](long double x) { return f(static_cast<double>(x), 2); };
  };
  CHECK(worst(single(k::distribution::erfinv), twice(k::distribution::erfinv), -0.9999, 0.9999) < 0x1p-23);
  for (int e = -300; e < -1; e += 7) { // far down: the logarithm says how near it is
    double const p = std::ldexp(1.0, e);
    auto const x = static_cast<long double>(k::distribution::ndtri(p));
    CHECK(std::fabs(std::log(std::erfc(-x * std::sqrt(0.5L)) / 2) - std::log(static_cast<long double>(p))) <
          2e-15 * std::fabs(e));
  }
  auto const scaled = [](double x) { return static_cast<float>(k::distribution::erfcx(x, true)); };
  CHECK(worst(scaled, [](long double x) { return std::exp(x * x) * std::erfc(x); }, -5, 30) < 0x1p-23);
  constexpr double at_compile_time[] = {k::distribution::erfinv(0.7), k::distribution::ndtri(0.01),
                                        k::distribution::erfc(2.0)};
  CHECK(at_compile_time[0] == Approx(k::distribution::erfinv(0.7)).epsilon(1e-15));
  CHECK(at_compile_time[1] == Approx(k::distribution::ndtri(0.01)).epsilon(1e-14));
  CHECK(at_compile_time[2] == Approx(k::distribution::erfc(2.0)).epsilon(1e-14));
}
TEST_CASE("special functions: derivatives of log gamma follow their recurrence", "[kernel]") {
  for (double x : {0.25, 1.0, 3.75, 9.5, 40.0, -0.75, -3.5}) {
    CHECK(k::gamma::digamma(x + 1) - k::gamma::digamma(x) == Approx(1 / x).epsilon(1e-12));
    for (double s : {2.0, 3.0, 7.0})
      CHECK(k::gamma::zeta(s, x) - k::gamma::zeta(s, x + 1) == Approx(std::pow(x, -s)).epsilon(1e-12).margin(1e-12));
  }
  CHECK(k::gamma::zeta(2, 1) == Approx(1.6449340668482264365).epsilon(1e-15));
}
TEST_CASE("special functions: shares of the gamma function are one, and those of whole numbers Poisson's", "[kernel]") {
  for (double a : {0.01, 0.5, 3.0, 20.0, 500.0})
    for (double x : {0.1, 0.9, 3.0, 22.0, 480.0})
      CHECK(k::gamma::incomplete(a, x, false) + k::gamma::incomplete(a, x, true) == Approx(1).epsilon(1e-14));
  for (double x : {0.5, 2.0, 11.0}) {
    double term = std::exp(-x), sum = 0;
    for (int n = 1; n < 8; ++n) {
      sum += term, term *= x / n;
      CHECK(k::gamma::incomplete(n, x, true) == Approx(sum).epsilon(1e-13));
    }
  }
}
#if defined(__cpp_lib_math_special_functions)
TEST_CASE("special functions: Bessel and Airy", "[kernel]") {
  for (int n : {0, 1}) {
    auto const order = static_cast<long double>(n);
    auto const i = [=](double x) { return k::bessel::i(n, x); };
    CHECK(worst(i, [=](long double x) { return std::cyl_bessel_i(order, x); }, 0.01, 60) < 5e-15);
    auto const second = [=](double x) { return k::bessel::k(n, x); };
    CHECK(worst(second, [=](long double x) { return std::cyl_bessel_k(order, x); }, 0.01, 60) < 5e-15);
    auto const j = [=](double x) { return k::bessel::j(n, x); };
    CHECK(worst(j, [=](long double x) { return std::cyl_bessel_j(order, x); }, 0.01, 100, false) < 2e-15);
    auto const y = [=](double x) { return k::bessel::y(n, x); };
    CHECK(worst(y, [=](long double x) { return std::cyl_neumann(order, x); }, 0.01, 100, false) < 2e-15);
  }
  auto const airy = [](long double x) {
    long double const z = 2 * x * std::sqrt(x) / 3;
    return std::sqrt(x / 3) / std::acos(-1.0L) * std::cyl_bessel_k(1.0L / 3, z);
  };
  CHECK(worst([](double x) { return k::bessel::airy(x); }, airy, 0.01, 15) < 3e-14);
  // below 0 the derivative of second order says it: Ai'' = x Ai
  for (double x = -30; x < -0.5; x += 0.37) {
    double const h = 1e-3;
    double const d = k::bessel::airy(x + h) - 2 * k::bessel::airy(x) + k::bessel::airy(x - h);
    CHECK(d / (h * h) == Approx(x * k::bessel::airy(x)).margin(1e-3));
  }
  CHECK(k::bessel::airy(-10 + 1e-12) == Approx(k::bessel::airy(-10 - 1e-12)).epsilon(1e-10));
}
TEST_CASE("special functions: orthogonal polynomials", "[kernel]") {
  for (unsigned n : {0u, 1u, 2u, 7u}) {
    auto const d = static_cast<std::int64_t>(n);
    auto const legendre = [=](double x) { return k::polynomials::legendre(x, d); };
    CHECK(worst(legendre, [=](long double x) { return std::legendre(n, x); }, -0.99, 0.99, false) < 1e-14);
    auto const hermite = [=](double x) { return k::polynomials::hermite_h(x, d); };
    CHECK(worst(hermite, [=](long double x) { return std::hermite(n, x); }, -3, 3, false) < 1e-11);
    auto const laguerre = [=](double x) { return k::polynomials::laguerre(x, d); };
    CHECK(worst(laguerre, [=](long double x) { return std::laguerre(n, x); }, 0, 4, false) < 1e-13);
    for (double x : {-0.9, -0.3, 0.2, 0.7}) { // sums of the others
      double const a = std::acos(x);
      CHECK(k::polynomials::chebyshev_t(x, d) == Approx(std::cos(n * a)).margin(1e-13));
      CHECK(k::polynomials::chebyshev_u(x, d) == Approx(std::sin((n + 1) * a) / std::sin(a)).margin(1e-13));
      CHECK(k::polynomials::chebyshev_v(x, d) == Approx(std::cos((n + 0.5) * a) / std::cos(a / 2)).margin(1e-13));
      CHECK(k::polynomials::chebyshev_w(x, d) == Approx(std::sin((n + 0.5) * a) / std::sin(a / 2)).margin(1e-13));
    }
  }
}
#endif
