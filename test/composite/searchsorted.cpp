// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <algorithm>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// By its definition, for one row: how many boundaries are before, or not behind.
index_t place(std::vector<double> const& row, double v, bool right) {
  if (std::isnan(v)) return static_cast<index_t>(row.size());
  return std::count_if(row.begin(), row.end(), [&](double b) { return right ? b <= v : b < v; });
}
tensor ascending(dims const& sizes, numbers& draw, dtype t, memory m) {
  tensor r = blank(sizes, t, m);
  index_t const n = sizes[sizes.n - 1];
  for (index_t k = 0; k < r.numel(); k += n) {
    std::vector<double> row;
    for (index_t j = 0; j < n; ++j) row.push_back(std::floor(draw() * 20) - 10);
    std::sort(row.begin(), row.end());
    for (index_t j = 0; j < n; ++j) set(r, k + j, row[static_cast<std::size_t>(j)]);
  }
  return r;
}
std::vector<double> row_of(tensor const& sorted, index_t k) {
  index_t const n = sorted.sizes()[sorted.dim() - 1];
  std::vector<double> r;
  for (index_t j = 0; j < n; ++j) r.push_back(element(sorted, k * n + j));
  return r;
}
} // namespace

TEST_CASE("searchsorted: places are counts, in every layout, dtype and shape", "[composite][searchsorted]") {
  numbers draw(5);
  for (dtype const t :
       {dtype::float64, dtype::float32, dtype::int64, dtype::int32, dtype::uint8, dtype::int8, dtype::float16})
    for (memory const m : {memory::row_major, memory::transposed, memory::stepped})
      for (int const right : {0, 1})
        for (auto const& [s, v] : std::vector<std::pair<dims, dims>>{{{7}, {2, 3}},
                                                                     {{1}, {4}},
                                                                     {{0}, {4}},
                                                                     {{16}, {}},
                                                                     {{2, 5}, {2, 3}},
                                                                     {{2, 3, 4}, {2, 3, 1}},
                                                                     {{3, 1, 6}, {3, 1, 5}},
                                                                     {{2, 4}, {2, 0}}}) {
          if (t == dtype::uint8 && m != memory::row_major) continue;
          tensor const sorted = t == dtype::uint8 ? vv::full(s, 3, t) : ascending(s, draw, t, m);
          tensor x = blank(v, t, m);
          for (index_t k = 0; k < x.numel(); ++k)
            set(x, k, t == dtype::uint8 ? std::floor(draw() * 6) : std::floor(draw() * 24) - 12);
          tensor const y = vv::searchsorted(sorted, x, dims{right});
          REQUIRE((y.dtype() == dtype::int64 && y.sizes() == v));
          index_t const each = s.n == 1 || v.n == 0 ? 1 : index_t(v[v.n - 1]);
          for (index_t k = 0; k < x.numel(); ++k)
            CHECK(element(y, k) ==
                  static_cast<double>(place(row_of(sorted, s.n == 1 ? 0 : k / each), element(x, k), right != 0)));
        }
}
TEST_CASE("searchsorted: NaN, infinities, dtypes and numbers", "[composite][searchsorted]") {
  double const nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  tensor const b = vector_of({1, 3, 3, 5}), v = vector_of({nan, inf, -inf, 3, -nan});
  CHECK(elements(vv::searchsorted(b, v)) == doubles({4, 4, 0, 1, 4}));
  CHECK(elements(vv::searchsorted(b, v, dims{1})) == doubles({4, 4, 0, 3, 4}));
  tensor const with_nan = vector_of({1, 3, nan, nan}); // NaN is last, as sorted
  CHECK(elements(vv::searchsorted(with_nan, vector_of({0, 1, 2, 3}))) == doubles({0, 0, 1, 1}));
  vv::array<double, 4> const sb{{1, 3, 3, 5}};
  vv::array<double, 3> const sv{{nan, 3, 9}};
  CHECK(vv::equal(vv::searchsorted(sb, sv), vv::array<std::int64_t, 3>{{4, 1, 4}}));
  CHECK(vv::equal(vv::searchsorted(sb, sv, vv::ints<1>{}), vv::array<std::int64_t, 3>{{4, 3, 4}}));
  tensor const whole = vv::arange(5);
  CHECK(vv::searchsorted(whole, 2.5).item<std::int64_t>() == 3);
  CHECK(vv::searchsorted(whole, 2).item<std::int64_t>() == 2);
  CHECK(vv::searchsorted(vv::to(whole, dtype::int8), 300).item<std::int64_t>() == 5);
  CHECK(vv::searchsorted(vv::to(whole, dtype::uint8), -1).item<std::int64_t>() == 0);
  CHECK(elements(vv::searchsorted(whole, vector_of({0.5, 4.5}))) == doubles({1, 5}));
  CHECK_THROWS_AS(vv::searchsorted(vv::full({}, 1.0), v), vv::value_error);
  CHECK_THROWS_AS(vv::searchsorted(vv::zeros({2, 3}), vv::zeros({3, 3})), vv::shape_error);
  CHECK_THROWS_AS(vv::searchsorted(vv::zeros({2, 3}), vv::zeros({2})), vv::shape_error);
}
TEST_CASE("searchsorted: under vmap and traced", "[composite][searchsorted][vmap]") {
  numbers draw(6);
  tensor const rows = ascending({3, 6}, draw, dtype::float64, memory::row_major);
  tensor const x = uniform({3, 2, 4}, draw, -10, 10);
  auto const f = [](tensor const& s, tensor const& v) { return vv::searchsorted(s, v); };
  auto const g = [&](tensor const& s) { return vv::searchsorted(s, vv::select(x, 0, 0)); };
  auto const h = [&](tensor const& v) { return vv::searchsorted(vv::select(rows, 0, 0), v); };
  tensor const both = vv::vmap(f)(rows, x), of_rows = vv::vmap(g)(rows), of_values = vv::vmap(h)(x);
  for (index_t k = 0; k < 3; ++k) {
    CHECK(difference(vv::select(both, 0, k), f(vv::select(rows, 0, k), vv::select(x, 0, k)), 0) == "");
    CHECK(difference(vv::select(of_rows, 0, k), g(vv::select(rows, 0, k)), 0) == "");
    CHECK(difference(vv::select(of_values, 0, k), h(vv::select(x, 0, k)), 0) == "");
  }
  tensor const wide = vv::expand(vv::reshape(rows, dims{3, 1, 6}), dims{3, 2, 6}); // of two dimensions in each lane
  tensor const y = vv::vmap(f)(wide, x);
  for (index_t k = 0; k < 3; ++k)
    CHECK(difference(vv::select(y, 0, k), f(vv::select(wide, 0, k), vv::select(x, 0, k)), 0) == "");
  tensor const s = vv::select(rows, 0, 0), other = vv::select(rows, 0, 1);
  vv::graph const traced = vv::make_fx(f)(s, x);
  CHECK(difference(vv::interpret(traced, vv::boxed_args(other, x))[0], f(other, x), 0) == "");
  CHECK(difference(vv::compile(f)(s, x), f(s, x), 0) == "");
  tensor const flat = vv::vmap(f)(vv::reshape(wide, dims{6, 6}), vv::reshape(x, dims{6, 4}));
  CHECK(difference(vv::vmap(vv::vmap(f))(wide, x), vv::reshape(flat, dims{3, 2, 4}), 0) == "");
}
