// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/math.hpp>

#include <cmath>
#include <limits>

namespace k = varve::kernel;
using kernel_test::engine;

// Constant expressions: the same functions as at run time.
static_assert(k::exp(0.0) == 1 && k::exp(1.0) == 2.718281828459045 && k::exp(-1000.0) == 0 && k::exp(1000.0) > 1e308 &&
              k::exp(100.f) > 3e38f);
static_assert(k::log(2.0) == 0.6931471805599453 && k::log(0.0) < -1e308 && k::log(-1.0) != k::log(-1.0) &&
              k::log1p(1e-20) == 1e-20 && k::expm1(1e-20) == 1e-20);
static_assert(k::sqrt(2.0) == 1.4142135623730951 && k::sqrt(0.25) == 0.5 && k::sqrt(2.f) == 1.41421354f &&
              k::sqrt(1e300) == 1e150);
static_assert(k::sin(1.0) == 0.8414709848078965 && k::cos(1.0) == 0.5403023058681398 &&
              k::tan(1.0) == 1.5574077246549023 && k::sin(100000.0) == 0.035748797972016508);
static_assert(k::tanh(0.5) == 0.46211715726000973 && k::tanh(-100.0) == -1 && k::sigmoid(0.0) == 0.5 &&
              k::sigmoid(-1000.0) == 0 && k::erf(1.0) == 0.8427007929497149);
static_assert(k::pow(2.0, 10.0) == 1024 && k::pow(2.0, -1.0) == 0.5 && k::pow(-2.0, 3.0) == -8 &&
              k::pow(9.0, 0.5) == 3 && k::pow(3, 4) == 81 && k::pow(-1, -3) == -1 && k::pow(2, -1) == 0);
static_assert(k::floor(-1.5) == -2 && k::ceil(-1.5) == -1 && k::trunc(-1.5) == -1 && k::round(2.5) == 2 &&
              k::round(3.5) == 4 && k::round(-0.5) == 0 && k::floor(7) == 7);
static_assert(k::floor_divide(-7, 2) == -4 && k::remainder(-7, 2) == 1 && k::fmod(-7, 2) == -1 &&
              k::fmod(5.5, 2.0) == 1.5 && k::remainder(-5.5, 2.0) == 0.5 && k::floor_divide(-5.5, 2.0) == -3);
static_assert(k::floor_divide(INT32_MIN, -1) == INT32_MIN && k::remainder(INT32_MIN, -1) == 0 &&
              k::add(INT32_MAX, 1) == INT32_MIN && k::abs(INT32_MIN) == INT32_MIN);
static_assert(k::sign(-2.0) == -1 && k::sign(0) == 0 && k::abs(-3) == 3 && k::maximum(2, 3) == 3 &&
              k::minimum(2.0, 3.0) == 2 && k::where(true, 1, 2) == 1 && k::where(0.0, 1, 2) == 2);
static_assert(k::add(true, true) == true && k::mul(true, false) == false && k::reciprocal(4.0) == 0.25 && k::lt(1, 2) &&
              !k::ge(1.0, 2.0));

