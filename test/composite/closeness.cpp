// SPDX-License-Identifier: BSL-1.0
#include <varve/complex.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <varve_test.hpp>

namespace vv = varve;
using vv::tensor;

TEST_CASE("allclose: one answer for all elements, in both worlds", "[composite]") {
  static_assert(vv::allclose(vv::array<double, 2>{1, 2}, vv::array<double, 2>{1, 2 + 1e-9}));
  static_assert(!vv::allclose(vv::array<double, 2>{1, 2}, vv::array<double, 2>{1, 2.1}));
  static_assert(vv::allclose(1.0, 1.0 + 1e-9) && !vv::allclose(1.0, 1.1));
  tensor const x = {1.0, 2.0}, nan{std::nan(""), 1.0}, inf{1.0, INFINITY};
  CHECK(vv::allclose(x, x + 1e-9));
  CHECK_FALSE(vv::allclose(x, x + 1e-3));
  CHECK(vv::allclose(x, x + 1e-3, 0, 1e-2));
  CHECK(vv::allclose(vv::ones({2, 2}), vv::ones({2})));
  CHECK(vv::allclose(inf, inf));
  CHECK_FALSE(vv::allclose(inf, -inf));
  CHECK_FALSE(vv::allclose(nan, nan));
  CHECK(vv::allclose(nan, nan, 1e-5, 1e-8, true));
  CHECK(vv::allclose(tensor{1, 2}, tensor{1, 2}));
  CHECK(vv::allclose(vv::zeros({0}), vv::zeros({0})));
  CHECK_THROWS_AS(vv::allclose(x, tensor{1.0f, 2.0f}), vv::dtype_error);
  CHECK_THROWS_AS(vv::allclose(x, vv::zeros({3}, vv::dtype::float64)), vv::shape_error);
  auto const of_lanes = [](tensor const& v) { return vv::allclose(v, v) ? v : -v; };
  CHECK_THROWS_WITH(vv::vmap(of_lanes)(x), ContainsText("no single truth value"));
}

TEST_CASE("isclose and allclose take complex tensors", "[composite][complex]") {
  tensor const x = {1.0, 2.0}, z = vv::complex(x, x);
  CHECK(vv::allclose(z, z + 1e-9));
  CHECK_FALSE(vv::allclose(z, vv::complex(x, tensor{1.0, 2.1})));
  CHECK(vv::isclose(z, vv::complex(x, tensor{1.0, 7.0})).to_vector() == std::vector<double>{1, 0});
  tensor const nan = vv::complex(x, tensor{std::nan(""), 1.0});
  CHECK_FALSE(vv::allclose(nan, nan));
  CHECK(vv::allclose(nan, nan, 1e-5, 1e-8, true));
}

TEST_CASE("equal of tensors: shape, dtype and elements", "[composite]") {
  tensor const x = {1.0, 2.0};
  CHECK(vv::equal(x, x.clone()));
  CHECK_FALSE(vv::equal(x, x + 1e-15));
  CHECK_FALSE(vv::equal(x, tensor{1.0f, 2.0f}));
  CHECK_FALSE(vv::equal(x, x.reshape({2, 1})));
  CHECK_FALSE(vv::equal(tensor{std::nan(""), 1.0}, tensor{std::nan(""), 1.0}));
}
