// SPDX-License-Identifier: BSL-1.0
// Constants of a trace are elements of their dtype.
#include "constants_test.hpp"

#include <varve_test.hpp>

using namespace constants_test;

namespace {
/// A function as it is, fused as loops and as a table: to the bit.
template <class F, class X>
void computes_alike(F const& f, X const& x) {
  auto const want = f(x);
  auto const loops = vv::fuse(f)(x);
  auto const table = vv::fuse(f, vv::table_driven)(x);
  for (index_t k = 0; k < want.size(); ++k) {
    CHECK(std::bit_cast<std::uint64_t>(static_cast<double>(loops[k])) ==
          std::bit_cast<std::uint64_t>(static_cast<double>(want[k])));
    CHECK(std::bit_cast<std::uint64_t>(static_cast<double>(table[k])) ==
          std::bit_cast<std::uint64_t>(static_cast<double>(want[k])));
  }
}
constexpr auto filled = [](auto const& x, auto n) { return vv::full_like(x, n); };
constexpr auto as_int = [](auto const& x) { return vv::to(x, vv::type<int>); };
constexpr auto as_double = [](auto const& x) { return vv::to(x, vv::type<double>); };
constexpr int least = std::numeric_limits<int>::min(), greatest = std::numeric_limits<int>::max();
constexpr auto given = [](auto const& x, int a, int b) { return vv::maximum(filled(x, least), array<int, 2>{a, b}); };
} // namespace

