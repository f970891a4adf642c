// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <array>
#include <utility>
#include <varve_test.hpp>
#include <vector>
#include <version>
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

using namespace sample;
namespace vv = varve;
using vv::array, vv::dyn, vv::tensor_ref;

namespace {
constexpr std::size_t open = static_cast<std::size_t>(-1);

/// An mdspan of the test's own, with any strides.
template <class T, std::size_t... E>
struct span_of {
  T* memory;
  std::array<std::size_t, sizeof...(E)> sizes, steps;

  static constexpr std::size_t rank() { return sizeof...(E); }
  static constexpr std::size_t static_extent(std::size_t r) { return std::array<std::size_t, sizeof...(E)>{E...}[r]; }
  constexpr T* const& data_handle() const { return memory; } // as in libc++
  constexpr auto extents() const { return sizes; }
  constexpr std::size_t extent(std::size_t r) const { return sizes[r]; }
  constexpr std::ptrdiff_t stride(std::size_t r) const { return static_cast<std::ptrdiff_t>(steps[r]); }
};
/// ... of rank 0, which has no extents to ask for.
template <class T>
struct span_of<T> {
  T* memory;
  static constexpr std::size_t rank() { return 0; }
  constexpr T* data_handle() const { return memory; }
  constexpr int extents() const { return 0; }
  constexpr std::size_t extent(std::size_t) const { return 0; }
  constexpr std::size_t stride(std::size_t) const { return 0; }
};
/// ... that says nothing to the compiler but its rank.
struct plain_span {
  double* memory;
  static constexpr int rank() { return 2; }
  double* data_handle() const { return memory; }
  int extents() const { return 0; }
  int extent(int r) const { return r + 2; }
  int stride(int r) const { return r == 0 ? 3 : 1; }
};
/// ... whose elements are not what lies in memory.
struct scaled_span : plain_span {
  using reference = double;
};
/// ... whose layout may have no strides.
struct tiled_span : plain_span {
  bool tiled;
  bool is_strided() const { return !tiled; }
};
/// A matrix that only the names make one of Eigen's.
template <class T, int Rows, int Cols, bool RowMajor>
struct matrix_of {
  enum { RowsAtCompileTime = Rows, ColsAtCompileTime = Cols, IsRowMajor = RowMajor };
  T* memory;
  std::ptrdiff_t rows_, cols_, inner, outer;
  constexpr T* data() const { return memory; }
  constexpr std::ptrdiff_t size() const { return rows_ * cols_; }
  constexpr std::ptrdiff_t rows() const { return rows_; }
  constexpr std::ptrdiff_t cols() const { return cols_; }
  constexpr std::ptrdiff_t innerStride() const { return inner; }
  constexpr std::ptrdiff_t outerStride() const { return outer; }
};
/// A tensor that only the names make one of Eigen's.
template <class T, int Rank, int Options>
struct tensor_of {
  static constexpr int NumIndices = Rank, Layout = Options;
  T* memory;
  std::array<std::ptrdiff_t, Rank> sizes;
  T* data() const { return memory; }
  auto const& dimensions() const { return sizes; }
  std::ptrdiff_t dimension(std::size_t k) const { return sizes[k]; }
  std::ptrdiff_t size() const {
    std::ptrdiff_t n = 1;
    for (auto s : sizes) n *= s;
    return n;
  }
};

constexpr auto affine = [](auto x, auto y) { return x * 2 + y; };

constexpr double six[] = {1, 2, 3, 4, 5, 6};
constexpr span_of<double const, 2, 3> constant_view{six, {2, 3}, {3, 1}};
static_assert(tensor_ref(constant_view).load().data[5] == 6);
static_assert(vv::sum(tensor_ref(constant_view)) == 21);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<span_of<float, 2, 3>>())), tensor_ref<float, 2, 3>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<span_of<float const, open, 3> const&>())),
                             tensor_ref<float const, dyn, 3>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<span_of<int, open, open>&>())), tensor_ref<int, dyn, dyn>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<span_of<int>>())), tensor_ref<int>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<span_of<int, 4>>())), tensor_ref<int, 4>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<span_of<int, 4, 1, 2>>())), tensor_ref<int, 4, 1, 2>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<span_of<int, 4, 1, 2, open>>())), tensor_ref<int, 4, 1, 2, dyn>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<plain_span>())), tensor_ref<double, dyn, dyn>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<matrix_of<float, 3, -1, true>>())), tensor_ref<float, 3, dyn>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<matrix_of<float, 3, 1, false>>())), tensor_ref<float, 3>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<tensor_of<float, 3, 1>>())), tensor_ref<float, dyn, dyn, dyn>>);
