// SPDX-License-Identifier: BSL-1.0
// Effects of static programs.
#include "effects_test.hpp"

#include <varve_test.hpp>

using namespace effects_test;

TEST_CASE("effects: static loops and branches", "[hop][effects]") {
  take();
  auto const step = [](auto c, auto row) {
    program::note(row);
    auto const n = c * row;
    program::note(n);
    return std::pair{n, n};
  };
  vv::array<double, 3> const rows{2, 3, 4};
  auto const scanned = [&](auto x) { return vv::scan(step, x, rows).first; };
  reals const expected{2, 2, 3, 6, 4, 24};
  CHECK(scanned(1.0) == 24);
  CHECK(take() == expected);
  CHECK(vv::grad(scanned)(1.0) == 24); // not again for the gradient
  CHECK(take() == expected);
  CHECK(vv::jvp(scanned, std::tuple(1.0), std::tuple(1.0)).second == 24);
  CHECK(take() == expected);
  CHECK(vv::grad([&](auto x) { return vv::scan<0, 2>(step, x, rows).first; })(1.0) == 24);
  CHECK(take() == expected);
  auto const branched = [](auto x) {
    return vv::cond(
        x > 0.0, [](auto v) { return program::note(v), v * v; }, [](auto v) { return program::note(-v), v; }, x);
  };
  CHECK(vv::grad(branched)(3.0) == 6);
  CHECK(vv::grad(branched)(-3.0) == 1);
  CHECK(take() == reals{3, 3});
}
