// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/convert.hpp>
#include <varve/kernel/math.hpp>
#include <varve/kernel/pointwise.hpp>

using namespace kernel_test;
namespace k = varve::kernel;

namespace {
struct add_f {
  auto operator()(auto a, auto b) const { return k::add(a, b); }
};
struct sub_f {
  auto operator()(auto a, auto b) const { return k::sub(a, b); }
};
struct less_f {
  auto operator()(auto a, auto b) const { return k::lt(a, b); }
};
struct where_f {
  auto operator()(auto c, auto a, auto b) const { return k::where(c, a, b); }
};
struct remainder_f {
  auto operator()(auto a, auto b) const { return k::remainder(a, b); }
};
struct scalar_f {
  static constexpr bool scalar_only = true;
  float operator()(float a) const { return a + 1; }
};

template <class T>
void check_add(dims const& sizes, bool plain) {
  strided<T> a(sizes, true, plain), b(sizes, true), out(sizes, false, plain);
  k::operand in[] = {{static_cast<void const*>(a.data()), a.strides.numbers(), sizeof(T)},
                     {static_cast<void const*>(b.data()), b.strides.numbers(), sizeof(T)}};
  auto const before = out.memory;
  k::pointwise(sizes, {out.data(), out.strides.numbers(), sizeof(T)}, in, 2, k::contiguous<T, T, add_f, 2>);
  bool right = true;
  visit_every_index(sizes, [&](dims const& at) { right = right && out[at] == static_cast<T>(a[at] + b[at]); });
  CHECK(right);
  // what lies between the elements of the output is untouched
  auto after = out;
  visit_every_index(sizes, [&](dims const& at) {
    std::memcpy(&after[at], before.data() + (reinterpret_cast<unsigned char*>(&after[at]) - after.memory.data()),
                sizeof(T));
  });
  CHECK(after.memory == before);
}
} // namespace

TEST_CASE("pointwise: any strides equal the plain loop", "[kernel][pointwise]") {
  for (int round = 0; round < 300; ++round) {
    dims const sizes = random_sizes(round % 6, round % 6 < 3 ? 70 : 6);
    check_add<float>(sizes, round % 3 == 0);
    check_add<double>(sizes, false);
    check_add<std::int32_t>(sizes, false);
    check_add<std::int64_t>(sizes, round % 2 == 0);
    check_add<std::uint8_t>(sizes, false);
    check_add<bool>(sizes, false);
  }
  check_add<float>({1000}, false);
  check_add<float>({3, 700}, false);
  check_add<float>({700, 3}, false);
}

TEST_CASE("pointwise: empty shapes and rank 0", "[kernel][pointwise]") {
  float a = 1, b = 2, c = -1;
  varve::index_t const zero[2] = {0, 0};
  k::operand in[] = {{static_cast<void const*>(&a), zero, 4}, {static_cast<void const*>(&b), zero, 4}};
  k::pointwise({0, 5}, {&c, zero, 4}, in, 2, k::contiguous<float, float, add_f, 2>);
  CHECK(c == -1);
  k::pointwise({}, {&c, nullptr, 4}, in, 2, k::contiguous<float, float, add_f, 2>);
  CHECK(c == 3);
}

TEST_CASE("pointwise: the output may be an input", "[kernel][pointwise]") {
  for (int round = 0; round < 100; ++round) {
    dims const sizes = random_sizes(1 + round % 4, 40);
    strided<float> x(sizes, false), y(sizes, true);
    auto before = x;
    k::operand in[] = {{static_cast<void const*>(x.data()), x.strides.numbers(), 4},
                       {static_cast<void const*>(y.data()), y.strides.numbers(), 4}};
    k::pointwise(sizes, {x.data(), x.strides.numbers(), 4}, in, 2, k::contiguous<float, float, add_f, 2>);
    bool right = true;
    visit_every_index(sizes, [&](dims const& at) { right = right && x[at] == before[at] + y[at]; });
    CHECK(right);
  }
}