static_assert(!std::is_constructible_v<tensor_ref<double, dyn, dyn>, scaled_span&>);
static_assert(!std::is_constructible_v<tensor_ref<float, dyn, dyn>, plain_span&>); // another element type
static_assert(
    !std::is_constructible_v<tensor_ref<double, 2, 3>, span_of<double const, 2, 3>>); // would write to what is const
} // namespace

TEST_CASE("tensor_ref: an mdspan with static extents is memory that fuse reads and writes",
          "[value][tensor_ref][mdspan]") {
  std::vector<double> x{1, 2, 3, 4, 5, 6}, y(6, 0.5), out(6), more(6);
  span_of<double, 2, 3> const a{x.data(), {2, 3}, {3, 1}}, b{y.data(), {2, 3}, {3, 1}}, r{out.data(), {2, 3}, {3, 1}};
  constexpr auto f = vv::fuse(affine);
  f.into(tensor_ref(r))(tensor_ref(a), tensor_ref(b));
  CHECK(out == std::vector<double>{2.5, 4.5, 6.5, 8.5, 10.5, 12.5});
  array<double, 2, 3> const same =
      f(tensor_ref<double const, 2, 3>(a), tensor_ref(b)); // const is added, not taken away
  CHECK(same.data[5] == 12.5);
  span_of<double, open, open> const sized{more.data(), {2, 3}, {3, 1}};
  f.into(tensor_ref<double, 2, 3>(sized))(tensor_ref(a), 0.5);
  CHECK(more == out);
  CHECK(vv::sum(tensor_ref(span_of<double, 6>{x.data(), {6}, {1}})) == 21);
  CHECK(tensor_ref<double, 2, 3>(span_of<double, 6>{x.data(), {6}, {1}}).load().data[5] ==
        6); // one dimension is memory, as of a span
  CHECK(vv::mul(tensor_ref(span_of<double>{x.data() + 2}), 2.0) == 6);
  CHECK(vv::grad([](auto const& v) { return vv::sum(v * v); })(tensor_ref(a)).data[4] == 10);
}

TEST_CASE("tensor_ref: static extents mean row-major memory of these sizes", "[value][tensor_ref][mdspan]") {
  std::vector<double> x{1, 2, 3, 4, 5, 6};
  span_of<double, open, open> const column_major{x.data(), {2, 3}, {1, 2}}, other{x.data(), {3, 2}, {2, 1}},
      pitched{x.data(), {2, 2}, {3, 1}}, one_row{x.data(), {1, 3}, {77, 1}}, none{nullptr, {0, 3}, {1, 9}};
  CHECK_THROWS_AS((tensor_ref<double, 2, 3>(column_major)), vv::value_error);
  CHECK_THROWS_WITH((tensor_ref<double, 2, 2>(pitched)),
                    ContainsText("do not lie in row-major order; copy them, or leave the extents to run time (dyn)"));
  CHECK_THROWS_AS((tensor_ref<double, 2, 3>(other)), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, 7>(span_of<double, open>{x.data(), {6}, {1}})), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, 3>(span_of<double, open>{x.data(), {3}, {2}})), vv::value_error);
  CHECK((tensor_ref<double, 1, 3>(one_row)).load().data[2] ==
        3); // the step of a dimension of one element is never taken
  CHECK((tensor_ref<double, 0, 3>(none)).size() == 0);
}

