// SPDX-License-Identifier: BSL-1.0
// Elements of any type in batches of floats.
#include "varve_test.hpp"

#include <varve/kernel/convert_batch.hpp>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace k = varve::kernel;

namespace {
template <class T>
std::vector<T> elements(k::batch<T> const& v) {
  std::vector<T> r(k::lanes<T>);
  k::store(r.data(), v);
  return r;
}
template <class T>
k::batch<T> batch_of(std::vector<T> const& x) {
  return k::load(x.data());
}
template <class E>
E random_element(std::mt19937_64& random) {
  if constexpr (std::is_same_v<E, bool>) return random() % 2 != 0;
  else if constexpr (std::is_floating_point_v<E>) return static_cast<E>(static_cast<std::int32_t>(random() >> 32)) / 8;
  else if constexpr (sizeof(E) == 8) return static_cast<E>(random()) >> 12;
  else return static_cast<E>(random());
}
} // namespace

TEMPLATE_TEST_CASE("batches of doubles hold elements of any type", "[kernel][dtype]", float, double, std::int32_t,
                   std::int64_t, std::uint8_t, bool) {
  using E = TestType;
  constexpr std::size_t L = k::lanes<double>;
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<unsigned char> bytes(L * sizeof(E) + 2, 0xee); // at any address, and nothing beside it is touched
    E in[L];
    for (E& e : in) e = random_element<E>(random);
    auto* const p = reinterpret_cast<E*>(bytes.data()); // NOLINT: read and written as bytes
    std::memcpy(p, in, sizeof in);
    k::batch<double> const v = k::load_converted<double>(p);
    auto const x = elements(v);
    for (std::size_t l = 0; l < L; ++l) REQUIRE(x[l] == static_cast<double>(in[l]));
    std::memset(bytes.data(), 0xee, bytes.size());
    round % 2 ? k::store_converted(p, v) : k::store_converted<true>(p, v);
    REQUIRE(std::memcmp(p, in, sizeof in) == 0);
    REQUIRE(bytes[L * sizeof(E)] == 0xee);
  }
}
TEMPLATE_TEST_CASE("batches of integers wrap around as their elements do", "[kernel][dtype]", std::int32_t,
                   std::uint8_t, bool) {
  using E = TestType;
  constexpr std::size_t L = k::lanes<double>;
  std::mt19937_64 random(11);
  auto const wanted = [](double x) { return static_cast<double>(k::wrapped<E>(x)); };
  std::vector<double> const edges{0,
                                  -0.0,
                                  1,
                                  -1,
                                  127,
                                  128,
                                  255,
                                  256,
                                  -256,
                                  2147483647,
                                  2147483648.0,
                                  -2147483648.0,
                                  -2147483649.0,
                                  4294967295.0,
                                  4294967296.0,
                                  -4294967297.0,
                                  2251799813685247.0,
                                  -2251799813685247.0};
  for (int round = 0; round < 400; ++round) {
    std::vector<double> x(L), a(L), b(L);
    for (std::size_t l = 0; l < L; ++l) {
      x[l] = round < 40 ? edges[(static_cast<std::size_t>(round) * L + l) % edges.size()]
                        : static_cast<double>(static_cast<std::int64_t>(random()) >> (13 + random() % 40));
      a[l] = static_cast<double>(random_element<E>(random)), b[l] = static_cast<double>(random_element<E>(random));
      if (round == 1)
        a[l] = static_cast<double>(std::numeric_limits<E>::max()),
        b[l] = static_cast<double>(std::numeric_limits<E>::min());
    }
    auto const fast = elements(k::wrapped<E>(batch_of(x))), slow = elements(k::wrapped_any<E>(batch_of(x))),
               product = elements(k::wrapped_product<E>(batch_of(a), batch_of(b)));
    E stored[L];
    k::store_converted(stored, batch_of(x));
    for (std::size_t l = 0; l < L; ++l) {
      REQUIRE(fast[l] == wanted(x[l]));
      REQUIRE(slow[l] == wanted(x[l]));
      REQUIRE(static_cast<double>(stored[l]) == wanted(x[l]));
      auto const exact =
          static_cast<double>(k::wrapped<E>(static_cast<std::int64_t>(a[l]) * static_cast<std::int64_t>(b[l])));
      REQUIRE(product[l] == exact);
      REQUIRE(k::wrapped_product<E>(a[l], b[l]) == exact);
    }
  }
  for (double const x : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN(), 1e300, -1e20})
    for (double const y : elements(k::wrapped_any<E>(k::batch<double>(x)))) CHECK(y == wanted(x));
}
TEMPLATE_TEST_CASE("batches of floats become what a conversion of their elements gives", "[kernel][dtype]", float,
                   double, std::int32_t, std::int64_t, std::uint8_t, bool) {
  using E = TestType;
  std::mt19937_64 random(13);
  std::vector<double> x{0,
                        -0.0,
                        0.5,
                        -0.5,
                        1.5,
                        -1.9,
                        255.9,
                        256.5,
                        -1,
                        2147483647.5,
                        2147483648.0,
                        -2147483648.5,
                        -2147483649.0,
                        1e10,
                        -1e30,
                        9e18,
                        9.3e18,
                        -9.3e18,
                        1e300,
                        0.1};
  x.push_back(std::numeric_limits<double>::infinity()), x.push_back(-std::numeric_limits<double>::infinity()),
      x.push_back(std::numeric_limits<double>::quiet_NaN());
  for (int n = 0; n < 400; ++n)
    x.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -static_cast<int>(random() % 64)));
  for (double const v : x) {
    if (sizeof(E) == 4 && std::is_floating_point_v<E> && std::isfinite(v) && (v > 1e38 || v < -1e38))
      continue; // no float
    auto const wanted = static_cast<double>(k::cast<E>(v));
    for (double const y : elements(k::through<E>(k::batch<double>(v))))
      REQUIRE((y == wanted || (y != y && wanted != wanted)));
  }
}
TEST_CASE("batches of floats hold flags and bytes", "[kernel][dtype]") {
  constexpr std::size_t L = k::lanes<float>;
  bool flags[L], back[L];
  unsigned char bytes[L];
  for (std::size_t l = 0; l < L; ++l) flags[l] = l % 3 == 0, bytes[l] = static_cast<unsigned char>(255 - 7 * l);
  auto const f = k::load_converted<float>(flags), b = k::load_converted<float>(bytes);
  for (std::size_t l = 0; l < L; ++l) {
    CHECK(elements(f)[l] == (flags[l] ? 1.0f : 0.0f));
    CHECK(elements(b)[l] == static_cast<float>(bytes[l]));
  }
  k::store_converted(back, f + f);
  for (std::size_t l = 0; l < L; ++l) CHECK(back[l] == flags[l]);
  for (float const v : elements(k::wrapped<bool>(f + f))) CHECK((v == 0.0f || v == 1.0f));
}
TEST_CASE("batches of integers hold bytes and flags", "[kernel][dtype]") { // one lane without xsimd
  constexpr std::size_t L = k::lanes<std::int32_t>;
  std::mt19937_64 random(17);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int32_t> a(L), b(L);
    std::uint8_t bytes[L], back[L];
    for (std::size_t l = 0; l < L; ++l)
      a[l] = static_cast<std::int32_t>(random()), b[l] = static_cast<std::int32_t>(random()),
      bytes[l] = static_cast<std::uint8_t>(random());
    auto const low = elements(k::wrapped<std::uint8_t>(batch_of(a))), flag = elements(k::wrapped<bool>(batch_of(a))),
               product = elements(k::wrapped_product<std::uint8_t>(batch_of(a), batch_of(b))),
               loaded = elements(k::load_converted<std::int32_t>(bytes));
    k::store_converted(back, batch_of(a));
    for (std::size_t l = 0; l < L; ++l) {
      REQUIRE(low[l] == static_cast<std::uint8_t>(a[l]));
      REQUIRE(flag[l] == (a[l] != 0));
      REQUIRE(product[l] ==
              static_cast<std::uint8_t>(static_cast<std::uint32_t>(a[l]) * static_cast<std::uint32_t>(b[l])));
      REQUIRE(loaded[l] == bytes[l]);
      REQUIRE(back[l] == static_cast<std::uint8_t>(a[l]));
      REQUIRE(elements(k::wrapped<std::int32_t>(batch_of(a)))[l] == a[l]);
    }
  }
}
