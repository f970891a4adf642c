// SPDX-License-Identifier: BSL-1.0
// Symbolic sizes at run time: hints, ranges, guards, replacements, what depends on data (SY-1 to SY-8).
#include <varve/fake.hpp>
#include <varve/shape/environment.hpp>
#include <varve/varve.hpp>

#include <string>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims;
using vv::extent;
using vv::index_t;
using vv::relation;
using vv::shape_environment;
using vv::tensor;
using texts = std::vector<std::string>;

namespace {
tensor meta(dims const& sizes) { return tensor::meta(sizes, vv::dtype::float32); }
} // namespace

TEST_CASE("shape environment: symbols of inputs", "[shape]") { // SY-1, SY-2
  shape_environment e;
  extent const n = e.size(5, {0, 0}), m = e.size(7, {0, 1}), k = e.size(5, {1, 0}), own = e.size(5, {1, 1}, false);
  CHECK(known_equal(n, k)); // duck
  CHECK_FALSE(known_equal(n, own));
  CHECK(known_equal(e.size(1), 1));
  CHECK(known_equal(e.size(0), 0));
  CHECK(e.text(n) == "s0");
  CHECK(e.text(n * 2 + m - 1) == "2*s0 + s1 - 1");
  CHECK(n != 1);
  CHECK(n > 0);
  CHECK(e.guards().empty());
  CHECK(e.hint(n * m) == 35);
  CHECK(e.guards_in_cpp() ==
        texts{"x1.size(0) == x0.size(0)", "2 <= x0.size(0)", "2 <= x0.size(1)", "2 <= x1.size(1)"});
}

TEST_CASE("shape environment: what hints decide is a guard", "[shape][FK-S21]") { // SY-3
  shape_environment e;
  extent const n = e.size(5, {0, 0}), m = e.size(7, {0, 1});
  CHECK(n < m);
  CHECK(n < m); // once
  CHECK((n + n) % 2 == 0);
  CHECK(n * m > m);
  REQUIRE(e.guards().size() == 1);
  CHECK(e.statically_known_true(relation::less, m, n * m));
  CHECK(e.statically_known_true(relation::equal, (n + n) % 2, 0));
  CHECK_FALSE(e.statically_known_true(relation::equal, n, m));
  CHECK_FALSE(e.statically_known_true(relation::equal, (n + n) % 2, 1));
  CHECK(e.guards().size() == 1);
  CHECK(n < 10);
  CHECK(n < 12); // follows
  CHECK(e.guards().size() == 2);
  CHECK(e.range(n) == vv::size_range{2, 9});
  CHECK_FALSE(m == 3);
  index_t const fits[] = {4, 9}, too_large[] = {8, 3}, beyond[] = {10, 20};
  CHECK(e.hold(fits));
  CHECK_FALSE(e.hold(too_large));
  CHECK_FALSE(e.hold(beyond));
}

TEST_CASE("shape environment: equal symbols are one from then on", "[shape]") { // SY-7
  shape_environment e;
  extent const n = e.size(5, {0, 0}), m = e.size(5, {1, 0}, false), k = e.size(10, {2, 0});
  CHECK(n == m);
  CHECK(known_equal(m + 0 * k + 1, n + 1));
  CHECK(e.text(m * 3 - n) == "2*s0");
  CHECK(k == 2 * n);
  CHECK(e.statically_known_true(relation::equal, k, n + m));
  index_t const seven = k;
  CHECK(seven == 10);
  CHECK(known_equal(k + 1, 11));
  CHECK(e.guards_in_cpp().back() == "x0.size(0) * 2 == 10");
}

