// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;

namespace {
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
} // namespace

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
  STATIC_REQUIRE(program::value.bodies[0].fixed_count > 2 * vv::fusion::block_steps);
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
