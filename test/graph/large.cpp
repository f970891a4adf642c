// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <varve/varve.hpp>
#include <varve_test.hpp>

namespace vv = varve;

// Programs beyond what one function of the compiler takes well: bodies cut into blocks, stages into several functions.
namespace {

constexpr auto chain = [](auto const& x) {
  auto y = x * 1.0f;
  for (int k = 0; k < 340; ++k) y = vv::sin(y) * 0.5f + x;
  return y;
};
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

constexpr auto many_stages = [](auto const& x) {
  auto t = x;
  for (int k = 0; k < 40; ++k) t = t * 0.5f / (1.0f + vv::sum(vv::abs(t))) + x;
  return t;
};

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

TEST_CASE("fuse: a body of a thousand operators is cut into blocks and computes what the function does", "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(chain);
  using program = decltype(fast)::program<points>;
  STATIC_REQUIRE(program::value.used.bodies == 1);
  STATIC_REQUIRE(program::value.bodies[0].block_count >= 10);
  STATIC_REQUIRE(program::value.bodies[0].kept == 2); // x and y pass from block to block, each in one place
  points const y = fast(x), expected = chain(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-5f);
}

TEST_CASE("fuse: values used many blocks later, records and sums in a body of blocks", "[graph][fuse]") {
  vv::array<float, 67, 4> r;
  for (int k = 0; k < 67 * 4; ++k) r.data[k] = 0.01f * static_cast<float>(k % 37) - 0.1f;
  points w = sample();
  constexpr auto fast = vv::fuse(far);
  using program = decltype(fast)::program<vv::array<float, 67, 4>, points>;
  STATIC_REQUIRE(program::value.used.blocks >= 8);
  auto const [t, s] = fast(r, w);
  auto const [t_expected, s_expected] = far(r, w);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(t.data[k] - t_expected.data[k]) <= 1e-4f * (1 + std::abs(t_expected.data[k])));
  CHECK(std::abs(s - s_expected) <= 1e-3f * (1 + std::abs(s_expected)));
  CHECK(std::abs(s_expected) > 1e-3f); // something was computed
}

TEST_CASE("fuse: more stages than one function holds", "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(many_stages);
  STATIC_REQUIRE(decltype(fast)::program<points>::value.used.stages > 64);
  points const y = fast(x), expected = many_stages(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-5f);
}

TEMPLATE_TEST_CASE_SIG("fuse: more reductions in one loop than one function holds", "[graph][fuse]", ((int Sums, int Products, int Maxima, bool Alike), Sums, Products, Maxima, Alike), (150, 0, 0, true), (0, 150, 0, true),
                       (0, 0, 150, true), (60, 60, 60, false)) {
  points const x = sample();
  constexpr auto fast = vv::fuse(reductions<Sums, Products, Maxima>);
  using program = typename decltype(fast)::template program<points>;
  STATIC_REQUIRE(program::value.bodies[0].sink_count > 128);
  STATIC_REQUIRE(vv::loop::sink_table<program, 0>::alike() == Alike);
  float const expected = reductions<Sums, Products, Maxima>(x);
  CHECK(std::abs(expected) > 1);
  CHECK(fast(x) == Approx(expected).epsilon(1e-5));
}
