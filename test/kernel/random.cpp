// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/random.hpp>

#include <cmath>

namespace k = varve::kernel;

TEST_CASE("philox: the published test vectors", "[kernel][random]") {
  constexpr auto zero = k::philox(0, 0);
  STATIC_REQUIRE(zero.v[0] == 0x6627e8d5u);
  STATIC_REQUIRE(zero.v[1] == 0xe169c58du);
  STATIC_REQUIRE(zero.v[2] == 0xbc57ac4cu);
  STATIC_REQUIRE(zero.v[3] == 0x9b00dbd8u);
  constexpr auto ones = k::philox(~0ull, ~0ull, ~0ull);
  STATIC_REQUIRE(ones.v[0] == 0x408f276du);
  STATIC_REQUIRE(ones.v[1] == 0x41c83b0eu);
  STATIC_REQUIRE(ones.v[2] == 0xa20bc7c6u);
  STATIC_REQUIRE(ones.v[3] == 0x6d5451fdu);
}

TEST_CASE("uniform and normal: range, moments, constant expressions", "[kernel][random]") {
  constexpr double first = k::normal<double>(k::philox(1, 0), 0);
  CHECK(std::abs(first - k::normal<double>(k::philox(1, 0), 0)) < 1e-15);
  for (int pass = 0; pass < 2; ++pass) {
    constexpr int n = 100001;
    std::vector<float> f(n);
    std::vector<double> d(n);
    auto const used_f =
        pass == 0 ? k::fill_uniform<float>(n, f.data(), 5, 0) : k::fill_normal<float>(n, f.data(), 5, 0);
    auto const used_d =
        pass == 0 ? k::fill_uniform<double>(n, d.data(), 5, 0) : k::fill_normal<double>(n, d.data(), 5, 0);
    CHECK(used_f == 25001);
    CHECK(used_d == 50001);
    double mean_f = 0, square_f = 0, mean_d = 0, square_d = 0;
    bool inside = true;
    for (int i = 0; i < n; ++i) {
      auto const x = f[static_cast<std::size_t>(i)];
      auto const y = d[static_cast<std::size_t>(i)];
      inside = inside && (pass == 1 || (x >= 0 && x < 1 && y >= 0 && y < 1));
      mean_f += x / double(n), square_f += double(x) * x / n, mean_d += y / n, square_d += y * y / n;
    }
    CHECK(inside);
    double const mean = pass == 0 ? 0.5 : 0, square = pass == 0 ? 1.0 / 3 : 1;
    CHECK(std::abs(mean_f - mean) < 0.01);
    CHECK(std::abs(mean_d - mean) < 0.01);
    CHECK(std::abs(square_f - square) < 0.02);
    CHECK(std::abs(square_d - square) < 0.02);
  }
  std::vector<std::int64_t> i(1000);
  k::fill_integers<std::int64_t>(1000, i.data(), -3, 4, 9, 0);
  bool seen[7]{}, inside = true;
  for (auto x : i) {
    inside = inside && x >= -3 && x < 4;
    if (inside) seen[x + 3] = true;
  }
  CHECK(inside);
  for (bool s : seen) CHECK(s);
}

TEST_CASE("philox: many blocks at once give what one after the other does", "[kernel][random]") {
  constexpr varve::index_t n = 2000; // neither whole blocks nor whole rows of them
  constexpr std::uint64_t seed = 42, offset = 0xFFFFFFF0ull;
  std::vector<float> uniform(n - 1), normal(n - 1);
  std::vector<std::int64_t> whole(n - 1);
  CHECK(k::fill_uniform<float>(n - 1, uniform.data(), seed, offset) == 500);
  CHECK(k::fill_normal<float>(n - 1, normal.data(), seed, offset) == 500);
  CHECK(k::fill_integers(n - 1, whole.data(), -5, INT64_C(1) << 62, seed, offset) == 1000);
  int different = 0;
  for (varve::index_t i = 0; i + 1 < n; ++i) {
    auto const at = static_cast<std::uint64_t>(i);
    auto const place = static_cast<std::size_t>(i);
    k::philox_block const four = k::philox(seed, offset + at / 4), two = k::philox(seed, offset + at / 2);
    CHECK(uniform[place] == k::uniform<float>(four, static_cast<int>(i % 4)));
    different += normal[place] != k::normal<float>(four, static_cast<int>(i % 4));
    std::uint64_t const bits = std::uint64_t{two.v[i % 2 * 2]} << 32 | two.v[i % 2 * 2 + 1];
    CHECK(whole[place] == -5 + static_cast<std::int64_t>(bits % ((std::uint64_t{1} << 62) + 5)));
  }
  CHECK(different == 0);
  CHECK(k::detail::remainders(~std::uint64_t{0})(~std::uint64_t{0}) == 0);
  CHECK(k::detail::remainders(1)(~std::uint64_t{0}) == 0);
  CHECK(k::detail::remainders((std::uint64_t{1} << 63) + 1)(~std::uint64_t{0}) == (std::uint64_t{1} << 63) - 2);
}