namespace {
template <class T>
double error_in_ulp(T got, long double want) {
  T const w = static_cast<T>(want);
  if (got == w || (std::isnan(got) && std::isnan(w))) return 0;
  if (std::isnan(got) || std::isnan(w) || std::isinf(got) || std::isinf(w)) return 1e30;
  T const ulp = std::max(std::nextafter(std::abs(w), std::numeric_limits<T>::infinity()) - std::abs(w),
                         std::numeric_limits<T>::denorm_min());
  return static_cast<double>(std::abs((got - want) / ulp));
}

// Batches and constant expressions against long double, over a range and a logarithmic range around 0, and on special
// values.
template <class T, class F, class G>
void check(char const* name, F f, G exact, double low, double high, double tolerance,
           std::vector<double> special = {}) {
  constexpr std::size_t L = k::lanes<T>;
  for (int pass = 0; pass < 3; ++pass) {
    double worst = 0;
    T at = 0;
    std::size_t const n = pass < 2 ? 20000 : special.size();
    for (std::size_t i = 0; i < n; i += L) {
      T x[L]{}, y[L];
      for (std::size_t l = 0; l < L; ++l) {
        double const u = std::uniform_real_distribution<double>(0, 1)(engine());
        if (pass == 0) x[l] = static_cast<T>(low + (high - low) * u);
        else if (pass == 1)
          x[l] = static_cast<T>(std::pow(10.0, -30 * u) * (low < 0 && l % 2 ? -1 : 1) *
                                std::min(1.0, std::abs(low < 0 && l % 2 ? low : high)));
        else if (i + l < n) x[l] = static_cast<T>(special[i + l]);
      }
      k::store(y, k::batch<T>(f(k::load(x))));
      for (std::size_t l = 0; l < L; ++l) {
        if (pass == 2 && i + l >= n) continue;
        double e = error_in_ulp(y[l], exact(static_cast<long double>(x[l])));
        if (pass == 2 && !std::isnan(y[l]) && std::signbit(y[l]) != std::signbit(exact(static_cast<long double>(x[l]))))
          e = 1e31;
        if (e > worst) worst = e, at = x[l];
      }
    }
    INFO(name << (sizeof(T) == 4 ? " float" : " double") << " pass " << pass << " at " << at);
    CHECK(worst <= tolerance);
  }
}
double const inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T>
void check_functions() {
  using R = long double;
  bool const f = sizeof(T) == 4;
  check<T>(
      "exp", [](auto x) { return k::exp(x); }, [](R x) { return std::exp(x); }, f ? -87 : -708, f ? 89 : 710, 2,
      {0.0, -0.0, inf, -inf, not_a_number, 1000, -1000, 88.6, 709.7});
  for (double y : {2.5, -3.0, 0.5, 7.0, 1e-3})
    check<T>(
        "pow", [=](auto x) { return k::pow(x, decltype(x)(static_cast<T>(y))); },
        [=](R x) { return std::pow(x, static_cast<R>(static_cast<T>(y))); }, 0, 40, 1,
        {0.0, -0.0, inf, -inf, not_a_number, 1, -1, -2, 1e-40, 1e38});
  check<T>(
      "expm1", [](auto x) { return k::expm1(x); }, [](R x) { return std::expm1(x); }, -20, f ? 89 : 710, 3,
      {0.0, -0.0, inf, -inf, not_a_number, 1000, -1000});
  check<T>(
      "tanh", [](auto x) { return k::tanh(x); }, [](R x) { return std::tanh(x); }, -10, 10, 3,
      {0.0, -0.0, inf, -inf, not_a_number, 1000, -1000});
  check<T>(
      "sigmoid", [](auto x) { return k::sigmoid(x); }, [](R x) { return 1 / (1 + std::exp(-x)); }, f ? -80 : -700, 50,
      3, {0.0, -0.0, inf, -inf, not_a_number, 1000, -1e6});
  check<T>(
      "log", [](auto x) { return k::log(x); }, [](R x) { return std::log(x); }, 0, 3, 2,
      {0.0, -0.0, 1, inf, -inf, not_a_number, -1, 1e-40, 1e38});
  check<T>(
      "log1p", [](auto x) { return k::log1p(x); }, [](R x) { return std::log1p(x); }, -0.99, 3, 2,
      {0.0, -0.0, -1, inf, -inf, not_a_number, -2});
  check<T>(
      "sin", [](auto x) { return k::sin(x); }, [](R x) { return std::sin(x); }, -1e4, 1e4, 3,
      {0.0, -0.0, inf, not_a_number});
  check<T>(
      "cos", [](auto x) { return k::cos(x); }, [](R x) { return std::cos(x); }, -1e4, 1e4, 3,
      {0.0, -0.0, inf, not_a_number});
  check<T>(
      "tan", [](auto x) { return k::tan(x); }, [](R x) { return std::tan(x); }, -1e4, 1e4, 4,
      {0.0, -0.0, inf, not_a_number});
  check<T>(
      "erf", [](auto x) { return k::erf(x); }, [](R x) { return std::erf(x); }, -5, 5, 4,
      {0.0, -0.0, inf, -inf, not_a_number});
  check<T>(
      "sqrt", [](auto x) { return k::sqrt(x); }, [](R x) { return std::sqrt(x); }, 0, 100, 0.51,
      {0.0, -0.0, inf, not_a_number, -1});
  check<T>(
      "round", [](auto x) { return k::round(x); }, [](R x) { return std::nearbyint(x); }, -100, 100, 0,
      {0.5, 1.5, 2.5, -0.5, -0.0, inf, not_a_number});
  check<T>(
      "floor", [](auto x) { return k::floor(x); }, [](R x) { return std::floor(x); }, -100, 100, 0,
      {0.5, -0.5, 0.0, inf, not_a_number});
  check<T>(
      "sign", [](auto x) { return k::sign(x); }, [](R x) { return R((x > 0) - (x < 0)); }, -100, 100, 0,
      {0.5, -0.5, 0.0, inf, not_a_number});
}

// The constant functions, run at run time to see many arguments.
template <class F, class G>
void check_constant(char const* name, F f, G exact, double low, double high) {
  double worst = 0, at = 0;
  for (int i = 0; i < 5000; ++i) {
    double const u = std::uniform_real_distribution<double>(0, 1)(engine()),
                 x = i % 2 ? low + (high - low) * u : high * std::pow(10.0, -20 * u);
    double const e = error_in_ulp(f(x), exact(static_cast<long double>(x)));
    if (e > worst) worst = e, at = x;
  }
  INFO(name << " at " << at);
  CHECK(worst <= 1);
}
} // namespace

