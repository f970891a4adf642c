// SPDX-License-Identifier: BSL-1.0
// Loops in branches that only some lanes of two static vmaps run.
#include "some_lanes_test.hpp"

#include <varve_test.hpp>

using namespace some_lanes_test;

TEST_CASE("loops in branches of a cond under two vmaps, the predicate mapped by one or both") {
  vv::array<double, 2, 3> const x{1.0, -2.0, 3.0, -4.0, 5.0, -6.0};
  vv::array<double, 2, 3> const y = vv::vmap(vv::vmap(unbounded))(x);
  for (int k = 0; k < 6; ++k) CHECK(y.data[k] == unbounded(x.data[k]));
  vv::array<double, 2> const rows{1.0, -1.0};
  vv::array<double, 3> const columns{2.0, -2.0, 7.0};
  auto const f = [](auto const& r, auto const& c) {
    return vv::cond(
        r * c > 0.0,
        [](auto const& a, auto const& b) {
          return vv::while_loop<30>([](auto const& v, auto const& w) { return v * w < 100.0; },
                                    [](auto const& v, auto const&) { return v * 2.0; }, a, b);
        },
        [](auto const& a, auto const& b) { return a + b; }, r, c);
  };
  auto const all = vv::vmap(vv::vmap(f, vv::in_dims<vv::none, 0>), vv::in_dims<0, vv::none>);
  vv::array<double, 2, 3> const z = all(rows, columns);
  auto const total = [&](auto const& r, auto const& c) { return vv::sum(all(r, c)); };
  auto const [by_row, by_column] = vv::grad<0, 1>(total)(rows, columns);
  vv::array<double, 2> right_by_row{};
  vv::array<double, 3> right_by_column{};
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 3; ++c) {
      CHECK(z.data[3 * r + c] == f(rows[r], columns[c]));
      auto const [gr, gc] = vv::grad<0, 1>(f)(rows[r], columns[c]);
      right_by_row.data[r] += gr, right_by_column.data[c] += gc;
    }
  for (int r = 0; r < 2; ++r) CHECK(by_row[r] == Approx(right_by_row[r]));
  for (int c = 0; c < 3; ++c) CHECK(by_column[c] == Approx(right_by_column[c]));
}
