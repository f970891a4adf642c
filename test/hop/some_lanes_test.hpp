// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Loops in branches that some lanes take, for which other lanes have no end.
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace some_lanes_test {
namespace vv = varve;

using four = vv::array<double, 4>;

inline constexpr four points{1.0, -1.0, 3.0, -7.0};

/// Doubles what is positive up to 100, triples what is negative down to -100: for a lane of the other branch no end.
inline constexpr auto either = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::while_loop<40>([](auto const& v) { return v < 100.0; }, [](auto const& v) { return v * 2.0; }, a);
      },
      [](auto const& a) {
        return vv::while_loop<40>([](auto const& v) { return v > -100.0; }, [](auto const& v) { return v * 3.0; }, a);
      },
      x);
};
/// The same without a bound.
inline constexpr auto unbounded = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::while_loop([](auto const& v) { return v < 100.0; }, [](auto const& v) { return v * 2.0; }, a);
      },
      [](auto const& a) {
        return vv::while_loop([](auto const& v) { return v > -100.0; }, [](auto const& v) { return v * 3.0; }, a);
      },
      x);
};
/// A loop in a branch in a branch.
inline constexpr auto nested = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::cond(
            a > 2.0,
            [](auto const& b) {
              return vv::while_loop<40>([](auto const& v) { return v < 50.0; }, [](auto const& v) { return v * v; }, b);
            },
            [](auto const& b) { return b * 5.0; }, a);
      },
      [](auto const& a) { return a * a; }, x);
};
/// A loop in a loop: lanes that are done with the outer one would never be done with the inner one.
inline constexpr auto loop_in_loop = [](auto const& x) {
  return vv::while_loop<9>(
      [](auto const& v) { return vv::abs(v) < 1000.0; },
      [](auto const& v) {
        auto const grown = vv::while_loop<60>(
            [](auto const& w, auto const& from) { return vv::abs(w) < 4.0 * vv::abs(from); },
            [](auto const& w, auto const& from) { return vv::where(vv::abs(from) < 1000.0, w * 1.5, w * 0.0); }, v, v);
        return grown;
      },
      x);
};
/// Derivatives inside and outside of the vmap, forwards and backwards.
template <class F>
void check_derivatives(F const& f) {
  auto const total = [&](auto const& x) { return vv::sum(vv::vmap(f)(x)); };
  four const inside = vv::vmap(vv::grad(f))(points);
  four const outside = vv::grad(total)(points);
  four const ahead = vv::jvp(vv::vmap(f), std::tuple(points), std::tuple(four{1.0, 1.0, 1.0, 1.0})).second;
  four const ahead_inside =
      vv::vmap([&](auto const& x) { return vv::jvp(f, std::tuple(x), std::tuple(1.0)).second; })(points);
  for (int k = 0; k < 4; ++k) {
    double const right = vv::grad(f)(points[k]);
    CHECK(inside[k] == Approx(right));
    CHECK(outside[k] == Approx(right));
    CHECK(ahead[k] == Approx(right));
    CHECK(ahead_inside[k] == Approx(right));
  }
}
} // namespace some_lanes_test
