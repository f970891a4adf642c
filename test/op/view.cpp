// SPDX-License-Identifier: BSL-1.0
#include "op_test.hpp"

#include <varve/op/all.hpp>

#include <varve_test.hpp>

using namespace op_test;

TEST_CASE("views: share memory with what they show, and see writes", "[op][view]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3});
  struct view {
    char const* name;
    tensor t;
    std::vector<double> want; // after adding 10
  };
  view const views[] = {{"reshape", vv::reshape(x, dims{3, 2}), {11, 12, 13, 14, 15, 16}},
                        {"transpose", vv::transpose(x), {11, 14, 12, 15, 13, 16}},
                        {"permute", vv::permute(x, dims{1, 0}), {11, 14, 12, 15, 13, 16}},
                        {"slice", vv::slice(x, 1, 0, 3, 2), {11, 13, 14, 16}},
                        {"select", vv::select(x, 0, 1), {14, 15, 16}},
                        {"expand", vv::expand(x, dims{2, 2, 3}), {11, 12, 13, 14, 15, 16, 11, 12, 13, 14, 15, 16}},
                        {"unsqueeze", vv::unsqueeze(x, 0), {11, 12, 13, 14, 15, 16}},
                        {"detach", vv::detach(x), {11, 12, 13, 14, 15, 16}},
                        {"a view of a view", vv::slice(vv::transpose(x), 0, 1, 2), {12, 15}},
                        {"a flat view of a slice", vv::reshape(vv::slice(x, 0, 1, 2), dims{3, 1}), {14, 15, 16}}};
  auto const version = x.version();
  vv::add_(x, 10);
  for (auto const& v : views) {
    INFO(v.name);
    CHECK(v.t.shares_storage(x));
    CHECK(elements(v.t) == v.want);
    CHECK(v.t.version() == version + 1);
  }
  tensor const column = vv::slice(x, 1, 1, 2);
  vv::mul_(column, 0); // a write through a view
  CHECK(elements(x) == std::vector<double>{11, 0, 13, 14, 0, 16});
  CHECK(x.version() == version + 2);
  CHECK_FALSE(vv::clone(x).shares_storage(x));
  CHECK_FALSE(vv::reshape(vv::transpose(x), dims{6}).shares_storage(x)); // no strides express it
  CHECK(vv::contiguous(x).is(x));
  CHECK(vv::contiguous(vv::transpose(x)).is_contiguous());
}

TEST_CASE("reshape: every pair of shapes of twelve elements, from every layout", "[op][reshape]") {
  std::vector<dims> const shapes{{12},      {1, 12},   {3, 4},  {4, 3},    {2, 6},
                                 {2, 3, 2}, {2, 1, 6}, {12, 1}, {2, 2, 3}, {1, 3, 1, 4}};
  for (auto const& a : shapes)
    for (auto const& b : shapes)
      for (auto m : {memory::row_major, memory::transposed, memory::stepped}) {
        INFO(vv::to_string(a) << " to " << vv::to_string(b) << " memory " << static_cast<int>(m));
        numbers draw(4);
        tensor const x = uniform(a, draw, 0, 1, dtype::float64, m), y = vv::reshape(x, b);
        CHECK(y.sizes() == b);
        CHECK(elements(y) == elements(x));
        if (m == memory::row_major) CHECK(y.shares_storage(x));
      }
}

