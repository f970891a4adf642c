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
    for (int p = 0; p < inner; ++p) s = static_cast<T>(s + a[{at[0], p}] * b[{p, at[1]}]);
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

TEST_CASE("matmul: by dtype", "[kernel][matmul]") {
  float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[4];
  k::matmul(varve::dtype::float32, 2, 2, 2, {a, 2, 1}, {b, 1, 2}, {c, 2, 1});
  CHECK((c[0] == 17 && c[1] == 23 && c[2] == 39 && c[3] == 53));
  CHECK_THROWS_AS(k::matmul(varve::dtype::bool_, 2, 2, 2, {a, 2, 1}, {b, 1, 2}, {c, 2, 1}), varve::dtype_error);
}
