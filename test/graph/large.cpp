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

// A long body, and much that does not change in its innermost loop: numbers from memory, and what a row has of its own.
template <class X, class C, class W, std::size_t... K>
constexpr auto weigh(X const& x, C const& c, W const& w, std::index_sequence<K...>) {
  auto y = x * c;
  ((y = vv::sin(y * vv::select(w, vv::axis<0>, vv::axis<static_cast<int>(K)>)) +
        c * vv::select(w, vv::axis<0>, vv::axis<static_cast<int>(K)>)),
   ...);
  return y;
}
constexpr auto rows = [](auto const& x, auto const& c, auto const& w) {
  return weigh(x, c, w, std::make_index_sequence<70>{});
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
  STATIC_REQUIRE(program::value.bodies[0].block_count * vv::loop::block_steps <= 256);
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

TEMPLATE_TEST_CASE("fuse: what a body of blocks needs computed before its loop is several functions too",
                   "[graph][fuse]", float, double) {
  using T = TestType;
  vv::array<T, 3, 67> x;
  vv::array<T, 3, 1> c;
  vv::array<T, 70> w;
  for (int k = 0; k < 3 * 67; ++k) x.data[k] = T(0.03) * static_cast<T>(k % 67) - T(0.5) * static_cast<T>(k / 67);
  for (int k = 0; k < 3; ++k) c.data[k] = T(0.5) + T(0.25) * static_cast<T>(k);
  for (int k = 0; k < 70; ++k) w.data[k] = T(0.9) - T(0.02) * static_cast<T>(k);
  constexpr auto fast = vv::fuse(rows);
  using program = typename decltype(fast)::template program<vv::array<T, 3, 67>, vv::array<T, 3, 1>, vv::array<T, 70>>;
  STATIC_REQUIRE(program::value.used.bodies == 1);
  STATIC_REQUIRE(program::value.bodies[0].block_count >= 2);
  STATIC_REQUIRE(program::value.bodies[0].fixed_count > 2 * vv::loop::block_steps);
  auto const y = fast(x, c, w), expected = rows(x, c, w);
  vv::tensor const xs = vv::tensor::from_data(x.data, {3, 67}), cs = vv::tensor::from_data(c.data, {3, 1}),
                   ws = vv::tensor::from_data(w.data, {70});
  vv::tensor const ys = vv::fuse<vv::spec<T, 3, vv::dim<"n">>, vv::spec<T, 3, 1>, vv::spec<T, 70>>(rows)(
      xs, cs, ws); // the sizes known at run time
  for (int k = 0; k < 3 * 67; ++k) {
    CHECK(std::abs(y.data[k] - expected.data[k]) <= T(1e-5));
    CHECK(std::abs(ys.data<T>()[k] - expected.data[k]) <= T(1e-5));
  }
}

TEST_CASE("fuse: more stages than one function holds", "[graph][fuse]") {
  points const x = sample();
  constexpr auto fast = vv::fuse(many_stages);
  STATIC_REQUIRE(decltype(fast)::program<points>::value.used.stages > 64);
  points const y = fast(x), expected = many_stages(x);
  for (int k = 0; k < 67; ++k) CHECK(std::abs(y.data[k] - expected.data[k]) <= 1e-5f);
}

TEMPLATE_TEST_CASE_SIG("fuse: more reductions in one loop than one function holds", "[graph][fuse]",
                       ((int Sums, int Products, int Maxima, bool Alike), Sums, Products, Maxima, Alike),
                       (150, 0, 0, true), (0, 150, 0, true), (0, 0, 150, true), (60, 60, 60, false)) {
  points const x = sample();
  constexpr auto fast = vv::fuse(reductions<Sums, Products, Maxima>);
  using program = typename decltype(fast)::template program<points>;
  STATIC_REQUIRE(program::value.bodies[0].sink_count > 128);
  STATIC_REQUIRE(vv::loop::sink_table<program, 0>::alike() == Alike);
  float const expected = reductions<Sums, Products, Maxima>(x);
  CHECK(std::abs(expected) > 1);
  CHECK(fast(x) == Approx(expected).epsilon(1e-5));
}
