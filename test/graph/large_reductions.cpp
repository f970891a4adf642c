// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;

namespace {
using points = vv::array<float, 67>; // not a whole number of registers
points sample() {
  points x;
  for (int k = 0; k < 67; ++k) x.data[k] = 0.03f * static_cast<float>(k) - 1;
  return x;
}

// More reductions of one loop than one function holds: of one kind, which are a table, and of several.
template <int Sums, int Products, int Maxima>
constexpr auto reductions = [](auto const& x) {
  auto const y = x * 0.01f;
  auto t = vv::select(x, vv::axis<0>, vv::axis<0>);
  for (int k = 1; k <= Sums; ++k) t = t + vv::sum(vv::abs(y * static_cast<float>(k)));
  for (int k = 1; k <= Products; ++k) t = t + vv::sum(y * vv::abs(y - static_cast<float>(k)));
  for (int k = 1; k <= Maxima; ++k) t = t + vv::amax(y * static_cast<float>(k) - 1.0f);
  return t;
};
} // namespace

TEMPLATE_TEST_CASE_SIG("fuse: more reductions in one loop than one function holds", "[graph][fuse]",
                       ((int Sums, int Products, int Maxima, bool Alike), Sums, Products, Maxima, Alike),
                       (150, 0, 0, true), (0, 150, 0, true), (0, 0, 150, true), (60, 60, 60, false)) {
  points const x = sample();
  constexpr auto fast = vv::fuse(reductions<Sums, Products, Maxima>);
  using program = typename decltype(fast)::template program<points>;
  STATIC_REQUIRE(program::value.bodies[0].sink_count > 128);
  STATIC_REQUIRE(vv::fusion::sink_table<program, 0>::alike() == Alike);
  float const expected = reductions<Sums, Products, Maxima>(x);
  CHECK(std::abs(expected) > 1);
  CHECK(fast(x) == Approx(expected).epsilon(1e-5));
}
