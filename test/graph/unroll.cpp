// SPDX-License-Identifier: BSL-1.0
#include "unroll_test.hpp"

#include <varve_test.hpp>

using namespace unroll_test;

TEST_CASE("unroll: unit vectors become values of their own, side by side in one loop", "[graph][pass]") {
  constexpr auto jacrev = mapped<decltype(vv::jacrev(polar))>;
  constexpr auto jacfwd = mapped<decltype(vv::jacfwd(polar))>;
  constexpr auto& reverse = prepared<decltype(jacrev), 3, many>;
  constexpr auto& forward = prepared<decltype(jacfwd), 3, many>;
  STATIC_REQUIRE(vv::verify(reverse));
  STATIC_REQUIRE(vv::verify(forward));
  STATIC_REQUIRE(tables(reverse) == 0);
  STATIC_REQUIRE(tables(forward) == 0);
  STATIC_REQUIRE(largest(reverse) == many);
  STATIC_REQUIRE(largest(forward) == many);
  STATIC_REQUIRE(vv::fuse(jacrev).workspace_bytes<array<double, 3, many>> == 0);
  STATIC_REQUIRE(decltype(vv::fuse(jacrev))::program<array<double, 3, many>>::value.used.bodies == 1);
  agrees(jacrev), agrees(jacfwd);
}

TEST_CASE("unroll: a product with an element of a unit vector that is 0 is computed", "[graph][pass]") {
  auto x = points<3>();
  x(1, 3) = std::numeric_limits<double>::infinity();
  auto const f = mapped<decltype(vv::jacrev(polar))>;
  auto const fused = vv::fuse(f)(x), plain = f(x);
  int none = 0;
  for (index_t k = 0; k < decltype(plain)::size(); ++k) {
    CHECK((fused.data[k] != fused.data[k]) == (plain.data[k] != plain.data[k]));
    none += fused.data[k] != fused.data[k];
  }
  CHECK(none > 0);
}

TEST_CASE("unroll: axes that memory or many elements have stay", "[graph][pass]") {
  constexpr auto shared = [](auto const& x) {
    return x * array<double, 3, 1>{{1, 2, 3}};
  }; // the axis is one of the argument
  constexpr auto alone = vv::jacfwd(polar); // nothing else would fill a register
  constexpr auto summed = [](auto const& x) {
    return vv::sum(vv::exp(vv::unsqueeze(x, axis<0>) * array<double, 4, 1, 1>{{1, 2, 3, 5}}), axis<0>);
  }; // indices meet
  STATIC_REQUIRE(tables(prepared<decltype(shared), 3, many>) == 1);
  STATIC_REQUIRE(tables(prepared<decltype(alone), 3>) > 0);
  STATIC_REQUIRE(tables(prepared<decltype(summed), 3, many>) == 1);
  agrees(shared), agrees(summed);
}
