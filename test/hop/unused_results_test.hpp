// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

/// @file
/// Functions with a result that nothing uses. It has no part in the gradient, whatever its own derivative is: NaN, or
/// infinite.
namespace vv = varve;
using vv::array;
using vv::tensor;

namespace {
struct harmless {
  template <class V>
  constexpr auto operator()(V const& v) const {
    return v * 2.0;
  }
};
/// NaN, and so is its derivative.
struct harmful {
  template <class V>
  constexpr auto operator()(V const& v) const {
    return vv::log(vv::abs(v) * -1.0);
  }
};

/// The second carried value enters neither the outputs nor the first.
template <class Of>
inline constexpr auto scanned = [](auto const& x) {
  auto const [last, all] = vv::scan(
      [](auto const& c, auto const& k) {
        auto const& [a, b] = c;
        return std::pair(std::pair(a * k, Of{}(b)), a + k);
      },
      std::pair(x, x * 0.5), array<double, 3>{1, 2, 3});
  return vv::sum(all) + last.first;
};
/// ... which the outputs alone are made of: nothing that is carried is used.
template <class Of>
inline constexpr auto outputs = [](auto const& x) {
  auto const all =
      vv::scan(vv::closure([](auto const& a, auto const& k, auto const& y) { return std::pair(Of{}(a), y * k); }, x), x,
               array<double, 3>{1, 2, 3})
          .second;
  return vv::sum(all);
};
/// A value that is used two steps later.
template <class Of>
inline constexpr auto chained = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& v, auto const& k) {
                          auto const& [a, b, c, d] = v;
                          return std::pair(std::tuple(a + b, b * c, c * k, Of{}(d * c)), vv::none);
                        },
                        std::tuple(x, x * 1.0, x * 0.5, x), array<double, 4>{1, 2, 3, 4})
                        .first;
  return std::get<0>(last);
};
template <class Of>
inline constexpr auto while_looped = [](auto const& x) {
  auto const [a, b, n] =
      vv::while_loop<5>([](auto const&, auto const&, auto const& n) { return n < 3; },
                        [](auto const& a, auto const& b, auto const& n) { return std::tuple(a * a, Of{}(b), n + 1); },
                        std::tuple(x, x * 0.5, 0));
  return a;
};
template <class Of>
inline constexpr auto branched = [](auto const& x) {
  auto const [a, b] = vv::cond(
      x > 0.0, [](auto const& u) { return std::tuple(u * u, Of{}(u)); },
      [](auto const& u) { return std::tuple(u * 3.0, Of{}(u)); }, x);
  return a;
};
template <class Of>
inline constexpr auto mapped = [](auto const& x) {
  auto const [a, b] =
      vv::map(vv::closure([](auto const& k, auto const& y) { return std::tuple(y * k, Of{}(y * k)); }, x),
              array<double, 3>{1, 2, 3});
  return vv::sum(a);
};
template <class Of>
inline constexpr auto nested = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& c, auto const& k) {
                          auto const in = vv::scan(
                              [](auto const& d, auto const& q) {
                                auto const& [a, b] = d;
                                return std::pair(std::pair(a * q, Of{}(b)), vv::none);
                              },
                              c, array<double, 2>{0.5, 3});
                          auto const& [a, b] = in.first;
                          return std::pair(std::pair(a + k, b), vv::none);
                        },
                        std::pair(x, x * 0.5), array<double, 3>{1, 2, 3})
                        .first;
  return last.first * last.first;
};
/// Which of the two is used the value of a row tells C++ itself.
template <class Of>
inline constexpr auto by_value = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& c, auto const& k) {
                          auto [a, b, d] = c;
                          if (k > 2.0) a = a + b;
                          b = b * k;
                          d = Of{}(d);
                          return std::pair(std::tuple(a, b, d), vv::none);
                        },
                        std::tuple(x * 1.0, x * 0.5, x * 1.0), array<double, 3>{3, 1, 3})
                        .first;
  return std::get<0>(last) * std::get<0>(last);
};
template <class Of>
inline constexpr auto in_segments = [](auto const& x) {
  auto const [last, all] = vv::scan<0, 2>(
      [](auto const& c, auto const& k) {
        auto const& [a, b] = c;
        return std::pair(std::pair(a * k, Of{}(b)), a + k);
      },
      std::pair(x, x * 0.5), array<double, 4>{1, 2, 3, 0.5});
  return vv::sum(all) + last.first;
};

inline void is(double y, double right) { CHECK(y == Approx(right)); }
inline void is(tensor const& y, tensor const& right) { CHECK(vv::allclose(y, right)); }

/// Functions of tensors: what is right is found on tensors too, where it costs the compiler least.
using function = std::function<tensor(tensor const&)>;
} // namespace
