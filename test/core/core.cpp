// SPDX-License-Identifier: BSL-1.0
#include <varve/core/dtype.hpp>
#include <varve/core/message.hpp>
#include <varve/core/tree.hpp>
#include <varve/op/create.hpp>

#include <string>
#include <varve_test.hpp>

namespace vv = varve;
using vv::dims;

TEST_CASE("dims: more than eight entries are refused", "[core][dims]") {
  dims d{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK_THROWS_AS(d.push_back(9), vv::rank_error);
  CHECK_THROWS_AS(d.insert(0, 9), vv::rank_error);
  CHECK(d == dims{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK_THROWS_AS(vv::broadcast({2, 3}, {2}), vv::shape_error);
  CHECK_THROWS_AS(vv::wrap_axis(3, 3), vv::index_error);
  CHECK_THROWS_AS(vv::wrap_axis(-2, 1), vv::index_error);
}

TEST_CASE("errors: texts hold the facts and survive copies", "[core][error]") {
  CHECK(vv::to_string(dims{2, 3}) == "[2, 3]");
  CHECK(vv::to_string(dims{}) == "[]");
  CHECK_THROWS_WITH(vv::broadcast({2, 3}, {2}), ContainsText("[2, 3]") && ContainsText("[2]"));
  std::string text;
  try {
    vv::refuse::shapes_do_not_match("mm", {1}, {2});
  } catch (vv::error const& e) {
    vv::error const copy = e;
    vv::error other("x");
    other = copy;
    text = other.what();
  }
  CHECK(text == "varve: mm: shapes [1] and [2] do not fit");
  CHECK_THROWS_AS(vv::refuse::index_out_of_range("gather", 7, 3), vv::index_error);
  CHECK_THROWS_AS(vv::on_dtype(vv::dtype::float16, "sin", []<class T>() { return sizeof(T); }), vv::dtype_error);
}

TEST_CASE("trees: are mapped in order, and keep their kind", "[core][tree]") {
  int n = 0;
  auto const t = vv::tree_map([&](auto) { return n++; }, std::tuple(1, std::pair(2, 3.0), std::array{4, 5}));
  CHECK(t == std::tuple(0, std::pair(1, 2), std::array{3, 4}));
  int sum = 0;
  vv::tree_for_each([&](int v) { sum = 10 * sum + v; }, std::tuple(1, std::pair(2, 3)));
  CHECK(sum == 123);
  CHECK(vv::tree_map([](auto a, auto b) { return a + b; }, std::tuple(1, 2), std::tuple(3, 4)) == std::tuple(4, 6));
}

TEST_CASE("sizes of a result that is a temporary are kept", "[core][dims]") {
  double product = 1;
  for (auto const size : vv::to_dims(vv::ones({2, 3}).sizes() == dims{} ? dims{} : dims{2, 3})) product *= size;
  CHECK(product == 6);
  STATIC_REQUIRE_FALSE(std::is_reference_v<decltype(vv::to_dims(dims{2, 3}))>);
}
