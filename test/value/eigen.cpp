// SPDX-License-Identifier: BSL-1.0
#if __has_include(<Eigen/Core>)
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <Eigen/Core>
#include <varve_test.hpp>
#include <vector>

using namespace sample;
namespace vv = varve;
using vv::array, vv::dyn, vv::tensor_ref;

namespace {
using rows_first = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr auto affine = [](auto x, auto y) { return x * 2 + y; };
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<Eigen::Matrix<float, 2, 3, Eigen::RowMajor>&>())),
                             tensor_ref<float, 2, 3>>);
static_assert(
    std::is_same_v<decltype(tensor_ref(std::declval<Eigen::MatrixXd const&>())), tensor_ref<double const, dyn, dyn>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<Eigen::Vector4f&>())), tensor_ref<float, 4>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<Eigen::RowVectorXf&>())), tensor_ref<float, dyn>>);
static_assert(std::is_same_v<decltype(tensor_ref(std::declval<Eigen::Map<Eigen::MatrixXi const>>())),
                             tensor_ref<int const, dyn, dyn>>);
static_assert(!std::is_constructible_v<tensor_ref<double, dyn>, Eigen::VectorXd>);      // it would be gone
static_assert(std::is_constructible_v<tensor_ref<double const, dyn>, Eigen::VectorXd>); // an argument of a call
static_assert(!std::is_constructible_v<tensor_ref<double, dyn>, Eigen::VectorXd const&>);
static_assert(!std::is_constructible_v<tensor_ref<double const, dyn>,
                                       decltype(std::declval<Eigen::VectorXd&>() +
                                                std::declval<Eigen::VectorXd&>())>); // lies nowhere
} // namespace

TEST_CASE("tensor_ref: matrices of Eigen are tensors in their own order", "[value][tensor_ref][eigen]") {
  Eigen::MatrixXd m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  rows_first const r = m;
  CHECK(elements(tensor_ref(m) + 0) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(elements(vv::mul(tensor_ref(r), tensor_ref(m))) == std::vector<double>{1, 4, 9, 16, 25, 36});
  CHECK(elements(vv::matmul(tensor_ref(m), tensor_ref(m.transpose()))) == std::vector<double>{14, 32, 32, 77});
  CHECK(elements(tensor_ref(m.transpose()) + 0) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(elements(tensor_ref(m.block(0, 1, 2, 2)) + 0) == std::vector<double>{2, 3, 5, 6});
  CHECK(elements(tensor_ref(m.row(1)) + 0) == std::vector<double>{4, 5, 6});
  CHECK(elements(tensor_ref(m.col(2)) + 0) == std::vector<double>{3, 6});
  CHECK(elements(tensor_ref(r.col(2)) + 0) == std::vector<double>{3, 6});
  CHECK(elements(tensor_ref<double, dyn>(m.leftCols(2).diagonal()) + 0) == std::vector<double>{1, 5});
  Eigen::Ref<Eigen::MatrixXd> const inner = m.rightCols(2);
  CHECK(elements(vv::sum(tensor_ref(inner), 1)) == std::vector<double>{5, 11});
  std::vector<float> buffer{0, 1, 2, 3, 4, 5, 6, 7};
  Eigen::Map<Eigen::MatrixXf, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> const steps(
      buffer.data(), 2, 2, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(4, 2));
  CHECK(elements(tensor_ref(steps) + 0) == std::vector<double>{0, 4, 2, 6});
  Eigen::ArrayXXi a = Eigen::ArrayXXi::Constant(2, 2, 7);
  a(0, 1) = 1;
  CHECK(elements(tensor_ref(a) + 0) == std::vector<double>{7, 1, 7, 7});
  CHECK(elements(vv::grad([](auto const& x) { return vv::sum(x * x); })(tensor_ref(m))) ==
        std::vector<double>{2, 4, 6, 8, 10, 12});
  vv::add_(tensor_ref(m).view(), 1);
  CHECK(m(1, 0) == 5);
  Eigen::MatrixXd const nothing(0, 4);
  CHECK(vv::sum(tensor_ref(nothing)).item<double>() == 0);
}

TEST_CASE("tensor_ref: fuse reads and writes matrices and vectors of Eigen", "[value][tensor_ref][eigen]") {
  Eigen::Matrix<double, 2, 3, Eigen::RowMajor> const x{{1, 2, 3}, {4, 5, 6}};
  Eigen::Matrix<double, 2, 3, Eigen::RowMajor> y = Eigen::Matrix<double, 2, 3, Eigen::RowMajor>::Constant(0.5), out;
  constexpr auto f = vv::fuse(affine);
  f.into(tensor_ref(out))(tensor_ref(x), tensor_ref(y));
  CHECK((out.array() == 2 * x.array() + y.array()).all());
  rows_first sized(2, 3);
  f.into(tensor_ref<double, 2, 3>(sized))(tensor_ref(x), 1.0);
  CHECK((sized.array() == 2 * x.array() + 1).all());
  Eigen::VectorXd v = Eigen::VectorXd::LinSpaced(6, 1, 6);
  CHECK(f(tensor_ref<double, 6>(v), 0.0)[5] == 12);
  CHECK(f(tensor_ref<double, 2, 3>(v), 0.0).data[5] == 12); // a vector is memory of any shape
  CHECK(f(tensor_ref<double const, 3>(Eigen::Vector3d(1, 2, 3)), 0.0)[2] == 6);
  Eigen::Vector4d const w(1, 2, 3, 4);
  CHECK(f(tensor_ref(w), tensor_ref(w))[3] == 12);
  Eigen::Matrix<double, 3, 2> column_major;
  column_major << 1, 4, 2, 5, 3, 6;
  CHECK(f(tensor_ref<double const, 2, 3>(column_major.transpose()), 0.0).data[1] ==
        4); // the transpose of a column-major matrix is row-major
  Eigen::Map<rows_first const> const map(v.data(), 2, 3);
  CHECK(f(tensor_ref<double const, 2, 3>(map), 0.0).data[5] == 12);
}

TEST_CASE("tensor_ref: matrices of Eigen that do not lie as the extents say", "[value][tensor_ref][eigen]") {
  rows_first r(2, 3);
  Eigen::MatrixXd m(2, 3);
  CHECK_THROWS_AS((tensor_ref<double, 2, 2>(r.leftCols(2))), vv::value_error);
  CHECK_THROWS_AS((tensor_ref<double, 3, 2>(r)), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, 6>(r)), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, 3>(m.row(0))), vv::value_error);
  CHECK_THROWS_AS((tensor_ref<double, 4>(Eigen::Map<Eigen::VectorXd>(m.data(), 3))), vv::shape_error);
  CHECK_THROWS_AS((tensor_ref<double, dyn, 2>(m)), vv::shape_error);
  CHECK_THROWS_AS(tensor_ref<double const>(static_cast<Eigen::VectorXd const&>(Eigen::VectorXd(2))), vv::shape_error);
}
#endif
