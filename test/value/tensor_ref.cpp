// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("tensor_ref: extents known at run time make memory a tensor without a copy", "[value][tensor_ref]") {
  std::vector<double> v{1, 2, 3, 4, 5, 6};
  vv::tensor_ref<double, vv::dyn, 3> const rows(v.data(), {2, 3});
  CHECK(rows.view().raw() == v.data());
  CHECK(elements(vv::sum(rows * 2, 0)) == std::vector<double>{10, 14, 18});
  CHECK(elements(vv::vmap(vv::grad([](auto const& x) { return vv::sum(x * x); }))(rows)) == std::vector<double>{2, 4, 6, 8, 10, 12});
  vv::tensor_ref<double const, vv::dyn> const all(v);
  CHECK(vv::reshape(all, dims{3, 2}).sizes() == dims{3, 2});
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  vv::tensor_ref<double, vv::dyn, vv::dyn> const turned(vv::permute(x, dims{1, 0}));
  CHECK(elements(vv::exp(turned) - vv::exp(vv::permute(x, dims{1, 0}))) == std::vector<double>{0, 0, 0, 0});
  vv::add_(rows.view(), 1);
  CHECK(v[5] == 7);
  CHECK_THROWS_AS((vv::tensor_ref<double, vv::dyn, 3>(v.data(), {3, 2})), vv::shape_error);
  CHECK_THROWS_AS((vv::tensor_ref<float, vv::dyn, vv::dyn>(x)), vv::dtype_error);
  CHECK_THROWS_AS((vv::tensor_ref<double, vv::dyn>(x)), vv::shape_error);
}

TEST_CASE("tensor_ref: extents known to the compiler make memory an array", "[value][tensor_ref]") {
  std::vector<double> v{1, 2, 3};
  vv::tensor_ref<double, 3> const r(v);
  static_assert(std::is_same_v<decltype(r * 2.0), vv::array<double, 3>>);
  CHECK((r * 2.0).data[2] == 6);
  CHECK(vv::grad([](auto const& x) { return vv::sum(x * x); })(r).data[1] == 4);
  CHECK_THROWS_AS((vv::tensor_ref<double, 4>(v)), vv::shape_error);
}
