// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <cmath>
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

// Few steps, most of them long operators: a body of blocks that would be computed in pairs otherwise.
constexpr auto waves = [](auto const& x) {
  auto t = vv::sin(x);
  for (int k = 1; k < 60; ++k) t = t + vv::sin(x * static_cast<float>(k + 1));
  return t;
};

// A long body that is ordered anew: what it leaves behind becomes steps, so that they are more than whole bodies have.
template <int Rounds>
constexpr auto mixed = [](auto const& x) {
  auto a = x * 0.5f, b = x * 0.25f, c = x * 0.125f, d = 1.0f - x, e = a, f = b, g = c, h = d;
  for (int k = 0; k < Rounds; ++k) {
    a = a * b - x, b = b * c - a, c = c * d - b, d = d * a - c;
    e = e * f - a, f = f * g - b, g = g * h - c, h = h * e - d;
  }
  return std::tuple{a, b, c, d, e, f, g, h, a + e, b + f, c + g, d + h};
};

constexpr auto many_stages = [](auto const& x) {
  auto t = x;
  for (int k = 0; k < 40; ++k) t = t * 0.5f / (1.0f + vv::sum(vv::abs(t))) + x;
  return t;
};

} // namespace

TEST_CASE("fuse: a body of a thousand operators is cut into blocks and computes what the function does",
          "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(chain);
  using program = decltype(fast)::program<points>;
  STATIC_REQUIRE(program::value.used.bodies == 1);
  STATIC_REQUIRE(program::value.bodies[0].block_count >= 10);
  STATIC_REQUIRE(program::value.bodies[0].kept == 2); // x and y pass from block to block, each in one place
  points const y = fast(x), expected = chain(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-5f);
}

TEST_CASE("fuse: a body of few steps but many long operators is cut into blocks too", "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(waves);
  using program = decltype(fast)::program<points>;
  STATIC_REQUIRE(program::value.bodies[0].block_count >= 2);
  STATIC_REQUIRE(program::value.bodies[0].block_count * vv::fusion::block_steps <= 256);
  points const y = fast(x), expected = waves(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-4f);
}

TEMPLATE_TEST_CASE_SIG("fuse: a body that just stays whole, with all that it leaves behind", "[graph][fuse]",
                       ((int Rounds, bool Whole), Rounds, Whole), (30, true), (31, true), (32, false)) {
  points x = sample();
  for (float& e : x.data) e *= 0.5f;
  constexpr auto fast = vv::fuse(mixed<Rounds>);
  using program = typename decltype(fast)::template program<points>;
  STATIC_REQUIRE((program::value.bodies[0].block_count == 0) == Whole);
  auto const y = fast(x), expected = mixed<Rounds>(x);
  int wrong = 0;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    for (int k = 0; k < 67; ++k)
      ((wrong += !(std::abs(std::get<K>(y).data[k] - std::get<K>(expected).data[k]) <= 1e-4f)), ...);
  }(std::make_index_sequence<12>{});
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE_SIG("fuse: long operators of a body that stays whole are calls where they are many", "[graph][fuse]",
                       ((int Sines, bool Calls), Sines, Calls), (16, false), (17, true), (40, true)) {
  constexpr auto f = [](auto const& x) {
    auto y = x * 1.0f;
    for (int k = 0; k < Sines; ++k) y = vv::sin(y) * 0.5f + x;
    return vv::sum(y);
  };
  points const x = sample();
  constexpr auto fast = vv::fuse(f);
  using program = typename decltype(fast)::template program<points>;
  STATIC_REQUIRE(program::value.bodies[0].block_count == 0);
  STATIC_REQUIRE([] {
    int calls = 0;
    for (auto const& s : program::value.steps) calls += s.apart;
    return calls;
  }() == (Calls ? Sines : 0));
  CHECK(fast(x) == Approx(f(x)).epsilon(1e-5));
}

TEST_CASE("fuse: more stages than one function holds", "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(many_stages);
  STATIC_REQUIRE(decltype(fast)::program<points>::value.used.stages > 64);
  points const y = fast(x), expected = many_stages(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-5f);
}
