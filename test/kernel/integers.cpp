// SPDX-License-Identifier: BSL-1.0
// Divisors of integers, the least ones included, against a computation in more bits.
#include <varve/kernel/integers.hpp>

#include <limits>
#include <varve_test.hpp>

namespace kernel = varve::kernel;

namespace {
__extension__ using wide = __int128;

/// Returns `x` as a type that may be too small for it, which then wraps around, without a sign where there is one.
template <class T>
constexpr T size_in(wide x) {
  return kernel::abs(static_cast<T>(static_cast<std::uint64_t>(x)));
}
template <class T>
constexpr bool divisors_agree() {
  using limits = std::numeric_limits<T>;
  constexpr T all[] = {limits::min(),        T(limits::min() + 1), T(-1), 0, 1, 5, 12, 15,
                       T(limits::max() - 1), limits::max()};
  bool r = true;
  for (T const x : all)
    for (T const y : all) {
      wide const p = x < 0 ? -wide(x) : wide(x), q = y < 0 ? -wide(y) : wide(y);
      wide a = p, b = q;
      while (b != 0) {
        wide const rest = a % b;
        a = b, b = rest;
      }
      r = r && kernel::greatest_divisor(x, y) == size_in<T>(a) &&
          kernel::least_multiple(x, y) == size_in<T>(a == 0 ? 0 : p / a * q);
    }
  return r;
}
} // namespace

TEST_CASE("greatest_divisor, least_multiple: all pairs of extreme integers", "[kernel][integers]") {
  STATIC_REQUIRE(divisors_agree<std::int32_t>());
  STATIC_REQUIRE(divisors_agree<std::int64_t>());
  CHECK(divisors_agree<std::int8_t>());
  CHECK(divisors_agree<std::int16_t>());
  CHECK(divisors_agree<std::int32_t>());
  CHECK(divisors_agree<std::int64_t>());
  CHECK(divisors_agree<std::uint8_t>());
}
