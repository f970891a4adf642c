// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/matmul.hpp>

using namespace kernel_test;
namespace k = varve::kernel;

namespace {
template <class T>
k::matrix<T const> view(strided<T>& x) {
  return {x.data(), x.strides[0], x.strides[1]};
}
// Small integers: every order of summation gives the same result.
template <class T>
void check(int m, int n, int inner, bool plain_output, bool accumulate) {
  strided<T> a({m, inner}, true), b({inner, n}, true), c({m, n}, false, plain_output);
  auto const before = c;
  k::matmul<T>(m, n, inner, view(a), view(b), {c.data(), c.strides[0], c.strides[1]}, accumulate);
  auto want = before;
  visit_every_index({m, n}, [&](dims const& at) {
    T s = accumulate ? want[at] : T(0);
    T const *x = a.data() + at[0] * a.strides[0], *y = b.data() + at[1] * b.strides[1];
    for (int p = 0; p < inner; ++p) s = static_cast<T>(s + x[p * a.strides[1]] * y[p * b.strides[0]]);
    want[at] = s;
  });
  INFO(m << "x" << inner << "x" << n << " " << plain_output << accumulate);
  CHECK(c.memory == want.memory);
}
} // namespace

TEST_CASE("matmul: any strides equal the plain loop", "[kernel][matmul]") {
  for (int round = 0; round < 300; ++round) {
    int const most = round < 200 ? 20 : 90;
    int const m = random_int(1, most), n = random_int(1, most), inner = random_int(round % 10 ? 1 : 0, most);
    check<float>(m, n, inner, round % 3 != 0, round % 2 == 0);
    check<double>(m, n, inner, round % 3 != 0, round % 2 == 0);
    if (round % 5 == 0) check<std::int32_t>(m, n, inner, false, round % 2 == 0);
    if (round % 5 == 0) check<std::uint8_t>(m, n, inner, true, false);
  }
  check<float>(1, 70, 300, true, false);
  check<float>(70, 1, 300, true, true);
  check<float>(70, 80, 600, true, false);
  check<float>(500, 40, 300, true, true);
  check<double>(500, 40, 300, false, true);
}

namespace {
/// A product of matrices by rows or by columns, with guards behind the result.
template <class T>
void check_by_rows_or_columns(index_t m, index_t n, index_t inner, int layout, bool accumulate) {
  auto const numbers = [](index_t count) {
    std::vector<T> r(static_cast<std::size_t>(count));
    for (T& v : r) v = static_cast<T>(random_int(-3, 3));
    return r;
  };
  auto const seen = [&](auto* p, index_t rows, index_t cols, bool by_columns) {
    using E = std::remove_pointer_t<decltype(p)>;
    return by_columns ? k::matrix<E>{p, 1, rows} : k::matrix<E>{p, cols, 1};
  };
  std::vector<T> const a = numbers(m * inner), b = numbers(inner * n);
  std::vector<T> c = numbers(m * n + 16);
  auto want = c;
  auto const x = seen(a.data(), m, inner, layout & 1), y = seen(b.data(), inner, n, layout & 2);
  auto const z = seen(want.data(), m, n, layout & 4);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      T s = accumulate ? *z.at(i, j).data : T(0);
      for (index_t p = 0; p < inner; ++p) s += x.data[i * x.row + p * x.col] * y.data[p * y.row + j * y.col];
      *z.at(i, j).data = s;
    }
  k::matmul<T>(m, n, inner, x, y, seen(c.data(), m, n, layout & 4), accumulate);
  INFO(m << "x" << inner << "x" << n << " " << layout << accumulate);
  CHECK(c == want);
}
} // namespace

TEST_CASE("matmul: few columns or rows, and products of a column and a row", "[kernel][matmul]") {
  for (index_t const m : {1, 2, 3, 4, 7, 24, 61})
    for (index_t const n : {1, 2, 3, 4, 8, 15, 16, 17})
      for (index_t const inner : {0, 1, 2, 4, 65, 300})
        for (int layout = 0; layout < 8; ++layout) {
          check_by_rows_or_columns<float>(m, n, inner, layout, (m + n) % 2 == 0);
          check_by_rows_or_columns<double>(m, n, inner, layout, (m + n) % 2 == 1);
        }
  for (index_t const n : {31, 40}) check_by_rows_or_columns<float>(50, n, 1, 0, n == 31);
}

TEST_CASE("matmul: many at a time", "[kernel][matmul]") {
  float a[] = {1, 2, 3, 4, 0, 2, 2, 2, 2}, b[] = {5, 6, 7, 8}, c[10] = {0, 0, 0, 0, -1, 0, 0, 0, 0, -1};
  index_t const apart[] = {5, 0, 5};
  k::matmul(varve::dtype::float32, 2, apart, 2, 2, 2, {a, 2, 1}, {b, 1, 2}, {c, 2, 1});
  CHECK((c[0] == 17 && c[1] == 23 && c[2] == 39 && c[3] == 53 && c[4] == -1));
  CHECK((c[5] == 22 && c[6] == 30 && c[7] == 22 && c[8] == 30 && c[9] == -1));
}

TEST_CASE("matmul: by dtype", "[kernel][matmul]") {
  float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[4];
  k::matmul(varve::dtype::float32, 2, 2, 2, {a, 2, 1}, {b, 1, 2}, {c, 2, 1});
  CHECK((c[0] == 17 && c[1] == 23 && c[2] == 39 && c[3] == 53));
  CHECK_THROWS_AS(k::matmul(varve::dtype::bool_, 2, 2, 2, {a, 2, 1}, {b, 1, 2}, {c, 2, 1}), varve::dtype_error);
}