TEST_CASE("tensor_ref: an mdspan with run-time extents is a tensor with its strides", "[value][tensor_ref][mdspan]") {
  std::vector<double> x{1, 2, 3, 4, 5, 6};
  span_of<double, open, open> const rows{x.data(), {2, 3}, {3, 1}}, columns{x.data(), {2, 3}, {1, 2}};
  CHECK(elements(tensor_ref(rows) * 2) == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(elements(vv::sum(tensor_ref(columns), 1)) == std::vector<double>{9, 12});
  CHECK(elements(vv::add(tensor_ref(rows), tensor_ref(columns))) == std::vector<double>{2, 5, 8, 6, 9, 12});
  CHECK(elements(vv::vmap([](auto const& v) { return vv::sum(v * v); })(tensor_ref(columns))) ==
        std::vector<double>{35, 56});
  CHECK(elements(vv::grad([](auto const& v) { return vv::sum(v * v); })(tensor_ref(columns))) ==
        std::vector<double>{2, 6, 10, 4, 8, 12});
  vv::mul_(tensor_ref<double, dyn, 3>(columns).view(), 10); // written in place
  CHECK(x == std::vector<double>{10, 20, 30, 40, 50, 60});
  plain_span const own{x.data()};
  CHECK(tensor_ref(own).view().sizes() == dims{2, 3});
  CHECK((tensor_ref<double, 2, dyn>(own)).strides() == dims{3, 1});
  CHECK(elements(vv::fuse<vv::spec<double, vv::dim<"n">, 3>>([](auto v) { return vv::sum(v, vv::axis<0>); })(
            tensor_ref(columns))) == std::vector<double>{30, 70, 110});
  CHECK_THROWS_AS((tensor_ref<double, dyn, 2>(own)), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, dyn>(span_of<double, open>{x.data() + 5, {3}, {static_cast<std::size_t>(-2)}})),
                  vv::value_error);
  CHECK(elements(tensor_ref(span_of<double, open>{x.data(), {3}, {0}}) + 0) == std::vector<double>{10, 10, 10});
  CHECK(vv::sum(tensor_ref(span_of<double, open, open>{nullptr, {0, 4}, {4, 1}})).item<double>() == 0);
  CHECK_NOTHROW(tensor_ref(tiled_span{{x.data()}, false}));
  CHECK_THROWS_WITH(tensor_ref(tiled_span{{x.data()}, true}), ContainsText("has no strides"));
}

TEST_CASE("tensor_ref: a column-major matrix is not taken for a row-major one", "[value][tensor_ref][eigen]") {
  std::vector<double> x{1, 2, 3, 4, 5, 6};
  matrix_of<double, -1, -1, false> const columns{x.data(), 2, 3, 1, 2}, column{x.data(), 6, 1, 1, 6},
      row{x.data(), 1, 3, 1, 2};
  matrix_of<double, -1, -1, true> const rows{x.data(), 2, 3, 1, 3}, block{x.data(), 2, 2, 1, 3};
  CHECK(elements(vv::sum(tensor_ref(columns), 0)) == std::vector<double>{3, 7, 11});
  CHECK(elements(vv::sum(tensor_ref(rows), 0)) == std::vector<double>{5, 7, 9});
  CHECK(elements(vv::sum(tensor_ref(block), 1)) == std::vector<double>{3, 9});
  CHECK(vv::fuse(affine)(tensor_ref<double, 2, 3>(rows), 1.0).data[5] == 13);
  CHECK_THROWS_AS((tensor_ref<double, 2, 2>(block)), vv::value_error);
  CHECK_THROWS_AS((tensor_ref<double, 3, 2>(rows)), vv::shape_error);
  CHECK((tensor_ref<double, 6, 1>(column)).load().data[5] == 6); // one column has one order only
  CHECK((tensor_ref<double, 6>(column)).load()[5] == 6);
  CHECK(elements(tensor_ref<double, dyn>(row) + 0) == std::vector<double>{1, 3, 5});
  CHECK_THROWS_AS((tensor_ref<double, 3>(row)), vv::value_error);
  CHECK_THROWS_AS((tensor_ref<double, 6>(rows)), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, dyn>(rows)), vv::shape_error);
  matrix_of<double, 3, 1, false> const every_other{x.data(), 3, 1, 2, 6};
  CHECK_THROWS_AS((tensor_ref<double, 3>(every_other)), vv::value_error); // its size alone looks right
  CHECK(elements(tensor_ref<double, dyn>(every_other) + 0) == std::vector<double>{1, 3, 5});
  CHECK(tensor_ref<double, dyn, 1>(every_other).sizes() == dims{3, 1});
}

