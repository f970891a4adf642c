// SPDX-License-Identifier: BSL-1.0
#include <varve/fuse/fuse.hpp>
#include <varve/graph/print.hpp>
#include <varve/graph/verify.hpp>
#include <varve/op/all.hpp>
#include <varve/trace/trace.hpp>
#include <varve/transform/jacobian.hpp>

#include <limits>
#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::axis, vv::index_t;

namespace {
template <index_t K>
constexpr auto at = [](auto const& x) { return vv::select(x, axis<0>, axis<K>); };
constexpr auto stacked = [](auto const&... v) { return vv::stack(std::tuple{v...}, axis<0>); };

/// What is planned for `F` on `D...` doubles.
template <class F, index_t... D>
constexpr auto prepared = vv::freeze([] {
  vv::graph const traced = vv::trace_graph(F{}, vv::meta{vv::dtype::float64, vv::ints<D...>::to_dims(), false});
  return vv::prepare(traced);
});
/// Constants of rank > 0 and rows of numbers, and the largest rank of an elementwise value.
template <class G>
constexpr int tables(G const& g) {
  int n = 0;
  for (vv::node const& nd : g)
    n += nd.out.sizes.n > 0 && (nd.op->kind == vv::op_kind::constant || nd.op->kind == vv::op_kind::factory);
  return n;
}
template <class G>
constexpr index_t largest(G const& g) {
  index_t n = 0;
  for (vv::node const& nd : g)
    if (nd.op->kind == vv::op_kind::pointwise && vv::numel(nd.out.sizes) > n) n = vv::numel(nd.out.sizes);
  return n;
}

constexpr index_t many = 20;
template <class F>
constexpr auto mapped = vv::vmap(F{}, vv::in_dims<1>, vv::out_dims<-1>);
constexpr auto polar = [](auto const& x) {
  return stacked(at<0>(x) * vv::cos(at<1>(x)), at<0>(x) * vv::sin(at<1>(x)), at<2>(x) * at<0>(x));
};
constexpr auto elementwise = [](auto const& x) { return vv::sin(x) * x; };
constexpr auto contracted = [](auto const& x) { return stacked(vv::sum(x * x), vv::sum(vv::exp(x))); };
constexpr auto one_value = [](auto const& x) { return at<0>(x) * at<1>(x) / at<2>(x); };

template <index_t N>
array<double, N, many> points() {
  array<double, N, many> x;
  for (index_t k = 0; k < N * many; ++k) x.data[k] = 0.25 + 0.125 * static_cast<double>(k * 7 % 11);
  return x;
}
template <class A>
void same(A const& a, A const& b) {
  for (index_t k = 0; k < A::size(); ++k) CHECK(a.data[k] == Approx(b.data[k]).epsilon(1e-12).margin(1e-12));
}
template <class F>
void agrees(F const& f) {
  auto const x = points<3>();
  same(vv::fuse(f)(x), f(x));
}
} // namespace

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
