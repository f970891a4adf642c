// SPDX-License-Identifier: BSL-1.0
#include <varve/indexing.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

TEST_CASE("bincount: how often, or the sums of weights", "[composite][indexing]") {
  tensor const x = {1, 3, 1};
  CHECK(vv::bincount(x).to_vector() == std::vector<double>{0, 2, 0, 1});
  CHECK(vv::bincount(x).dtype() == vv::dtype::int64);
  CHECK(vv::bincount(x, 6).sizes() == vv::dims{6});
  CHECK(vv::bincount(x, tensor{0.5, 1.0, 2.0}).to_vector() == std::vector<double>{0, 2.5, 0, 1});
  CHECK(vv::bincount(vv::zeros({0}, vv::dtype::int64), 2).to_vector() == std::vector<double>{0, 0});
  CHECK_THROWS_AS(vv::bincount(tensor{1, -1}), vv::value_error);
  CHECK_THROWS_AS(vv::bincount(tensor{1.0, 2.0}), vv::value_error);
  auto const f = [&](tensor const& w) { return vv::sum(vv::square(vv::bincount(x, w))); };
  CHECK(vv::equal(vv::grad(f)(tensor{1.0, 2.0, 3.0}), tensor{8.0, 4.0, 8.0}));
}