TEST_CASE("tensor_ref: tensors of Eigen by their layout", "[value][tensor_ref][eigen]") {
  std::vector<float> x{0, 1, 2, 3, 4, 5, 6, 7};
  tensor_of<float, 3, 0> const column_major{x.data(), {2, 2, 2}};
  tensor_of<float, 3, 1> const row_major{x.data(), {2, 2, 2}};
  CHECK(elements(vv::reshape(tensor_ref(column_major), dims{8})) == std::vector<double>{0, 4, 2, 6, 1, 5, 3, 7});
  CHECK(elements(vv::reshape(tensor_ref(row_major), dims{8})) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK((tensor_ref<float, 2, 2, 2>(row_major)).load().data[6] == 6);
  CHECK((tensor_ref<float, 4>(tensor_of<float, 1, 0>{x.data(), {4}})).load()[3] == 3);
}

#if defined(__cpp_lib_mdspan)
namespace {
/// What it gives is not what lies in memory.
struct doubling {
  using element_type = float;
  using reference = float;
  using data_handle_type = float*;
  using offset_policy = doubling;
  reference access(data_handle_type p, std::size_t k) const { return 2 * p[k]; }
  data_handle_type offset(data_handle_type p, std::size_t k) const { return p + k; }
};
} // namespace
TEST_CASE("tensor_ref: std::mdspan in every layout", "[value][tensor_ref][mdspan]") {
  std::vector<float> x{1, 2, 3, 4, 5, 6}, out(6);
  std::mdspan<float, std::extents<int, 2, 3>> const a(x.data()), r(out.data());
  static_assert(std::is_same_v<decltype(tensor_ref(a)), tensor_ref<float, 2, 3>>);
  static_assert(!vv::mdspan_like<std::mdspan<float, std::extents<int, 2>, std::layout_right, doubling>>);
  vv::fuse(affine).into(tensor_ref(r))(tensor_ref(a), 1.0f);
  CHECK(out == std::vector<float>{3, 5, 7, 9, 11, 13});
  std::mdspan const sized(x.data(), 2, 3);
  static_assert(std::is_same_v<decltype(tensor_ref(sized)), tensor_ref<float, dyn, dyn>>);
  CHECK(elements(vv::sum(tensor_ref(sized), 0)) == std::vector<double>{5, 7, 9});
  std::mdspan<float, std::dextents<std::size_t, 2>, std::layout_left> const left(x.data(), 2, 3);
  CHECK(elements(vv::sum(tensor_ref(left), 0)) == std::vector<double>{3, 7, 11});
  CHECK_THROWS_AS((tensor_ref<float, 2, 3>(left)), vv::value_error);
  std::layout_stride::mapping<std::extents<int, 2, std::dynamic_extent>> const every_third(
      std::extents<int, 2, std::dynamic_extent>(2), std::array<int, 2>{1, 3});
  std::mdspan<float const, std::extents<int, 2, std::dynamic_extent>, std::layout_stride> const strided(x.data(),
                                                                                                        every_third);
  static_assert(std::is_same_v<decltype(tensor_ref(strided)), tensor_ref<float const, 2, dyn>>);
  CHECK(elements(tensor_ref(strided) + 0) == std::vector<double>{1, 4, 2, 5});
  CHECK(vv::mul(tensor_ref(std::mdspan<float, std::extents<int>>(x.data())), 3.0f) == 3);
}
#endif