TEST_CASE("views: empty and rank-0 shapes, negative axes, and what is refused", "[op][view]") {
  numbers draw(4);
  tensor const x = uniform({2, 3}, draw), s = uniform({}, draw), e = uniform({0, 3}, draw);
  CHECK(vv::reshape(s, dims{1, 1}).sizes() == dims{1, 1});
  CHECK(vv::reshape(e, dims{3, -1}).sizes() == dims{3, 0});
  CHECK(vv::squeeze(vv::reshape(s, dims{1, 1})).sizes() == dims{});
  CHECK(vv::transpose(s).sizes() == dims{});
  CHECK(vv::slice(x, -1, -2, vv::end).sizes() == dims{2, 2});
  CHECK(vv::slice(x, 0, 5, 9).sizes() == dims{0, 3});
  CHECK(vv::slice(x, 0, -9, 1).sizes() == dims{1, 3});
  CHECK(vv::slice(x, 1, 2, 1).sizes() == dims{2, 0});
  CHECK(vv::expand(uniform({1, 3}, draw), dims{0, 3}).sizes() == dims{0, 3});
  CHECK_THROWS_AS(vv::reshape(x, dims{4, 2}), vv::shape_error);
  CHECK_THROWS_AS(vv::reshape(x, dims{-1, -1}), vv::value_error);
  CHECK_THROWS_AS(vv::reshape(x, dims{-2, -3}), vv::error);
  CHECK_THROWS_AS(vv::reshape(e, dims{0, -1}), vv::shape_error);
  CHECK_THROWS_AS(vv::permute(x, dims{0, 0}), vv::value_error);
  CHECK_THROWS_AS(vv::permute(x, dims{0}), vv::value_error);
  CHECK_THROWS_AS(vv::permute(x, dims{0, 2}), vv::index_error);
  CHECK_THROWS_AS(vv::expand(x, dims{4, 3}), vv::shape_error);
  CHECK_THROWS_AS(vv::expand(x, dims{3}), vv::shape_error);
  CHECK_THROWS_AS(vv::slice(s, 0, 0, 1), vv::value_error);
  CHECK_THROWS_AS(vv::slice(x, 0, 0, 1, 0), vv::value_error);
  CHECK_THROWS_AS(vv::select(x, 1, 3), vv::index_error);
  CHECK_THROWS_AS(vv::select(x, 2, 0), vv::index_error);
  CHECK_THROWS_AS(vv::squeeze(x, 2), vv::index_error);
  CHECK_THROWS_AS(vv::unsqueeze(x, 3), vv::index_error);
  tensor deep = s;
  for (int k = 0; k < vv::max_rank; ++k) deep = vv::unsqueeze(deep, 0);
  CHECK_THROWS_AS(vv::unsqueeze(deep, 0), vv::rank_error);
}

TEST_CASE("cat and stack take tensors in braces", "[op][cat]") {
  tensor const a = from({1, 2}, {2}), b = from({3, 4}, {2}, dtype::float32);
  CHECK(difference(vv::cat({a, b}), vv::cat(std::tuple{a, b}, 0)) == "");
  CHECK(difference(vv::cat({a, b, a}, -1), vv::cat(std::tuple{a, b, a}, 0)) == "");
  CHECK(difference(vv::stack({a, b}), vv::stack(std::tuple{a, b}, 0)) == "");
  CHECK(difference(vv::stack({a, b}, 1), vv::stack(std::tuple{a, b}, 1)) == "");
  CHECK_THROWS_WITH(vv::one_hot(from({1, 0}, {2}, dtype::int32), 2), ContainsText(": dtype int32 is not supported"));
  CHECK_THROWS_WITH(vv::one_hot(from({1, 0}, {2}, dtype::int32), 2), !ContainsText(":: "));
}

TEST_CASE("cat, stack, gather, scatter_add, one_hot: what is refused", "[op][cat]") {
  numbers draw(4);
  tensor const x = uniform({2, 3}, draw), y = uniform({2, 2}, draw), i = from({0, 1, 1, 0}, {2, 2}, dtype::int64);
  CHECK(vv::cat(std::vector<tensor>{x, y, from({1, 2}, {2, 1}, dtype::float32)}, 1).sizes() == dims{2, 6});
  CHECK(vv::cat(std::vector<tensor>{from({1}, {1}, dtype::int32), from({2.5}, {1}, dtype::float32)}, 0).dtype() ==
        dtype::float32);
  CHECK(difference(vv::cat(std::vector<tensor>{from({}, {0}), y}, 1), y) == "");
  CHECK_THROWS_AS(vv::cat(std::vector<tensor>{x, y}, 0), vv::shape_error);
  CHECK_THROWS_AS(vv::cat(std::vector<tensor>{x, y}, 2), vv::index_error);
  CHECK_THROWS_AS(vv::cat(std::vector<tensor>{}, 0), vv::value_error);
  CHECK_THROWS_AS(vv::stack(std::vector<tensor>{x, y}, 0), vv::shape_error);
  CHECK_THROWS_AS(vv::gather(x, 1, from({0, 3}, {2, 1}, dtype::int64)), vv::index_error);
  CHECK_THROWS_AS(vv::gather(x, 1, from({0, -1}, {2, 1}, dtype::int64)), vv::index_error);
  CHECK(difference(vv::gather(from({2.5}, {}), 0, from({0}, {}, dtype::int64)), from({2.5}, {})) == "");
  CHECK_THROWS_AS(vv::gather(from({2.5}, {}), 0, from({1}, {}, dtype::int64)), vv::index_error);
  CHECK_THROWS_AS(vv::scatter_add(from({2.5}, {}), 0, from({-1}, {}, dtype::int64), from({2.5}, {})), vv::index_error);
  CHECK_THROWS_AS(vv::gather(x, 1, from({0, 1}, {2}, dtype::int64)), vv::shape_error);
  CHECK_THROWS_AS(vv::gather(x, 1, from({0, 1}, {2, 1}, dtype::int32)), vv::dtype_error);
  CHECK_THROWS_AS(vv::scatter_add(x, 0, i, uniform({1, 2}, draw)), vv::shape_error);
  CHECK_THROWS_AS(vv::scatter_add(x, 0, i, uniform({2, 2}, draw, 0, 1, dtype::float32)), vv::dtype_error);
  CHECK_THROWS_AS(vv::one_hot(from({0, 3}, {2}, dtype::int64), 3), vv::index_error);
  CHECK_THROWS_AS(vv::one_hot(from({0, 1}, {2}), 3), vv::dtype_error);
}

