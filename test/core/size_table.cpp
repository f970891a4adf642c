// SPDX-License-Identifier: BSL-1.0
// Random expressions: the normal form has the value of the expression as it was written, and lies within its range.
#include <varve/core/message.hpp>
#include <varve/shape/size_table.hpp>

#include <algorithm>
#include <random>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::extent;
using vv::index_t;

namespace {
index_t floor_div(index_t a, index_t b) {
  index_t q = a / b;
  while (q * b > a && b > 0) --q;
  while (q * b < a && b < 0) --q;
  return q;
}
struct expression {
  extent normal;
  std::vector<index_t> values; // at each of the samples
};
} // namespace

TEST_CASE("sizes: normal forms have the values of what was written", "[core][size_table]") {
  constexpr int symbols = 3, samples = 5;
  std::mt19937 draw(1);
  auto const any = [&](index_t low, index_t high) { return std::uniform_int_distribution<index_t>(low, high)(draw); };
  vv::size_range const ranges[symbols] = {{2, 40}, {2, 40}, {2, 40}};
  for (int run = 0; run < 200; ++run) {
    vv::size_table t;
    index_t at[samples][symbols];
    for (auto& row : at)
      for (auto& size : row) size = any(2, 40);
    std::vector<expression> all;
    for (int s = 0; s < symbols; ++s) {
      expression e{t.symbol(s), {}};
      for (auto const& row : at) e.values.push_back(row[s]);
      all.push_back(e);
    }
    for (int k = 0; k < 8; ++k) {
      expression const& a = all[static_cast<std::size_t>(any(0, static_cast<index_t>(all.size()) - 1))];
      expression b = all[static_cast<std::size_t>(any(0, static_cast<index_t>(all.size()) - 1))];
      if (any(0, 2) == 0) {
        index_t const c = any(-4, 6);
        b = {c, std::vector<index_t>(samples, c)};
      }
      auto const divides = std::find(b.values.begin(), b.values.end(), 0) == b.values.end();
      auto const too_large = [](expression const& e) {
        return std::any_of(e.values.begin(), e.values.end(), [](index_t v) { return v > 1000000 || v < -1000000; });
      };
      int const op = static_cast<int>(any(0, divides ? 6 : 4));
      if (op == 2 && (too_large(a) || too_large(b))) continue;
      expression r;
      r.normal = op == 0   ? t.add(a.normal, b.normal)
                 : op == 1 ? t.subtract(a.normal, b.normal)
                 : op == 2 ? t.multiply(a.normal, b.normal)
                 : op == 3 ? t.least(a.normal, b.normal)
                 : op == 4 ? t.greatest(a.normal, b.normal)
                 : op == 5 ? t.divide(a.normal, b.normal)
                           : t.modulo(a.normal, b.normal);
      for (std::size_t i = 0; i < samples; ++i) {
        index_t const x = a.values[i], y = b.values[i];
        r.values.push_back(op == 0   ? x + y
                           : op == 1 ? x - y
                           : op == 2 ? x * y
                           : op == 3 ? std::min(x, y)
                           : op == 4 ? std::max(x, y)
                           : op == 5 ? floor_div(x, y)
                                     : x - floor_div(x, y) * y);
        REQUIRE(t.view().evaluate(r.normal, at[i]) == r.values.back());
        vv::size_range const within = t.view().range(r.normal, ranges);
        REQUIRE(within.least <= r.values.back());
        REQUIRE(within.greatest >= r.values.back());
      }
      all.push_back(r);
    }
  }
}

TEST_CASE("sizes: as text", "[core][size_table]") {
  vv::size_table t;
  extent const n = t.symbol(0, vv::symbol("n")), m = t.symbol(1, vv::symbol("m"));
  auto const text = [&](extent e) { return t.view().text(e); };
  CHECK(text(12) == "12");
  CHECK(text(t.symbol(0)) == "n");
  CHECK(text(t.symbol(2)) == "s2");
  CHECK(text(t.add(3, t.multiply(n, 2))) == "2*n + 3");
  CHECK(text(t.subtract(t.multiply(n, m), n)) == "n*m - n");
  CHECK(text(t.subtract(1, n)) == "-n + 1");
  CHECK(text(t.divide(t.add(n, 1), 2)) == "(n + 1)//2");
  CHECK(text(t.modulo(n, m)) == "n%m");
  CHECK(text(t.greatest(n, t.multiply(2, m))) == "max(n, 2*m)");
  vv::size_guard const few{vv::relation::less_equal, t.multiply(n, 3), 12};
  CHECK(t.view().text(few) == "3*n <= 12");
}
