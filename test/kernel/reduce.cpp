// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/reduce.hpp>

#include <cmath>
#include <limits>

using namespace kernel_test;
namespace k = varve::kernel;

namespace {
template <class T>
k::operand input(strided<T>& x) {
  return {static_cast<void const*>(x.data()), x.strides.numbers(), sizeof(T)};
}
dims kept_of(dims const& at, unsigned axes) {
  dims r;
  for (int d = 0; d < at.n; ++d)
    if (!(axes >> d & 1u)) r.push_back(at[d]);
  return r;
}
index_t offset(dims const& at, dims const& sizes) {
  dims const s = varve::contiguous_strides(sizes);
  index_t o = 0;
  for (int d = 0; d < at.n; ++d) o += at[d] * s[d];
  return o;
}

template <class T, class R>
void check(k::reduction r, dims const& sizes, unsigned axes, bool plain) {
  strided<T> x(sizes, true, plain);
  dims const kept = kept_of(sizes, axes);
  auto const n = static_cast<std::size_t>(varve::numel(kept));
  std::vector<unsigned char> got(n * sizeof(R) + 1, 77);
  k::reduce(r, varve::dtype_of_type<T>(), sizes, input(x), axes, got.data());
  std::vector<double> want(n, r == k::reduction::prod || r == k::reduction::all ? 1
                              : r == k::reduction::max                          ? -1e300
                              : r == k::reduction::min                          ? 1e300
                                                                                : 0);
  visit_every_index(sizes, [&](dims const& at) {
    double& w = want[static_cast<std::size_t>(offset(kept_of(at, axes), kept))];
    double const v = static_cast<double>(x[at]);
    switch (r) {
    case k::reduction::sum:
      w += v;
      break;
    case k::reduction::prod:
      w *= v;
      break;
    case k::reduction::max:
      w = v > w ? v : w;
      break;
    case k::reduction::min:
      w = v < w ? v : w;
      break;
    case k::reduction::any:
      w = w != 0 || v != 0;
      break;
    case k::reduction::all:
      w = w != 0 && v != 0;
      break;
    }
  });
  bool right = true;
  for (std::size_t i = 0; i < n; ++i)
    right = right && static_cast<double>(reinterpret_cast<R const*>(got.data())[i]) == want[i];
  CHECK(right);
  CHECK(got.back() == 77);
}
} // namespace

TEST_CASE("reduce: any axes of any strides equal the plain loop", "[kernel][reduce]") {
  using enum k::reduction;
  for (int round = 0; round < 200; ++round) {
    int const rank = round % 5;
    dims const sizes = random_sizes(rank, rank < 3 ? 90 : 8);
    auto const axes = static_cast<unsigned>(random_int(0, (1 << rank) - 1));
    bool const plain = round % 2 == 0;
    check<float, float>(sum, sizes, axes, plain);
    check<double, double>(sum, sizes, axes, plain);
    check<std::int32_t, std::int64_t>(sum, sizes, axes, plain);
    check<std::int64_t, std::int64_t>(sum, sizes, axes, plain);
    check<std::uint8_t, std::int64_t>(sum, sizes, axes, plain);
    check<bool, std::int64_t>(sum, sizes, axes, plain);
    check<float, float>(max, sizes, axes, plain);
    check<std::int32_t, std::int32_t>(max, sizes, axes, plain);
    check<std::int64_t, std::int64_t>(min, sizes, axes, plain);
    check<std::uint8_t, std::uint8_t>(min, sizes, axes, plain);
    check<bool, bool>(max, sizes, axes, plain);
    check<double, bool>(any, sizes, axes, plain);
    check<bool, bool>(all, sizes, axes, plain);
  }
  check<double, double>(prod, {3, 4}, 2, true);
  check<std::int32_t, std::int64_t>(prod, {3, 4}, 1, false);
  check<float, float>(sum, {10000, 3}, 1, true);
  check<float, float>(sum, {3, 10000}, 2, true);
}

TEST_CASE("reduce: empty, NaN and rounding", "[kernel][reduce]") {
  float x[100]{}, r[4] = {9, 9, 9, 9};
  index_t const strides[] = {0, 1};
  k::operand const in(static_cast<void const*>(x), strides, 4);
  k::reduce(k::reduction::sum, varve::dtype::float32, {3, 0}, in, 2, r);
  CHECK((r[0] == 0 && r[1] == 0 && r[2] == 0 && r[3] == 9));
  k::reduce(k::reduction::prod, varve::dtype::float32, {0, 3}, in, 1, r);
  CHECK((r[0] == 1 && r[2] == 1 && r[3] == 9));
  CHECK_THROWS_AS(k::reduce(k::reduction::max, varve::dtype::float32, {3, 0}, in, 2, r), varve::value_error);
  for (int n = 1; n < 100; ++n)
    for (int at = 0; at < n; at += 7) {
      for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i % 5);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      k::reduce(k::reduction::max, varve::dtype::float32, {1, n}, in, 2, r);
      CHECK(std::isnan(r[0]));
      k::reduce(k::reduction::min, varve::dtype::float32, {1, n}, in, 2, r);
      CHECK(std::isnan(r[0]));
      std::int64_t where = -1;
      k::arg_reduce(true, varve::dtype::float32, {1, n}, in, -1, &where);
      CHECK(where == at);
    }
  std::vector<float> tenth(1 << 22, 0.1f);
  index_t const row[] = {1}, column[] = {4, 1};
  float s = 0, c[4];
  k::reduce(k::reduction::sum, varve::dtype::float32, {1 << 22}, {static_cast<void const*>(tenth.data()), row, 4}, 1,
            &s);
  CHECK(std::abs(s / (0.1f * (1 << 22)) - 1) < 1e-6);
  k::reduce(k::reduction::sum, varve::dtype::float32, {1 << 20, 4}, {static_cast<void const*>(tenth.data()), column, 4},
            1, c);
  CHECK(std::abs(c[3] / (0.1f * (1 << 20)) - 1) < 1e-5);
}

TEST_CASE("arg_reduce: first extreme along an axis or of all", "[kernel][reduce]") {
  for (int round = 0; round < 200; ++round) {
    int const rank = round % 4;
    dims const sizes = random_sizes(rank, rank < 3 ? 60 : 9);
    strided<std::int32_t> x(sizes, true, round % 2 == 0);
    for (bool greatest : {false, true})
      for (int axis = -1; axis < rank; ++axis) {
        unsigned const axes = axis < 0 ? 255u : 1u << axis;
        dims const kept = kept_of(sizes, axes);
        auto const n = static_cast<std::size_t>(varve::numel(kept));
        std::vector<std::int64_t> got(n, -1), want(n, -1);
        std::vector<int> best(n);
        k::arg_reduce(greatest, varve::dtype::int32, sizes, input(x), axis, got.data());
        visit_every_index(sizes, [&](dims const& at) {
          auto const i = static_cast<std::size_t>(offset(kept_of(at, axes), kept));
          int const v = x[at];
          if (want[i] >= 0 && (greatest ? v <= best[i] : v >= best[i])) return;
          best[i] = v;
          want[i] = axis < 0 ? offset(at, sizes) : index_t(at[axis]);
        });
        CHECK(got == want);
      }
  }
}