TEST_CASE("contiguous: every length, nothing past the end", "[kernel][pointwise]") {
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<float> a(n), b(n, 1.5f), c(n + 1, 7.f);
    for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<float>(i);
    void const* in[] = {a.data(), b.data(), a.data()};
    k::contiguous<float, float, add_f, 2>(n, c.data(), in);
    for (std::size_t i = 0; i < n; ++i) CHECK(c[i] == a[i] + 1.5f);
    CHECK(c[n] == 7.f);
    k::contiguous<float, float, where_f, 3>(n, c.data(), in);
    for (std::size_t i = 0; i < n; ++i) CHECK(c[i] == (a[i] != 0 ? 1.5f : a[i]));
    k::contiguous<float, float, scalar_f, 1>(n, c.data(), in);
    for (std::size_t i = 0; i < n; ++i) CHECK(c[i] == a[i] + 1);
    std::vector<unsigned char> less(n + 1, 9);
    k::contiguous<bool, float, less_f, 2>(n, less.data(), in);
    for (std::size_t i = 0; i < n; ++i) CHECK(less[i] == (a[i] < 1.5f));
    CHECK(less[n] == 9);
  }
}

template <class T>
void check_beside() {
  k::loop before = k::beside<T, sub_f, 2, 1>().run, after = k::beside<T, sub_f, 2, 2>().run; // null without SIMD
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<T> a(n), c(n + 1, T(7));
    for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<T>(i);
    T const one = T(0.5);
    void const *first[] = {&one, a.data()}, *second[] = {a.data(), &one};
    if (before) {
      before(n, c.data(), first);
      for (std::size_t i = 0; i < n; ++i) CHECK(c[i] == one - a[i]);
    }
    if (after) {
      after(n, c.data(), second);
      for (std::size_t i = 0; i < n; ++i) CHECK(c[i] == a[i] - one);
      CHECK(c[n] == T(7));
      after(n, a.data(), second); // in place
      for (std::size_t i = 0; i < n; ++i) CHECK(a[i] == c[i]);
    }
  }
  CHECK(k::loops_beside{{k::beside<T, sub_f, 2, 2>()}}.find(1) == nullptr);
}
TEST_CASE("contiguous: beside one element, every length, nothing past the end", "[kernel][pointwise]") {
  check_beside<float>();
  check_beside<double>();
}

TEST_CASE("contiguous: no operator sees elements that are not there", "[kernel][pointwise]") {
  for (std::size_t n = 1; n < 20; ++n) {
    std::vector<std::int32_t> a(n, 7), b(n, -2), c(n);
    void const* in[] = {a.data(), b.data()};
    k::contiguous<std::int32_t, std::int32_t, remainder_f, 2>(n, c.data(), in);
    CHECK(c == std::vector<std::int32_t>(n, -1));
    k::contiguous<std::int32_t, std::int32_t, add_f, 2>(n, a.data(), in); // in place
    CHECK(a == std::vector<std::int32_t>(n, 5));
  }
}

TEST_CASE("copy_strided: any strides, transpositions in tiles", "[kernel][pointwise]") {
  for (int round = 0; round < 200; ++round) {
    dims sizes = random_sizes(1 + round % 5, round % 5 < 3 ? 70 : 6);
    if (round % 4 == 0) sizes = {random_int(1, 2), random_int(40, 600), random_int(2, 8)}; // short rows
    strided<double> a(sizes, true), out(sizes, false, round % 2 == 0);
    strided<std::uint8_t> a1(sizes, true), out1(sizes, false);
    k::copy_strided(sizes, {out.data(), out.strides.numbers(), 8},
                    {static_cast<void const*>(a.data()), a.strides.numbers(), 8});
    k::copy_strided(sizes, {out1.data(), out1.strides.numbers(), 1},
                    {static_cast<void const*>(a1.data()), a1.strides.numbers(), 1});
    bool right = true;
    visit_every_index(sizes, [&](dims const& at) { right = right && out[at] == a[at] && out1[at] == a1[at]; });
    CHECK(right);
  }
}

