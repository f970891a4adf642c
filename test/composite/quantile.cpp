// SPDX-License-Identifier: BSL-1.0
#include <varve/sorting.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

TEST_CASE("quantile: of all elements, along an axis, of several fractions", "[composite][sorting]") {
  tensor const x({{4.0, 1.0, 3.0}, {2.0, 8.0, 6.0}});
  CHECK(vv::quantile(x, 0.5).item() == 3.5);
  CHECK(vv::quantile(x, 0).item() == 1);
  CHECK(vv::equal(vv::quantile(x, 0.5, 1), tensor{3.0, 6.0}));
  CHECK(vv::equal(vv::quantile(x, 0.25, vv::axis<-1>), tensor{2.0, 4.0}));
  CHECK(vv::equal(vv::quantile(x, 0.25, 1, vv::quantile_method::lower), tensor{1.0, 2.0}));
  tensor const both = vv::quantile(x, tensor{0.0, 0.5}, 1);
  CHECK(vv::equal(both, tensor({{1.0, 2.0}, {3.0, 6.0}})));
  CHECK(vv::quantile(x.to(vv::dtype::float32), 0.5).dtype() == vv::dtype::float32);
  CHECK(std::isnan(vv::quantile(tensor{1.0, std::nan("")}, 0.5).item()));
  CHECK_THROWS_AS(vv::quantile(x, 1.5), vv::value_error);
  CHECK_THROWS_AS(vv::quantile(x, tensor(0.5)), vv::value_error);
  static_assert(vv::quantile(vv::array<double, 4>{4, 1, 3, 2}, 0.5) == 2.5);
  auto const f = [](auto const& v) { return vv::quantile(v, 0.25); }; // between 1 and 2, at 3 / 4
  CHECK(vv::allclose(vv::grad(f)(tensor{4.0, 1.0, 3.0, 2.0}), tensor{0.0, 0.25, 0.0, 0.75}));
  CHECK(vv::allclose(vv::vmap(f)(x), vv::quantile(x, 0.25, 1)));
}

TEST_CASE("median without an axis is that of all elements", "[composite][sorting]") {
  tensor const x({{4.0, 1.0, 3.0}, {2.0, 8.0, 6.0}}), nan = {1.0, std::nan(""), 2.0};
  CHECK(vv::median(x).item() == 3);
  CHECK(std::isnan(vv::median(nan).item()));
  CHECK(vv::nanmedian(nan).item() == 1);
  CHECK(vv::equal(vv::median(x, 1).first, tensor{3.0, 6.0}));
}