TEST_CASE("batches: elementary functions within a few ulp", "[kernel][math]") {
  check_functions<float>();
  check_functions<double>();
}

TEST_CASE("constant expressions: elementary functions within 1 ulp", "[kernel][math]") {
  using R = long double;
  namespace c = k::constant;
  check_constant("exp", c::exp, [](R x) { return std::exp(x); }, -745, 709);
  check_constant("expm1", c::expm1, [](R x) { return std::expm1(x); }, -50, 709);
  check_constant("log", c::log, [](R x) { return std::log(x); }, 0, 10);
  check_constant("log1p", c::log1p, [](R x) { return std::log1p(x); }, -1, 10);
  check_constant("sin", c::sin, [](R x) { return std::sin(x); }, -1e5, 1e5);
  check_constant("cos", c::cos, [](R x) { return std::cos(x); }, -1e5, 1e5);
  check_constant("tan", c::tan, [](R x) { return std::tan(x); }, -1e5, 1e5);
  check_constant("tanh", c::tanh, [](R x) { return std::tanh(x); }, -20, 20);
  check_constant("sigmoid", c::sigmoid, [](R x) { return 1 / (1 + std::exp(-x)); }, -740, 40);
  check_constant("erf", c::erf, [](R x) { return std::erf(x); }, -6, 6);
  check_constant("sqrt", c::sqrt, [](R x) { return std::sqrt(x); }, 0, 1e10);
  check_constant(
      "pow 0.3", [](double x) { return c::pow(x, 0.3); }, [](R x) { return std::pow(x, static_cast<R>(0.3)); }, 0,
      1e10);
  check_constant("pow -7", [](double x) { return c::pow(x, -7); }, [](R x) { return std::pow(x, -7.0L); }, -100, 100);
  check_constant(
      "fmod", [](double x) { return c::fmod(x, 0.37); }, [](R x) { return std::fmod(x, static_cast<R>(0.37)); }, -1e5,
      1e5);
}

