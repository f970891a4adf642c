// SPDX-License-Identifier: BSL-1.0
// Jacobians whose unit vectors become values of their own, against those that are not fused.
#include "unroll_test.hpp"

#include <varve_test.hpp>

using namespace unroll_test;

TEST_CASE("unroll: Jacobians of all kinds agree with the unfused ones", "[graph][pass]") {
  agrees(mapped<decltype(vv::jacrev(elementwise))>), agrees(mapped<decltype(vv::jacfwd(elementwise))>);
  agrees(mapped<decltype(vv::jacrev(contracted))>), agrees(mapped<decltype(vv::jacfwd(contracted))>);
  agrees(mapped<decltype(vv::hessian(one_value))>), agrees(mapped<decltype(vv::jacrev(vv::jacrev(one_value)))>);
  agrees([](auto const& x) { return vv::vmap(vv::jacrev(polar), vv::in_dims<1>)(x); });
  agrees([](auto const& x) { return vv::sum(vv::vmap(vv::jacrev(polar), vv::in_dims<1>)(x), axis<1>); });
  agrees([](auto const& x) { return vv::exp(vv::vmap(vv::jacfwd(polar), vv::in_dims<1>)(x)); });
  agrees([](auto const& x) {
    return vv::slice(vv::vmap(vv::jacrev(polar), vv::in_dims<1>)(x), axis<1>, vv::range<1, 3>);
  });
}