TEST_CASE("views: several at a time", "[op][view]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {3, 2});
  using parts = std::vector<std::vector<double>>;
  auto const all = [](std::vector<tensor> const& v) {
    parts r;
    for (auto const& t : v) r.push_back(elements(t));
    return r;
  };
  CHECK(all(vv::unbind(x)) == parts{{1, 2}, {3, 4}, {5, 6}});
  CHECK(all(vv::unbind(x, -1)) == parts{{1, 3, 5}, {2, 4, 6}});
  CHECK((vv::unbind(x)[0].sizes() == dims{2} && vv::unbind(x)[2].shares_storage(x)));
  CHECK(all(vv::split(x, 2)) == parts{{1, 2, 3, 4}, {5, 6}});
  CHECK(all(vv::split(x, 5)) == parts{{1, 2, 3, 4, 5, 6}});
  CHECK(vv::split(x, 1, 1)[1].sizes() == dims{3, 1});
  tensor const seven = from({0, 1, 2, 3, 4, 5, 6}, {7});
  CHECK(all(vv::chunk(seven, 3)) == parts{{0, 1, 2}, {3, 4, 5}, {6}});
  CHECK(vv::chunk(seven, 5).size() == 4); // as many as the rounded up share needs
  tensor const none = from({}, {0, 2});
  CHECK((vv::unbind(none).empty() && vv::split(none, 2).size() == 1 && vv::chunk(none, 3).size() == 1));
  CHECK_THROWS_AS(vv::unbind(from({1}, {})), vv::value_error);
  CHECK_THROWS_AS(vv::split(x, 0), vv::value_error);
  CHECK_THROWS_AS(vv::chunk(x, 0), vv::value_error);
  CHECK_THROWS_AS(vv::unbind(x, 2), vv::error);
}

TEST_CASE("sizes and regions that overflow are refused", "[op][view]") {
  constexpr vv::index_t much = vv::index_t{1} << 62, half = vv::index_t{1} << 40;
  tensor const x = of({1.0, 2.0, 3.0});
  CHECK_THROWS_AS(vv::as_strided(x, dims{much}, dims{4}, dims{0}), vv::value_error);
  CHECK_THROWS_AS(vv::as_strided(x, dims{much, 4}, dims{0, 0}, dims{0}), vv::value_error);
  CHECK_THROWS_AS(vv::ops::call("as_strided", x, dims{much}, dims{4}, dims{0}), vv::value_error);
  CHECK_THROWS_WITH(vv::empty(dims{half, half}), ContainsText("the sizes are greater than any memory"));
  CHECK(vv::empty(dims{half, 0}).sizes() == dims{half, 0});
}

TEST_CASE("slice takes a bound beyond any size for the end", "[op][slice]") {
  tensor const x = vector_of({1, 2, 3});
  CHECK(elements(vv::slice(x, 0, 1, index_t{1} << 62)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, 1, INT64_MAX)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, 1, std::uint64_t{1} << 62)) == doubles({2, 3}));
  CHECK(elements(vv::slice(x, 0, -(index_t{1} << 62), 2)) == doubles({1, 2}));
}
