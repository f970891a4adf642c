// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

static_assert([] {
  constexpr varve::array<double, 2, 3> x{{1, 0, -3, 0, 5, 0}};
  constexpr auto y = vv::nonzero_static(x, vv::axis<4>);
  return y.data[0] == 0 && y.data[1] == 0 && y.data[2] == 0 && y.data[3] == 2 && y.data[4] == 1 && y.data[5] == 1 &&
         y.data[6] == -1 && y.data[7] == -1;
}());

TEST_CASE("nonzero: places in the order of rows", "[op][nonzero]") {
  tensor const x = vv::reshape(vector_of({1, 0, -3, 0, 5, std::nan("")}), dims{2, 3});
  CHECK(elements(vv::nonzero(x)) == doubles({0, 0, 0, 2, 1, 1, 1, 2}));
  CHECK(vv::nonzero(x).sizes() == dims{4, 2});
  CHECK(vv::nonzero(x).dtype() == vv::dtype::int64);
  CHECK(elements(vv::nonzero(vv::permute(x, dims{1, 0}))) == doubles({0, 0, 1, 1, 2, 0, 2, 1}));
  CHECK(elements(vv::nonzero(vv::slice(x, 1, 0, 3, 2))) == doubles({0, 0, 0, 1, 1, 1}));
  CHECK(elements(vv::nonzero(vv::expand(vv::slice(x, 0, 0, 1), dims{2, 3}))) == doubles({0, 0, 0, 2, 1, 0, 1, 2}));
  CHECK(vv::nonzero(vv::zeros({2, 3})).sizes() == dims{0, 2});
  CHECK(vv::nonzero(vv::zeros({0, 3})).sizes() == dims{0, 2});
  CHECK(vv::nonzero(vv::full({}, 2.0)).sizes() == dims{1, 0});
  CHECK(vv::nonzero(vv::full({}, 0.0)).sizes() == dims{0, 0});
  CHECK(vv::nonzero(vector_of({-0.0, std::numeric_limits<double>::denorm_min()})).sizes() == dims{1, 1});
  for (vv::dtype const t :
       {vv::dtype::bool_, vv::dtype::uint8, vv::dtype::int32, vv::dtype::int64, vv::dtype::float32, vv::dtype::float64})
    CHECK(elements(vv::nonzero(vv::to(vector_of({0, 1, 0, 1}), t))) == doubles({1, 3}));
}
TEST_CASE("nonzero_static: a number of places", "[op][nonzero]") {
  tensor const x = vector_of({0, 4, 0, 7});
  CHECK(elements(vv::nonzero_static(x, 1)) == doubles({1}));
  CHECK(elements(vv::nonzero_static(x, 3)) == doubles({1, 3, -1}));
  CHECK(vv::nonzero_static(x, 0).sizes() == dims{0, 1});
  CHECK_THROWS_AS(vv::nonzero_static(x, -1), vv::error);
  tensor const rows = vv::stack(std::vector{x, vector_of({1, 1, 0, 0}), vv::zeros({4}, vv::dtype::float64)}, 0);
  tensor const y = vv::vmap([](tensor const& r) { return vv::nonzero_static(r, 2); })(rows);
  CHECK(y.sizes() == dims{3, 2, 1});
  CHECK(elements(y) == doubles({1, 3, 0, 1, -1, -1}));
}
TEST_CASE("masked_select: values, broadcasting, gradients", "[op][nonzero]") {
  tensor const x = vv::reshape(vector_of({1, 2, 3, 4, 5, 6}), dims{2, 3});
  tensor const columns = vv::ne(vector_of({1, 0, 1}), 0.0);
  CHECK(elements(vv::masked_select(x, vv::gt(x, 3.5))) == doubles({4, 5, 6}));
  CHECK(elements(vv::masked_select(x, columns)) == doubles({1, 3, 4, 6}));
  CHECK(elements(vv::masked_select(vector_of({7, 8, 9}), vv::gt(x, 3.5))) == doubles({7, 8, 9}));
  CHECK(vv::masked_select(x, vv::gt(x, 100.0)).sizes() == dims{0});
  CHECK_THROWS_AS(vv::masked_select(x, x), vv::dtype_error);
  CHECK_THROWS_AS(vv::masked_select(x, vv::ne(vector_of({1, 2}), 0.0)), vv::shape_error);
  auto const squares = [&](tensor const& v) {
    tensor const s = vv::masked_select(v, columns);
    return vv::sum(s * s);
  };
  CHECK(elements(vv::grad(squares)(x)) == doubles({2, 0, 6, 8, 0, 12}));
  CHECK(vv::jvp(squares, std::tuple(x), std::tuple(x)).second.item<double>() == 2 * (1 + 9 + 16 + 36));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(squares)(v) * v); })(x)) ==
        doubles({4, 0, 12, 16, 0, 24}));
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  squares(leaf).backward();
  CHECK(elements(leaf.grad()) == doubles({2, 0, 6, 8, 0, 12}));
  CHECK_THROWS_AS(vv::vmap([](tensor const& r) { return vv::masked_select(r, vv::gt(r, 2.0)); })(x),
                  vv::data_dependent_error);
  CHECK(vv::this_thread_state.quiet());
}
TEST_CASE("item and scalar_tensor: numbers that may be sizes", "[op][nonzero]") {
  tensor const n = vv::full({}, 3, vv::dtype::int64);
  CHECK(vv::zeros(dims{vv::item(n), 2}).sizes() == dims{3, 2});
  CHECK(vv::item(vv::ne(vv::full({1, 1}, 2.0), 0.0)) == 1);
  CHECK_THROWS_AS(vv::item(vv::full({}, 1.5)), vv::dtype_error);
  CHECK_THROWS_AS(vv::item(vv::full({2}, 1, vv::dtype::int64)), vv::value_error);
  CHECK(vv::scalar_tensor(5).item<double>() == 5);
  CHECK(vv::scalar_tensor(5).dtype() == vv::dtype::int64);
  CHECK_THROWS_AS(vv::check_is_size(-1), vv::value_error);
  CHECK_THROWS_AS(vv::check(vv::relation::less, 3, 3), vv::value_error);
}
