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

TEST_CASE("special functions: ulp of floats and doubles, zeros and infinities", "[family][special]") {
  check<float>();
  check<double>();
}
