// SPDX-License-Identifier: BSL-1.0
// Special functions on tensors, in ulp against long double, and what they make of zeros, infinities and NaN.
#include "../sample/value.hpp"

#include <varve/special.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
template <class T>
double ulp_between(T mine, long double right) {
  T const near = static_cast<T>(right);
  if (std::isnan(mine) || std::isnan(near)) return std::isnan(mine) && std::isnan(near) ? 0 : 1e9;
  if (std::isinf(near) || near == 0) return mine == near && std::signbit(mine) == std::signbit(near) ? 0 : 1e9;
  T const step = std::nextafter(std::fabs(near), std::numeric_limits<T>::infinity()) - std::fabs(near);
  return static_cast<double>(std::fabs(static_cast<long double>(mine) - right) / static_cast<long double>(step));
}
template <class T, class F, class G>
double worst(F const& f, G const& right, double low, double high) {
  constexpr int n = 20011;
  std::vector<T> x;
  for (int k = 0; k < n; ++k) x.push_back(static_cast<T>(low + (high - low) * k / (n - 1)));
  tensor const y = f(tensor::from_data(x.data(), dims{n}));
  double r = 0;
  for (int k = 0; k < n; ++k)
    r = std::max(r, ulp_between(y.data<T>()[k], right(static_cast<long double>(x[static_cast<std::size_t>(k)]))));
  return r;
}
template <class T>
void check() {
  CHECK(worst<T>([](tensor const& x) { return vv::asin(x); }, [](long double x) { return std::asin(x); }, -1, 1) < 3);
  CHECK(worst<T>([](tensor const& x) { return vv::acos(x); }, [](long double x) { return std::acos(x); }, -1, 1) < 3);
  CHECK(worst<T>([](tensor const& x) { return vv::atan(x); }, [](long double x) { return std::atan(x); }, -30, 30) < 3);
  CHECK(worst<T>([](tensor const& x) { return vv::erfinv(x); },
                 [](long double y) { // two more steps
                   long double x = vv::kernel::distribution::erfinv(static_cast<double>(y));
                   for (int k = 0; k < 2; ++k) x -= (std::erf(x) - y) * 0.88622692545275801365L * std::exp(x * x);
                   return x;
                 },
                 -0.9, 0.9) < (sizeof(T) == 4 ? 1 : 6));
  CHECK(worst<T>([](tensor const& x) { return vv::erfc(x); }, [](long double x) { return std::erfc(x); }, -4, 9) < 4);
  for (auto const& [low, high] :
       {std::pair{0.01, 40.0}, std::pair{-5.3, 8.7}, std::pair{1e3, 1e30}, std::pair{2.5, 9e3}})
    CHECK(worst<T>([](tensor const& x) { return vv::lgamma(x); }, [](long double x) { return std::lgamma(x); }, low,
                   high) < (sizeof(T) == 4 ? 1
                            : low < 0      ? 1e5
                                           : 40)); // relative to the result, which has zeros
  // all pairs of special values, in rows that are longer than a register
  double const inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<double> const values{0.0, -0.0, 1, -1, 0.5, -3, inf, -inf, nan, 1e-30, 1e30};
  std::vector<T> y, x;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (double const a : values)
      for (double const b : values) y.push_back(static_cast<T>(a)), x.push_back(static_cast<T>(b));
  index_t const n = static_cast<index_t>(x.size());
  tensor const r = vv::atan2(tensor::from_data(y.data(), dims{n}), tensor::from_data(x.data(), dims{n}));
  for (std::size_t k = 0; k < x.size(); ++k) {
    INFO(y[k] << " " << x[k]);
    long double const right = std::atan2(static_cast<long double>(y[k]), static_cast<long double>(x[k]));
    if (std::fabs(right) < 1e-35L) continue; // beyond what floats hold
    CHECK(ulp_between(r.data<T>()[k], right) < 3);
  }
  numbers draw(3);
  double far = 0;
  std::vector<T> u, v;
  for (int k = 0; k < 20000; ++k) {
    u.push_back(static_cast<T>(std::ldexp(draw() * 2 - 1, static_cast<int>(draw() * 20) - 10)));
    v.push_back(static_cast<T>(std::ldexp(draw() * 2 - 1, static_cast<int>(draw() * 20) - 10)));
  }
  tensor const s = vv::atan2(tensor::from_data(u.data(), dims{20000}), tensor::from_data(v.data(), dims{20000}));
  for (std::size_t k = 0; k < u.size(); ++k)
    far = std::max(
        far, ulp_between(s.data<T>()[k], std::atan2(static_cast<long double>(u[k]), static_cast<long double>(v[k]))));
  CHECK(far < 4);
  // one element alone is computed by the same code
  tensor const one = vv::atan2(tensor::from_data(u.data(), dims{1}), tensor::from_data(v.data(), dims{1}));
  CHECK(one.data<T>()[0] == s.data<T>()[0]);
}
} // namespace

TEST_CASE("fmod and remainder are exact, for quotients of any size", "[family][special]") {
  auto const check = [&]<class T>(T) {
    numbers draw(9);
    T const inf = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min();
    std::vector<T> a, b;
    for (int k = 0; k < 60000; ++k) { // of near and of far exponents, whole multiples, and special values in between
      auto const number = [&](int range) {
        return static_cast<T>(std::ldexp(draw() * 2 - 1, static_cast<int>(draw() * range) - range / 2));
      };
      b.push_back(number(k % 3 == 0 ? 40 : 6));
      a.push_back(k % 5 == 0 ? b.back() * static_cast<T>(static_cast<int>(draw() * 100)) : number(k % 3 == 1 ? 60 : 8));
      if (k % 7 == 0) a.back() = std::nextafter(a.back(), k % 2 ? inf : -inf);
    }
    T const special[] = {0, -T(0), 1, -1, 3, inf, -inf, std::numeric_limits<T>::quiet_NaN(), least, -least, 5 * least};
    for (T const u : special)
      for (T const v : special) a.push_back(u), b.push_back(v);
    index_t const n = static_cast<index_t>(a.size());
    tensor const x = tensor::from_data(a.data(), dims{n}), y = tensor::from_data(b.data(), dims{n});
    tensor const f = vv::fmod(x, y), r = vv::remainder(x, y);
    int wrong = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      T const right = std::fmod(a[k], b[k]);
      T const turned = right != 0 && (right < 0) != (b[k] < 0) ? right + b[k] : right;
      auto const same = [](T u, T v) {
        return (std::isnan(u) && std::isnan(v)) || (u == v && std::signbit(u) == std::signbit(v));
      };
      wrong += !same(f.data<T>()[k], right) + !same(r.data<T>()[k], turned);
      if (wrong == 1) UNSCOPED_INFO(a[k] << " % " << b[k] << " is " << f.data<T>()[k] << ", " << r.data<T>()[k]);
    }
    CHECK(wrong == 0);
  };
  check(1.0f);
  check(1.0);
}
TEST_CASE("special functions: ulp of floats and doubles, zeros and infinities", "[family][special]") {
  check<float>();
  check<double>();
}
