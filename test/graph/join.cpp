// SPDX-License-Identifier: BSL-1.0
#include <varve/fuse/fuse.hpp>
#include <varve/graph/print.hpp>
#include <varve/graph/verify.hpp>
#include <varve/op/all.hpp>
#include <varve/pass/join_slices.hpp>
#include <varve/trace/trace.hpp>
#include <varve/transform/grad.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::axis, vv::index_t, vv::range;

namespace {
template <index_t K>
constexpr auto at = [](auto const& x) { return vv::select(x, axis<0>, axis<K>); };
template <index_t From, index_t To>
constexpr auto part = [](auto const& x) { return vv::slice(x, axis<0>, range<From, To>); };

/// The gradient of `F` with respect to six floats, ready to be planned.
template <class F>
constexpr auto joined = vv::freeze([] {
  vv::graph const traced = vv::trace_graph(vv::grad(F{}), vv::meta{vv::dtype::float32, {6}, false});
  vv::graph g = vv::optimize(traced);
  vv::join_slices(g);
  return g;
});
template <class F>
constexpr int slices = joined<F>.count(vv::slice_backward);
template <class F>
constexpr int cats = joined<F>.count(vv::cat);

template <class F>
void agrees(F const& f) {
  array<float, 6> const x{{0.5f, -1.5f, 2.0f, 0.25f, -0.75f, 3.0f}};
  array<float, 6> const fused = vv::fuse(vv::grad(f))(x), plain = vv::grad(f)(x);
  CHECK(vv::verify(joined<F>));
  for (index_t k = 0; k < 6; ++k) CHECK(fused[k] == Approx(plain[k]));
}

constexpr auto apart = [](auto const& x) {
  return at<0>(x) * at<1>(x) + vv::sin(at<2>(x)) * at<3>(x) + at<4>(x) * at<4>(x) * at<5>(x) * at<4>(x);
}; // the fifth element thrice
constexpr auto backwards = [](auto const& x) { return vv::sum(part<4, 6>(x) * part<0, 2>(x) * part<2, 4>(x)); };
constexpr auto with_gaps = [](auto const& x) { return at<1>(x) * at<2>(x) + at<4>(x) * at<5>(x); };
constexpr auto alone = [](auto const& x) { return at<0>(x) * at<2>(x) * at<4>(x); };
constexpr auto overlapping = [](auto const& x) { return vv::sum(part<0, 4>(x) * part<2, 6>(x)); };
constexpr auto beside_one = [](auto const& x) { return vv::sum(vv::sin(x)) + at<0>(x) * at<1>(x); };
constexpr auto beside_twice = [](auto const& x) { return vv::sum(vv::sin(x)) + at<0>(x) * at<1>(x) * at<1>(x); };
constexpr auto beside_two = [](auto const& x) {
  return vv::sum(vv::sin(x)) + vv::sum(vv::exp(x)) + at<0>(x) * at<1>(x);
};
constexpr auto stepped = [](auto const& x) {
  return vv::sum(vv::slice(x, axis<0>, range<0, 6, 2>) * vv::slice(x, axis<0>, range<1, 6, 2>));
};
} // namespace

TEST_CASE("join: what a function took apart is put together where the slices are neighbours", "[graph][pass]") {
  STATIC_REQUIRE(slices<decltype(apart)> == 0);
  STATIC_REQUIRE(cats<decltype(apart)> == 5);
  STATIC_REQUIRE(slices<decltype(backwards)> == 0);
  STATIC_REQUIRE(cats<decltype(backwards)> == 2);
  STATIC_REQUIRE(slices<decltype(with_gaps)> == 2);
  STATIC_REQUIRE(cats<decltype(with_gaps)> == 2);
  agrees(apart), agrees(backwards), agrees(with_gaps);
}

TEST_CASE("join: slices without neighbours, with steps and with elements in common stay a sum", "[graph][pass]") {
  STATIC_REQUIRE(cats<decltype(alone)> == 0);
  STATIC_REQUIRE(slices<decltype(alone)> == 3);
  STATIC_REQUIRE(cats<decltype(overlapping)> == 0);
  STATIC_REQUIRE(slices<decltype(overlapping)> == 2);
  STATIC_REQUIRE(cats<decltype(stepped)> == 0);
  agrees(alone), agrees(overlapping), agrees(stepped);
}

TEST_CASE("join: a term that is no slice stays beside them, two keep the order of additions", "[graph][pass]") {
  STATIC_REQUIRE(slices<decltype(beside_one)> == 1);
  STATIC_REQUIRE(cats<decltype(beside_one)> == 1);
  STATIC_REQUIRE(cats<decltype(beside_two)> == 0);
  STATIC_REQUIRE(slices<decltype(beside_two)> == 2);
  STATIC_REQUIRE(cats<decltype(beside_twice)> == 0);
  agrees(beside_one), agrees(beside_two), agrees(beside_twice);
}

TEST_CASE("join: the gradient of a function of the elements is one loop", "[graph][pass]") {
  using program =
      vv::fusion::compiled<vv::fusion::traced<std::remove_const_t<decltype(vv::grad(apart))>, array<float, 6>>>;
  STATIC_REQUIRE(program::value.used.stages == 1);
  STATIC_REQUIRE(program::value.workspace == 0);
}

TEST_CASE("join: other axes, and nested slices", "[graph][pass]") {
  constexpr auto f = [](auto const& x) {
    auto const column = [&]<index_t K>(std::integral_constant<index_t, K>) { return vv::select(x, axis<1>, axis<K>); };
    return vv::sum(column(std::integral_constant<index_t, 0>{}) * column(std::integral_constant<index_t, 2>{}) *
                   vv::exp(column(std::integral_constant<index_t, 1>{}))) +
           at<1>(column(std::integral_constant<index_t, 1>{}));
  };
  array<double, 2, 3> const x{{1, 2, 3, 4, 5, 6}};
  array<double, 2, 3> const fused = vv::fuse(vv::grad(f))(x), plain = vv::grad(f)(x);
  for (index_t k = 0; k < 6; ++k) CHECK(fused.data[k] == Approx(plain.data[k]));
}