namespace {
template <class To, class From>
void check_convert() {
  dims const sizes{5, 50};
  strided<From> a(sizes, true);
  strided<To> out(sizes, false);
  k::convert(sizes, {out.data(), out.strides.numbers(), sizeof(To)}, varve::dtype_of_type<To>(),
             {static_cast<void const*>(a.data()), a.strides.numbers(), sizeof(From)}, varve::dtype_of_type<From>());
  bool right = true;
  visit_every_index(sizes, [&](dims const& at) {
    if constexpr (std::is_same_v<To, bool>) right = right && out[at] == (a[at] != From(0));
    else right = right && out[at] == static_cast<To>(static_cast<std::int64_t>(a[at]));
  });
  CHECK(right);
}
template <class To>
void check_converts() {
  check_convert<To, bool>();
  check_convert<To, std::uint8_t>();
  check_convert<To, std::int32_t>();
  check_convert<To, std::int64_t>();
  check_convert<To, float>();
  check_convert<To, double>();
}
} // namespace

TEST_CASE("convert: all pairs of dtypes", "[kernel][convert]") {
  check_converts<bool>();
  check_converts<std::uint8_t>();
  check_converts<std::int32_t>();
  check_converts<std::int64_t>();
  check_converts<float>();
  check_converts<double>();
  STATIC_REQUIRE(k::cast<std::int32_t>(-1.9) == -1);
  STATIC_REQUIRE(k::cast<std::int32_t>(1e30f) == INT32_MIN);
  STATIC_REQUIRE(k::cast<std::int64_t>(__builtin_nan("")) == INT64_MIN);
  STATIC_REQUIRE(k::cast<std::uint8_t>(-1.0) == 255);
  STATIC_REQUIRE(k::cast<bool>(0.25f));
}

