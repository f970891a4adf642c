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

// Values that live across all blocks, fields of records, and a result by reduction in the same loop.
constexpr auto far = [](auto const& r, auto const& w) {
  auto t = vv::sum(r, vv::axis<1>) * w;
  auto const early = t;
  auto u = t;
  for (int k = 0; k < 280; ++k) {
    u = u * t * 0.25f + early;
    t = t * 0.5f - u * 0.25f;
  }
  return std::pair{t + early, vv::sum(u * t)};
};
} // namespace

TEST_CASE("fuse: values used many blocks later, records and sums in a body of blocks", "[graph][fuse]") {
  vv::array<float, 67, 4> r;
  for (int k = 0; k < 67 * 4; ++k) r.data[k] = 0.01f * static_cast<float>(k % 37) - 0.1f;
  points w = sample();
  constexpr auto fast = vv::fuse(far);
  using program = decltype(fast)::program<vv::array<float, 67, 4>, points>;
  STATIC_REQUIRE(program::value.used.blocks >= 8);
  auto const [t, s] = fast(r, w);
  auto const [t_expected, s_expected] = far(r, w);
  for (int k = 0; k < 67; ++k)
    CHECK(std::abs(t.data[k] - t_expected.data[k]) <= 1e-4f * (1 + std::abs(t_expected.data[k])));
  CHECK(std::abs(s - s_expected) <= 1e-3f * (1 + std::abs(s_expected)));
  CHECK(std::abs(s_expected) > 1e-3f); // something was computed
}