TEST_CASE("constants: what a trace computes of constants has the value that their dtype holds", "[fuse][constant]") {
  array<float, 2> const f{1, 2};
  array<std::uint8_t, 2> const u{1, 2};
  computes_alike([](auto x) { return as_double(filled(x, 0.1)) + as_double(x); }, f);
  computes_alike([](auto x) { return as_double(vv::exp(filled(x, 0.1) * 3)) + as_double(x); }, f);
  computes_alike([](auto x) { return x + (filled(x, 0.1) == 0.1); }, f);
  computes_alike([](auto x) { return as_double(vv::sum(filled(x, 0.1f))) + as_double(x); }, f);
  computes_alike([](auto x) { return as_double(filled(x, 1e30) * filled(x, 1e30)) + as_double(x); }, f);
  computes_alike([](auto x) { return as_int(filled(x, 200) + filled(x, 200)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(-filled(x, 200)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(vv::square(filled(x, 200)) - filled(x, 100)) + as_int(x); }, u);
  computes_alike([](auto x) { return as_int(filled(x, -212)) + as_int(x); }, u);
  computes_alike([](auto x) { return x < 300; }, u);
  computes_alike([](auto x) { return as_int(filled(x, 2)) + as_int(x); }, array<bool, 2>{true, false});
  computes_alike([](auto x) { return filled(x, 2.7) * 2 + x; }, array<int, 2>{1, 2});
  array<int, 2> const i{1, 2};
  computes_alike([](auto x) { return vv::square(given(x, greatest, -70000)) + x; }, i);
  computes_alike([](auto x) { return as_double(vv::abs(given(x, least, -3))) + as_double(x); }, i);
  computes_alike([](auto x) { return as_int(vv::to(given(x, 300, -1), vv::type<std::uint8_t>)) + x; }, i);
  computes_alike(
      [](auto x) { return as_int(vv::maximum(filled(as_double(x), -4e9), array<double, 2>{3e9, -2.5})) + x; }, i);
}

TEST_CASE("fuse: bytes wrap around on the way", "[fuse][dtype]") {
  array<std::uint8_t, 3> const u{200, 150, 3};
  computes_alike([](auto x) { return (x + x) < 100; }, u);
  computes_alike([](auto x) { return vv::maximum(x * x, x); }, u);
  computes_alike([](auto x) { return as_double(-x) * as_double(vv::square(x)); }, u);
  computes_alike([](auto x) { return vv::sum(x * x) + vv::sum(as_double(x - 201)) + as_double(x); }, u);
}

TEST_CASE("constants: a sum of zeros of a trace is no negative zero", "[fuse][constant]") {
  computes_alike([](auto x) { return x / vv::sum(filled(x, -0.0)); }, array<double, 2>{1, 2});
  computes_alike([](auto x) { return (vv::sum(x, vv::axis<1>) + 1.0) / vv::sum(filled(x, -1.0), vv::axis<1>); },
                 array<double, 2, 0>{});
}

TEST_CASE("constants: an array that counts only after conversion is none", "[fuse][constant]") {
  computes_alike([](auto x) { return x + array<bool, 3>{false, true, true}; }, array<int, 3>{1, 2, 3});
  [[maybe_unused]] static constexpr auto wrapped = [] {
    array<std::uint8_t, 300> r{};
    for (index_t k = 0; k < 300; ++k) r[k] = static_cast<std::uint8_t>(k);
    return r;
  }();
  computes_alike([](auto x) { return x + wrapped; }, array<int, 300>{});
}

TEST_CASE("constants: integers that no double is are refused by traces at run time", "[graph][constant]") {
  vv::tensor const x = vv::full({2}, 1, vv::dtype::int64);
  [[maybe_unused]] static constexpr index_t odd = (index_t{1} << 53) + 1, even = index_t{1} << 60;
  CHECK_THROWS_WITH(vv::make_fx([](auto const& v) { return v + odd; })(x), ContainsText("beyond 2^53"));
  CHECK_THROWS_WITH(vv::trace_graph([](auto const& v) { return v * odd; }, vv::meta{vv::dtype::int64, {2}}),
                    ContainsText("beyond 2^53"));
  CHECK(vv::compile([](auto const& v) { return v + even; })(x).template data<index_t>()[1] == even + 1);
}

namespace {
/// The results of `f` on the tensor `x`, of type `T`, fused in the compiler and at run time, are to the bit those of
/// its operators one by one.
template <class T, class F>
void computed_alike(F const& f, vv::tensor const& x) {
  auto const equal = [](vv::tensor const& a, vv::tensor const& b) {
    REQUIRE(a.dtype() == b.dtype());
    REQUIRE(a.sizes() == b.sizes());
    auto const p = vv::to(a, vv::type<double>), q = vv::to(b, vv::type<double>);
    for (index_t k = 0; k < p.numel(); ++k) {
      double const found = p.template data<double>()[k], expected = q.template data<double>()[k];
      CHECK((found == expected || (found != found && expected != expected)));
    }
  };
  constexpr auto fused = vv::fuse<vv::spec<T, 3>>(F{});
  constexpr auto table = vv::fuse<vv::spec<T, 3>>(F{}, vv::table_driven);
  auto const expected = f(x), found = fused(x), looked_up = table(x);
  auto const traced = vv::fuse(vv::trace(F{}, vv::spec<T, 3>).thaw())(vv::boxed_args(x));
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (equal(std::get<K>(found), std::get<K>(expected)), ...);
    (equal(std::get<K>(looked_up), std::get<K>(expected)), ...);
    (equal(traced[static_cast<int>(K)], std::get<K>(expected)), ...);
  }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(expected)>>>{});
}
constexpr auto results = [](auto const&... y) { return std::tuple{y...}; };
} // namespace

TEST_CASE("constants: are elements of their dtype", "[fuse][constant][dtype]") {
  auto const bytes = [](auto x) {
    auto const a = vv::full_like(x, 200), b = vv::full_like(x, 100), c = vv::full_like(x, -212);
    return results(x + c, (a + b) > 50, vv::to(a + b, vv::type<float>), vv::to(vv::neg(b), vv::type<int>), c * 1.0);
  };
  computed_alike<std::uint8_t>(bytes, vv::to(vv::full({3}, 5), dtype::uint8));
  auto const integers = [](auto x) {
    auto const a = vv::full_like(x, 3.7), b = vv::full_like(x, 2000000000);
    return results(x + a, a * 1.0, vv::to(a + a, vv::type<double>), b + b, (b + b) < 0, vv::to(b + b, vv::type<double>),
                   vv::sum(b));
  };
  computed_alike<std::int32_t>(integers, vv::to(vv::full({3}, 5), dtype::int32));
  auto const flags = [](auto x) {
    auto const a = vv::full_like(x, 2);
    return results(a, a * 1.0, vv::eq(a, x), vv::sum(a), vv::to(a + a, vv::type<int>));
  };
  computed_alike<bool>(flags, vv::ones({3}, dtype::bool_));
  auto const singles = [](auto x) {
    auto const a = vv::full_like(x, 0.1), big = vv::full_like(x, 1e8);
    return results(vv::to(a, vv::type<double>), vv::to(a * 3.0, vv::type<double>), (big + 1.0) - big,
                   vv::full_like(x, 1e-200), vv::to(x, vv::type<double>) * a);
  };
  computed_alike<float>(singles, vv::full({3}, 0.3));
}