TEST_CASE("shape environment: what depends on data", "[shape][FK-S17][FK-S20]") { // SY-4 to SY-6
  shape_environment e;
  extent const u = e.unbacked(), v = e.unbacked(false), n = e.size(6, {0, 0});
  CHECK(e.text(u + v) == "u0 + u1");
  CHECK(u != 1); // a size, for shape rules
  CHECK_FALSE(e.statically_known_true(relation::unequal, u, 1));
  CHECK_THROWS_AS(v == 1, vv::data_dependent_error);
  CHECK_THROWS_WITH(u == 4, ContainsText("u0 == 4") && ContainsText("u0 != 4"));
  CHECK_THROWS_AS(static_cast<index_t>(u), vv::data_dependent_error);
  CHECK_THROWS_AS(e.hint(u), vv::data_dependent_error);
  e.check(relation::less, u, 10);
  CHECK(u < 12);
  CHECK(e.range(u) == vv::size_range{0, 9});
  REQUIRE(e.assertions().size() == 1);
  CHECK(e.assertions()[0].behind == 0);
  e.check_is_size(v);
  CHECK(v >= 0);
  CHECK(v != 1);
  e.check(relation::equal, u, n); // what is backed stands for it
  CHECK(known_equal(u + 1, n + 1));
  extent const a = e.unbacked(), b = e.unbacked();
  e.check(relation::equal, a, 4 * b); // not rewritten
  CHECK(e.text(a + 0) == "u2");
  CHECK_THROWS_AS(e.check(relation::equal, n, 7), vv::value_error);
  CHECK_THROWS_AS(e.check(relation::less, n, 0), vv::value_error);
  CHECK(e.guards().empty());
}

TEST_CASE("shape environment: shape rules of operators", "[shape]") {
  shape_environment e;
  extent const n = e.size(12, {0, 0});
  tensor const x = meta({n, 8}), w = meta({8, 4});
  auto const loss = [&](tensor const& v, tensor const& p) { return vv::sum(vv::softmax(vv::matmul(v, p), 1)); };
  CHECK(e.text(vv::matmul(x, w).sizes()[0]) == "s0");
  CHECK(e.text(vv::grad(loss)(x, w).sizes()[0]) == "s0");
  CHECK(e.text(vv::reshape(x, dims{-1, 4}).sizes()[0]) == "2*s0");
  CHECK(e.text(vv::cat(std::vector{x, x, meta({3, 8})}, 0).sizes()[0]) == "2*s0 + 3");
  CHECK(e.guards().empty());
  CHECK_THROWS_AS(vv::add(x, meta({5, 8})), vv::shape_error);
  CHECK(e.guards_in_cpp() == texts{"2 <= x0.size(0)", "x0.size(0) != 5"});
}

TEST_CASE("shape environment: a relation that was stated is known from then on", "[value][symbolic]") {
  using enum vv::relation;
  shape_environment e;
  auto const u = e.unbacked(), v = e.unbacked(), w = e.unbacked(), s = e.size(5, {0, 0});
  e.check(less, u, s);
  CHECK(u < s);
  CHECK(u <= s);
  CHECK(u != s);
  CHECK(u < s + 1);
  CHECK(u + 1 <= s);
  CHECK_FALSE(s <= u);
  CHECK_FALSE(u == s);
  CHECK_THROWS_AS(u < s - 1, vv::data_dependent_error);
  CHECK_THROWS_AS(v < s, vv::data_dependent_error);
  e.check(unequal, v, w);
  CHECK_FALSE(w == v);
  CHECK_THROWS_AS(v < w, vv::data_dependent_error);
  e.check_is_size(v), e.check_is_size(w), e.check_is_size(u);
  e.check(equal, v * u, v * w);
  CHECK(u * v == w * v);
  CHECK_THROWS_AS(u == w, vv::data_dependent_error); // v may be 0
  e.check(less, 0, v);
  CHECK(u == w);
  CHECK_FALSE(u < w);
}
TEST_CASE("shape environment: a slice of as many rows as data say, which was checked", "[value][symbolic]") {
  auto const f = [](tensor const& x, tensor const& n) {
    auto const k = vv::item(n);
    vv::check_is_size(k), vv::check(vv::relation::less_equal, k, x.sizes()[0]);
    return vv::sum(vv::slice(x, 0, 0, k));
  };
  tensor const x({1.0, 2.0, 3.0}), two = vv::full({}, std::int64_t(2));
  vv::graph const g = vv::make_fx(f, vv::tracing::symbolic)(x, two);
  CHECK(vv::interpret(g, vv::boxed_args(x, two))[0].item<double>() == 3);
}