namespace {
/// What a conversion is, written with branches.
template <class To, class From>
To plainly(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using W = std::conditional_t<sizeof(To) == 4, std::int32_t, std::int64_t>;
    double const bound = sizeof(To) == 4 ? 2147483648.0 : 9223372036854775808.0;
    if (!(static_cast<double>(x) >= -bound && static_cast<double>(x) < bound))
      return static_cast<To>(std::numeric_limits<W>::min());
    return static_cast<To>(static_cast<W>(x));
  } else return static_cast<To>(x);
}
/// Numbers of all magnitudes, around the bounds of integers, not finite, and of random bits.
template <class From>
std::vector<From> numbers() {
  std::vector<From> r;
  if constexpr (std::is_floating_point_v<From>) {
    for (double b : {0.0, 0.5, 1.0, 255.0, 256.0, 2147483647.0, 2147483648.0, 4294967296.0, 9223372036854775807.0, 1e19,
                     1e30, 1e-40, 16777217.0})
      for (double s : {1.0, -1.0})
        for (int k = -2; k <= 2; ++k) {
          From x = static_cast<From>(s * b);
          for (int j = 0; j < (k < 0 ? -k : k); ++j) x = std::nextafter(x, static_cast<From>(k < 0 ? -1e38 : 1e38));
          r.push_back(x);
        }
    for (From x : {std::numeric_limits<From>::quiet_NaN(), std::numeric_limits<From>::infinity(),
                   -std::numeric_limits<From>::infinity(), std::numeric_limits<From>::denorm_min()})
      r.push_back(x);
  } else if constexpr (std::is_same_v<From, bool>) {
    for (int k = 0; k < 200; ++k) r.push_back(k % 3 == 0);
    return r;
  } else {
    for (auto b : {std::numeric_limits<From>::min(), std::numeric_limits<From>::max(), From(0), From(1)})
      for (int k = -3; k <= 3; ++k) r.push_back(k::add<From>(b, static_cast<From>(k)));
  }
  for (int k = 0; k < 500; ++k) {
    std::uint64_t const bits = kernel_test::engine()() | std::uint64_t{kernel_test::engine()()} << 32;
    From x;
    std::memcpy(&x, &bits, sizeof x);
    r.push_back(x);
  }
  return r;
}
template <class To, class From>
void check_exact() {
  auto const all = numbers<From>();
  std::vector<unsigned char> memory(all.size() * sizeof(From) + 64), result(all.size() * sizeof(To) + 64);
  auto const loop = k::convert_loop<>(varve::dtype_of_type<To>(), varve::dtype_of_type<From>());
  bool right = true;
  for (std::size_t n = 0; n <= all.size(); n += n < 70 ? 1 : 37)
    for (std::size_t shift : {0, 1, 3}) { // not aligned to a register
      auto* const x = reinterpret_cast<From*>(memory.data()) + shift;
      auto* const y = reinterpret_cast<To*>(result.data()) + shift;
      for (std::size_t i = 0; i < n; ++i) x[i] = all[all.size() - n + i];
      std::memset(static_cast<void*>(y + n), 0x5a, sizeof(To));
      void const* in[] = {x};
      loop(n, y, in);
      for (std::size_t i = 0; i < n; ++i) {
        To const want = plainly<To>(x[i]);
        bool const same = std::memcmp(&want, y + i, sizeof want) == 0;
        if constexpr (std::is_floating_point_v<To>) right = right && (same || (want != want && y[i] != y[i]));
        else right = right && same;
      }
      right = right && *reinterpret_cast<unsigned char const*>(y + n) == 0x5a;
    }
  CHECK(right);
}
template <class To>
void check_all_exact() {
  check_exact<To, bool>();
  check_exact<To, std::uint8_t>();
  check_exact<To, std::int32_t>();
  check_exact<To, std::int64_t>();
  check_exact<To, float>();
  check_exact<To, double>();
}
template <class T, class A, class B>
void check_converting(dims const& sizes) {
  strided<A> a(sizes, true);
  strided<B> b(sizes, true);
  strided<T> out(sizes, false);
  k::operand in[] = {{static_cast<void const*>(a.data()), a.strides.numbers(), sizeof(A)},
                     {static_cast<void const*>(b.data()), b.strides.numbers(), sizeof(B)}};
  if (!std::is_same_v<A, T>) in[0].convert = k::convert_loop<>(varve::dtype_of_type<T>(), varve::dtype_of_type<A>());
  if (!std::is_same_v<B, T>) in[1].convert = k::convert_loop<>(varve::dtype_of_type<T>(), varve::dtype_of_type<B>());
  k::pointwise(sizes, {out.data(), out.strides.numbers(), sizeof(T)}, in, 2, k::contiguous<T, T, add_f, 2>);
  bool right = true;
  visit_every_index(
      sizes, [&](dims const& at) { right = right && out[at] == k::add<T>(plainly<T>(a[at]), plainly<T>(b[at])); });
  CHECK(right);
}
} // namespace

TEST_CASE("convert: exact for every pair of dtypes, length and alignment", "[kernel][convert]") {
  check_all_exact<bool>();
  check_all_exact<std::uint8_t>();
  check_all_exact<std::int32_t>();
  check_all_exact<std::int64_t>();
  check_all_exact<float>();
  check_all_exact<double>();
}
TEST_CASE("pointwise: operands of other types are converted on the way", "[kernel][pointwise]") {
  for (int round = 0; round < 200; ++round) {
    dims const sizes = random_sizes(round % 6, round % 6 < 3 ? 70 : 6);
    check_converting<float, float, bool>(sizes);
    check_converting<double, float, std::int32_t>(sizes);
    check_converting<std::int64_t, bool, std::uint8_t>(sizes);
    check_converting<float, std::int64_t, double>(sizes);
    check_converting<std::uint8_t, float, std::uint8_t>(sizes);
  }
  check_converting<float, bool, float>({3, 700});
  check_converting<float, float, std::int64_t>({1000});
  check_converting<double, bool, float>({40, 2, 30});
}