TEST_CASE("fuse: results between operators are elements of their dtype", "[fuse][dtype]") {
  auto const sums = [](auto x) {
    auto const y = vv::reshape(x, vv::shape<1, 3>), product = y * y, twice = y + y;
    return results(vv::sum(product), vv::sum(product, vv::axis<0>), vv::sum(product, vv::axis<1>), vv::sum(twice),
                   vv::sum(twice, vv::axis<0>), vv::amax(twice, vv::axis<0>), vv::sum(product + y, vv::axis<1>),
                   vv::to(twice, vv::type<double>));
  };
  vv::tensor const x = vv::arange(3) + 127;
  computed_alike<std::uint8_t>(sums, vv::to(x, dtype::uint8));
  computed_alike<std::int32_t>(sums, vv::to(x * 400000, dtype::int32));
  computed_alike<std::int32_t>(
      [](auto y) { return results(vv::neg(y) > 0, (y - 5) > 0, vv::sum(vv::neg(y), vv::axis<0>)); },
      vv::full({3}, std::numeric_limits<int>::min(), dtype::int32));
  auto const powers = [](auto y) {
    auto const s = vv::square(y);
    return results(s, vv::to(s, vv::type<double>), vv::to(vv::abs(y), vv::type<double>),
                   vv::to(vv::pow(vv::maximum(vv::minimum(y, 50000), -50000), 2), vv::type<double>), (s + y) < y,
                   vv::dot(s, y), vv::to(y * y * y, vv::type<double>) * 1.0f);
  };
  for (int const y : {std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 50000, -65537, 0})
    computed_alike<std::int32_t>(powers, vv::full({3}, y, dtype::int32) + vv::to(vv::arange(3), dtype::int32));
  computed_alike<std::uint8_t>(powers, vv::to(x + 70, dtype::uint8));
  auto const whole = [](auto y) {
    auto const i = vv::to(y, vv::type<int>);
    return results(i, vv::to(y, vv::type<std::uint8_t>), vv::to(y, vv::type<std::int64_t>), i < 5,
                   vv::to(i, vv::type<double>) * 0.5, vv::amax(i));
  };
  for (double const y : {1e10, -1e30, std::numeric_limits<double>::quiet_NaN(), -1.9})
    computed_alike<double>(whole, vv::full({3}, y, dtype::float64)), computed_alike<float>(whole, vv::full({3}, y));
  computed_alike<bool>(
      [](auto y) { return results(vv::sum(y + y), vv::sum(y * y), vv::to(y + y, vv::type<float>), vv::eq(y + y, y)); },
      vv::ones({3}, dtype::bool_));
}

TEST_CASE("constants: what no constant expression may compute is computed at run time", "[fuse][constant]") {
  auto const f = [](auto x) {
    auto const zero = vv::zeros_like(x), infinite = 1.0 / zero,
               great = vv::full_like(vv::to(x, vv::type<double>), 1e300);
    return results(x + infinite, zero / zero, vv::reciprocal(zero), infinite - infinite, infinite * 0.0, great * great,
                   vv::full_like(x, 3e38) / vv::full_like(x, 1e-38));
  };
  computed_alike<float>(f, vv::full({3}, 0.3));
}

TEST_CASE("constants: a mean of nothing", "[fuse][constant]") {
  constexpr auto f = [](auto x) { return results(vv::mean(x), vv::mean(x, vv::axis<0>), vv::mean(x, vv::axis<1>)); };
  constexpr auto fused = vv::fuse<vv::spec<float, 0, 4>>(f);
  auto const [all, down, across] = fused(vv::ones({0, 4}));
  CHECK(vv::ne(all, all).item<bool>());
  CHECK(vv::sum(vv::ne(down, down)).item<std::int64_t>() == 4);
  CHECK(across.sizes() == vv::dims(0));
  CHECK(std::get<2>(f(array<float, 0, 4>{})).size() == 0);
}
