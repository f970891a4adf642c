// SPDX-License-Identifier: BSL-1.0
/// @file
/// Elementwise operators, reductions and writes in place on operands in all layouts and dtypes, beside plain loops.
#include <varve/varve.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims, vv::index_t, vv::tensor;

namespace {
template <class T>
tensor wave(dims const& sizes, double phase) {
  tensor x = vv::empty(sizes, vv::dtype_of_type<T>());
  for (index_t k = 0; k < x.numel(); ++k)
    x.data<T>()[k] = static_cast<T>(60 + 60 * std::sin(phase + 1.3 * static_cast<double>(k)));
  if constexpr (std::is_floating_point_v<T>)
    if (x.numel() > 5) x.data<T>()[5] = std::numeric_limits<T>::infinity();
  return x;
}
/// Matrices of n rows and m columns, or what broadcasts to them.
template <class T>
std::vector<tensor> layouts(index_t n, index_t m, double p) {
  return {wave<T>({n, m}, p),
          vv::transpose(wave<T>({m, n}, p)),
          vv::slice(wave<T>({n, 2 * m}, p), 1, 0, vv::end, 2),
          vv::slice(wave<T>({2 * n, m}, p), 0, 0, vv::end, 2),
          vv::transpose(vv::slice(wave<T>({m, 2 * n}, p), 1, 0, vv::end, 2)),
          vv::transpose(vv::slice(wave<T>({m, n + 3}, p), 1, 2, n + 2)),
          wave<T>({m}, p),
          wave<T>({n, 1}, p),
          wave<T>({1, 1}, p),
          wave<T>({}, p),
          vv::expand(wave<T>({1, m}, p), dims{n, m}),
          vv::expand(wave<T>({n, 1}, p), dims{n, m})};
}
template <class T>
T element(tensor const& t, index_t i, index_t j) {
  index_t at = 0;
  for (int d = 0; d < t.dim(); ++d)
    if (t.sizes()[d] != 1) at += (d == t.dim() - 2 ? i : j) * t.strides()[d].number();
  return static_cast<T const*>(t.raw())[at];
}
template <class T>
bool equal(T a, T b) {
  return a == b || (a != a && b != b);
}
template <class T>
void check(index_t n, index_t m) {
  std::vector<tensor> const all = layouts<T>(n, m, 0.1), others = layouts<T>(n, m, 0.7);
  for (tensor const& a : all)
    for (tensor const& b : others) {
      tensor const sum = a + b, greater = vv::maximum(a, b), less = vv::lt(a, b), chosen = vv::where(less, a, b),
                   wide = vv::to(a, vv::dtype::float64) + b;
      index_t const rows = sum.dim() == 2 ? sum.sizes()[0].number() : 1,
                    cols = sum.dim() > 0 ? sum.sizes()[sum.dim() - 1].number() : 1;
      bool same = sum.is_contiguous() && chosen.is_contiguous();
      for (index_t k = 0; k < rows * cols; ++k) {
        T const u = element<T>(a, k / cols, k % cols), v = element<T>(b, k / cols, k % cols);
        same = same && equal(sum.data<T>()[k], static_cast<T>(u + v)) && equal(greater.data<T>()[k], u > v ? u : v) &&
               less.data<bool>()[k] == (u < v) && equal(chosen.data<T>()[k], u < v ? u : v) &&
               (wide.dtype() != vv::dtype::float64 ||
                equal(wide.data<double>()[k], static_cast<double>(u) + static_cast<double>(v)));
      }
      INFO(vv::to_string(a.strides()) << " " << vv::to_string(b.strides()) << " " << n << "x" << m);
      CHECK(same);
    }
  for (tensor const& x : all) {
    if (x.dim() != 2 || x.sizes()[0] != n || x.sizes()[1] != m) continue;
    tensor const columns = vv::amax(x, dims{0}), rows = vv::amax(x, dims{1});
    bool same = true;
    for (index_t j = 0; j < m; ++j) {
      T greatest = element<T>(x, 0, j);
      for (index_t i = 1; i < n; ++i) greatest = std::max(greatest, element<T>(x, i, j));
      same = same && columns.data<T>()[j] == greatest;
    }
    for (index_t i = 0; i < n; ++i) {
      T greatest = element<T>(x, i, 0);
      for (index_t j = 1; j < m; ++j) greatest = std::max(greatest, element<T>(x, i, j));
      same = same && rows.data<T>()[i] == greatest;
    }
    if constexpr (std::is_integral_v<T>) { // sums are exact
      std::int64_t total = 0;
      tensor const of_columns = vv::sum(x, dims{0});
      for (index_t j = 0; j < m; ++j) {
        std::int64_t column = 0;
        for (index_t i = 0; i < n; ++i) column += element<T>(x, i, j);
        same = same && of_columns.data<std::int64_t>()[j] == column;
        total += column;
      }
      same = same && vv::sum(x).template item<std::int64_t>() == total;
    }
    INFO(vv::to_string(x.strides()) << " " << n << "x" << m);
    CHECK(same);
  }
}
template <class T>
void check_writes(index_t n, index_t m) {
  for (int k = 0; k < 6; ++k)
    for (tensor const& b : layouts<T>(n, m, 0.7)) {
      tensor const x = layouts<T>(n, m, 0.1)[static_cast<std::size_t>(k)], want = vv::clone(x) + b;
      std::uint32_t const version = x.version();
      tensor const y = vv::add_(x, b);
      bool same = y.raw() == x.raw() && x.version() == version + 1;
      for (index_t i = 0; i < n * m; ++i) same = same && equal(element<T>(x, i / m, i % m), want.data<T>()[i]);
      INFO(vv::to_string(x.strides()) << " " << vv::to_string(b.strides()) << " " << n << "x" << m);
      CHECK(same);
    }
}
/// Operators whose kernels repeat one element themselves, beside the same call on operands that were written out.
template <class T>
void check_beside(index_t n, index_t m) {
  auto const written_out = [&](tensor const& x) { return vv::clone(vv::expand(x, dims{n, m})); };
  auto const alike = [&](tensor const& x, tensor const& y) {
    return x.sizes() == y.sizes() && std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(n * m) * sizeof(T)) == 0;
  };
  for (tensor const& a : layouts<T>(n, m, 0.1)) {
    tensor const u = written_out(a);
    for (tensor const& b : layouts<T>(n, m, 0.7)) {
      tensor const v = written_out(b), whole = vv::zeros(dims{n, m}, u.dtype());
      INFO(vv::to_string(a.strides()) << " " << vv::to_string(b.strides()) << " " << n << "x" << m);
      CHECK(alike(whole + a - b, whole + u - v));
      CHECK(alike((whole + a) * b, (whole + u) * v));
      CHECK(alike(a / (whole + b), u / (whole + v)));
      CHECK(alike(vv::expand(vv::minimum(a, b), dims{n, m}) + whole, vv::minimum(u, v) + whole));
    }
    CHECK(alike(vv::clone(vv::expand(vv::clamp(a, 20, 90.5), dims{n, m})), vv::clamp(u, 20, 90.5)));
    CHECK(alike(vv::clone(vv::expand(3 - a * 1.5, dims{n, m})), 3 - u * 1.5));
  }
}
} // namespace

