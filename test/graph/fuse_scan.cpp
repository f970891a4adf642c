// SPDX-License-Identifier: BSL-1.0
// Loops of fused programs whose state is a few numbers, which stay in registers; and such whose state does not.
#include <varve/varve.hpp>

#include <cstdint>
#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::index_t;

namespace {
constexpr auto rotate = [](auto const& state, auto const& by, auto const& scale) {
  auto const [x, y, n] = state;
  return std::pair(std::tuple(y * scale + by, x - y, n + vv::to(by > 0.0, vv::ints<index_t(vv::dtype::int64)>{})), x);
};
template <index_t Steps>
constexpr auto rotated = [](auto x, auto y, auto n, auto by, auto scale) {
  auto const [state, seen] = vv::scan(vv::closure(rotate, scale), std::tuple(x, y, n), by);
  auto const [a, b, c] = state;
  return std::tuple(a, b, c, seen);
};
template <index_t Steps>
void check_rotated() {
  array<double, Steps> by;
  for (index_t k = 0; k < Steps; ++k) by[k] = k % 3 == 1 ? -0.5 : 0.25 * static_cast<double>(k);
  double x = 0.5, y = -2;
  std::int64_t n = 7;
  array<double, Steps> seen;
  for (index_t k = 0; k < Steps; ++k) {
    seen[k] = x;
    double const next = y * 0.75 + by[k];
    y = x - y, x = next, n += by[k] > 0;
  }
  constexpr auto f = vv::fuse(rotated<Steps>);
  auto const [a, b, c, s] = f(0.5, -2.0, std::int64_t(7), by, 0.75);
  CHECK((a == x && b == y && c == n));
  for (index_t k = 0; k < Steps; ++k) CHECK(s[k] == seen[k]);
  // Results may lie where arguments do.
  double u = 0.5, v = -2;
  std::int64_t m = 7;
  f.into(u, v, m, seen)(u, v, m, by, 0.75);
  CHECK((u == x && v == y && m == n));
}
constexpr auto both = [](auto const& state, auto const& by) {
  auto const [x, row] = state;
  return std::pair(std::tuple(x * 0.5 + by, row + x), vv::none);
};
} // namespace

TEST_CASE("fuse: loops whose state is a few numbers", "[graph][fuse][scan]") {
  check_rotated<1>();
  check_rotated<2>();
  check_rotated<5>();
  check_rotated<8>();
}

TEST_CASE("fuse: loops whose state is numbers and arrays, and their gradients", "[graph][fuse][scan]") {
  array<double, 4> const by{{1.0, -2.0, 0.5, 3.0}};
  array<double, 3> row{{1.0, 2.0, 3.0}};
  double x = 0.5;
  array<double, 3> sum = row;
  for (index_t k = 0; k < 4; ++k) {
    for (index_t i = 0; i < 3; ++i) sum[i] += x;
    x = x * 0.5 + by[k];
  }
  auto const [a, b] =
      vv::fuse([](auto s, auto r, auto v) { return vv::scan(both, std::tuple(s, r), v).first; })(0.5, row, by);
  CHECK(a == x);
  for (index_t i = 0; i < 3; ++i) CHECK(b[i] == sum[i]);
  // The gradient's loop carries cotangents: of the step's number, and of what it captures.
  constexpr auto last = [](auto s, auto scale) {
    auto const step = [](auto const& at, auto const& by_now, auto const& c) {
      return std::pair(vv::sin(at * c) + by_now, vv::none);
    };
    return vv::scan(vv::closure(step, scale), s, array<double, 5>{{0.1, 0.2, 0.3, 0.4, 0.5}}).first;
  };
  auto const [ds, dc] = vv::fuse(vv::grad<0, 1>(last))(0.5, 1.5);
  auto const [es, ec] = vv::grad<0, 1>(last)(0.5, 1.5);
  CHECK(std::abs(ds - es) < 1e-15);
  CHECK(std::abs(dc - ec) < 1e-15);
}

TEST_CASE("fuse: loops of a symbolic number of steps", "[graph][fuse][scan]") {
  constexpr index_t n = vv::dim<"n">;
  constexpr auto f = [](auto x, auto by) {
    return vv::scan([](auto at, auto b) { return std::pair(at * 0.5 + b, at); }, x, by);
  };
  constexpr auto fused = vv::fuse<vv::spec<double>, vv::spec<double, n>>(f);
  for (index_t const count : {1, 2, 7, 8}) {
    vv::tensor const by = vv::to(vv::arange(count), vv::dtype::float64);
    auto const [x, seen] = fused(vv::full(vv::dims{}, 3.0, vv::dtype::float64), by);
    double want = 3;
    for (index_t k = 0; k < count; ++k) {
      CHECK(seen.data<double>()[k] == want);
      want = want * 0.5 + static_cast<double>(k);
    }
    CHECK(x.data<double>()[0] == want);
  }
}
