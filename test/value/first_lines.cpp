// SPDX-License-Identifier: BSL-1.0
// The lines of README on values.
#include "varve_test.hpp"

#include <varve/varve.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <sstream>
#include <vector>

namespace vv = varve;

TEST_CASE("README: the lines on values", "[value]") {
  vv::tensor v(std::vector<double>{1, 2, 3});
  vv::tensor m({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}), w = {0.5, -1, 2};
  vv::array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
  CHECK(m[1][2].item() == 6);
  CHECK(m.at(vv::slice(1, 2), vv::none, vv::ellipsis, -1).sizes() == vv::dims{1, 1});
  CHECK(m.at(m > 2.0).to_vector() == std::vector<double>{3, 4, 5, 6});
  m[0] = w, m[1] += 1.0, m.at(m > 5.0) = 0;
  CHECK(m.to_vector() == std::vector<double>{0.5, -1, 2, 5, 0, 0});
  CHECK(vv::equal(a[1], vv::array<double, 3>{4, 5, 6}));
  CHECK(vv::equal(a.at(vv::ellipsis, vv::range<1, 3>), vv::array<double, 2, 2>{2, 3, 5, 6}));
  a(1, 2) = 7;
  CHECK(a[1][2] == 7);
  CHECK(m.sum(1).numel() == 2);
  CHECK(m.t().reshape({3, -1}).sizes() == vv::dims{3, 2});
  CHECK(m.to(vv::dtype::float32).dtype() == vv::dtype::float32);
  std::ostringstream out;
  out << v << a;
  CHECK(out.str() == "tensor([1, 2, 3], dtype=float64)array([[1, 2, 3],\n       [4, 5, 7]], dtype=float64)");
  CHECK(vv::equal(m.to_array<double, 2, 3>()[0], vv::array<double, 3>{0.5, -1, 2}));
}