TEST_CASE("layouts: one element is as that many of it", "[op][layout]") {
  for (auto const& [n, m] : std::vector<std::pair<index_t, index_t>>{{1, 1}, {3, 5}, {9, 33}, {17, 64}, {40, 300}}) {
    check_beside<float>(n, m);
    check_beside<double>(n, m);
  }
}
TEST_CASE("layouts: elementwise operators and reductions are plain loops", "[op][layout]") {
  index_t const sizes[][2] = {{1, 1}, {3, 5}, {8, 8}, {16, 16}, {17, 40}, {33, 300}, {100, 100}, {5, 1000}, {1000, 7}};
  for (auto const& [n, m] : sizes) {
    check<float>(n, m);
    check<std::uint8_t>(n, m);
    if (n * m > 4000) continue; // the sizes of elements alone matter there
    check<double>(n, m);
    check<std::int32_t>(n, m);
    check<std::int64_t>(n, m);
  }
}
TEST_CASE("layouts: writes in place into and from all of them", "[op][layout]") {
  for (auto const& [n, m] : std::vector<std::pair<index_t, index_t>>{{1, 1}, {3, 5}, {17, 40}, {40, 300}}) {
    check_writes<float>(n, m);
    check_writes<std::int64_t>(n, m);
    check_writes<std::uint8_t>(n, m);
  }
}
TEST_CASE("layouts: an operand that shares the memory written into is read before", "[op][layout]") {
  tensor const x = wave<double>({20, 20}, 0.3), before = vv::clone(x);
  vv::add_(x, vv::transpose(x));
  tensor const want = before + vv::transpose(before);
  for (index_t k = 0; k < 400; ++k) CHECK(equal(x.data<double>()[k], want.data<double>()[k]));
  tensor const y = wave<double>({20, 20}, 0.3), first = vv::clone(vv::slice(y, 0, 0, 1));
  vv::mul_(y, vv::slice(y, 0, 0, 1)); // a row of itself
  tensor const product = before * first;
  for (index_t k = 0; k < 400; ++k) CHECK(equal(y.data<double>()[k], product.data<double>()[k]));
  tensor const turned = vv::transpose(y), twice = vv::contiguous(turned) * 2;
  vv::add_(turned, turned); // itself, stored by columns
  for (index_t k = 0; k < 400; ++k) CHECK(equal(vv::contiguous(turned).data<double>()[k], twice.data<double>()[k]));
}