TEST_CASE("batches: comparison, selection and NaN", "[kernel][math]") {
  auto check_pair = [](auto a, auto b) {
    using T = decltype(a);
    k::batch<T> const x(a), y(b);
    auto same = [](k::batch<T> const& got, T want) {
      T v[k::lanes<T>];
      k::store(v, got);
      return v[0] == want || (v[0] != v[0] && want != want);
    };
    CHECK(same(k::lt(x, y), k::lt(a, b)));
    CHECK(same(k::le(x, y), k::le(a, b)));
    CHECK(same(k::gt(x, y), k::gt(a, b)));
    CHECK(same(k::ge(x, y), k::ge(a, b)));
    CHECK(same(k::eq(x, y), k::eq(a, b)));
    CHECK(same(k::ne(x, y), k::ne(a, b)));
    CHECK(same(k::isnan(x), k::isnan(a)));
    CHECK(same(k::maximum(x, y), k::maximum(a, b)));
    CHECK(same(k::minimum(x, y), k::minimum(a, b)));
    CHECK(same(k::where(x, y, x), k::where(a, b, a)));
    CHECK(same(k::add(x, y), k::add(a, b)));
    CHECK(same(k::mul(x, y), k::mul(a, b)));
    CHECK(same(k::neg(x), k::neg(a)));
    if constexpr (std::is_floating_point_v<T>) { // of zeros, too
      T v[k::lanes<T>];
      k::store(v, k::neg(x));
      if (a == a) CHECK(std::signbit(v[0]) == std::signbit(-a));
    }
    CHECK(same(k::abs(x), k::abs(a)));
    CHECK(same(k::pow(x, y), k::pow(a, b)));
    if (b != T(0)) {
      CHECK(same(k::remainder(x, y), k::remainder(a, b)));
      CHECK(same(k::fmod(x, y), k::fmod(a, b)));
      CHECK(same(k::floor_divide(x, y), k::floor_divide(a, b)));
    }
  };
  for (double a : {0.0, -0.0, 1.0, -2.5, not_a_number, inf})
    for (double b : {0.0, 1.0, -2.5, 3.0, not_a_number, -inf}) {
      check_pair(a, b);
      check_pair(static_cast<float>(a), static_cast<float>(b));
    }
  for (int a : {0, 1, -7, INT32_MIN, INT32_MAX})
    for (int b : {0, 1, -1, 3, -3}) {
      check_pair(std::int32_t{a}, std::int32_t{b});
      check_pair(std::int64_t{a}, std::int64_t{b});
    }
  CHECK(k::maximum(not_a_number, 1.0) != k::maximum(not_a_number, 1.0));
  CHECK(k::minimum(1.0, not_a_number) != k::minimum(1.0, not_a_number));
  CHECK_THROWS_AS(k::remainder(1, 0), varve::value_error);
  CHECK_THROWS_AS(k::floor_divide(1, 0), varve::value_error);
}

TEST_CASE("batches: partial loads and stores, transposition", "[kernel][simd]") {
  auto check_type = [](auto zero) {
    using T = decltype(zero);
    constexpr std::size_t L = k::lanes<T>;
    for (std::size_t n = 0; n < L; ++n) {
      std::vector<T> from(n), to(n + 1, T(9));
      for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<T>(i + 1);
      auto const v = k::load_first(from.data(), n);
      CHECK(k::reduce_sum(v) == static_cast<T>(n * (n + 1) / 2));
      k::store_first(to.data(), n, v);
      for (std::size_t i = 0; i < n; ++i) CHECK(to[i] == from[i]);
      CHECK(to[n] == T(9));
    }
    k::batch<T> r[L];
    T m[L * L];
    for (std::size_t i = 0; i < L * L; ++i) m[i] = static_cast<T>(i);
    for (std::size_t i = 0; i < L; ++i) r[i] = k::load(m + i * L);
    k::transpose<T>(r);
    for (std::size_t i = 0; i < L; ++i) k::store(m + i * L, r[i]);
    for (std::size_t i = 0; i < L; ++i)
      for (std::size_t j = 0; j < L; ++j) CHECK(m[i * L + j] == static_cast<T>(j * L + i));
  };
  check_type(0.f);
  check_type(0.0);
  check_type(std::int32_t{0});
  check_type(std::int64_t{0});
}
