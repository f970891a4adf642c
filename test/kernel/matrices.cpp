// SPDX-License-Identifier: BSL-1.0
/// @file
/// Factors of matrices on both sides of the size from which blocks are used: their products are the matrix, and what
/// is to be orthogonal is. Eigenvalues and singular values of matrices that are hard.
#include <varve/kernel/matrices.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <varve_test.hpp>
#include <vector>

namespace m = varve::kernel::matrices;
using m::matrix, varve::index_t;

namespace {
matrix normal(index_t rows, index_t columns) {
  static std::mt19937_64 engine(7);
  std::normal_distribution<double> one;
  matrix a(rows, columns);
  for (double& x : a.memory) x = one(engine);
  return a;
}
matrix product(matrix a, matrix b) {
  matrix r(a.rows, b.columns);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t k = 0; k < a.columns; ++k)
      for (index_t j = 0; j < b.columns; ++j) r(i, j) += a(i, k) * b(k, j);
  return r;
}
matrix turned(matrix a) {
  matrix r(a.columns, a.rows);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.columns; ++j) r(j, i) = a(i, j);
  return r;
}
matrix identity(index_t n) {
  matrix r(n, n);
  for (index_t i = 0; i < n; ++i) r(i, i) = 1;
  return r;
}
matrix part(matrix a, index_t rows, index_t columns, bool upper) { // a triangle; the lower one has a diagonal of ones
  matrix r(rows, columns);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) r(i, j) = upper ? (j >= i ? a(i, j) : 0) : i == j ? 1 : i > j ? a(i, j) : 0;
  return r;
}
matrix times_columns(matrix a, std::vector<double> const& s) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.columns; ++j) a(i, j) *= s[static_cast<std::size_t>(j)];
  return a;
}
double distance(matrix a, matrix b) {
  double r = 0;
  for (std::size_t k = 0; k < a.memory.size(); ++k) r = std::max(r, std::abs(a.memory.data()[k] - b.memory.data()[k]));
  return r;
}
struct sizes {
  index_t rows, columns;
};
constexpr sizes all[] = {{1, 1}, {7, 7}, {47, 47}, {48, 48}, {49, 50}, {97, 64}, {64, 97}, {131, 131}, {48, 150}};
} // namespace

TEST_CASE("matrices: p a = l u, with and without exchanges", "[kernel][matrices]") {
  for (auto const [rows, columns] : all) {
    index_t const k = std::min(rows, columns);
    matrix const a = normal(rows, columns);
    matrix f = a, in_order = a;
    std::vector<index_t> pivots(static_cast<std::size_t>(k));
    CHECK(m::lu(f, pivots.data()) == 0);
    for (index_t i = 0; i < k; ++i) m::swap_rows(in_order, i, pivots[static_cast<std::size_t>(i)]);
    CHECK(distance(product(part(f, rows, k, false), part(f, k, columns, true)), in_order) < 1e-13);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < std::min(i, k); ++j) CHECK(std::abs(f(i, j)) <= 1);
    CHECK(m::lu(in_order, nullptr) == 0);
    CHECK(distance(in_order, f) < 1e-12);
  }
}
TEST_CASE("matrices: lu of singular ones gives the first pivot that is 0", "[kernel][matrices]") {
  for (index_t const n : {20, 60, 100}) {
    matrix a = normal(n, n);
    for (index_t i = 0; i < n; ++i) a(i, 13) = 0;
    std::vector<index_t> pivots(static_cast<std::size_t>(n));
    CHECK(m::lu(a, pivots.data()) == 14);
  }
}
TEST_CASE("matrices: cholesky, triangles and solutions", "[kernel][matrices]") {
  for (index_t const n : {1, 9, 47, 48, 75, 131}) {
    matrix const a = normal(n, n), b = normal(n, 5);
    matrix s = product(a, turned(a));
    for (index_t i = 0; i < n; ++i) s(i, i) += 1;
    matrix l = s;
    CHECK(m::cholesky(l) == 0);
    CHECK(distance(product(l, turned(l)), s) < 1e-12);
    matrix u = turned(l), x = b, y = b, z = b, given = s;
    m::solve_triangle(l, x, false, false), m::solve_triangle(u, y, true, false);
    CHECK(distance(product(l, x), b) < 1e-13);
    CHECK(distance(product(u, y), b) < 1e-12);
    CHECK(m::solve(given, z) == 0);
    CHECK(distance(product(s, z), b) < 1e-11);
    matrix broken = s;
    broken(n / 2, n / 2) = -1;
    CHECK(m::cholesky(broken) == n / 2 + 1);
  }
}
TEST_CASE("matrices: q is orthogonal, q r is the matrix", "[kernel][matrices]") {
  for (auto const [rows, columns] : all) {
    index_t const k = std::min(rows, columns);
    matrix const a = normal(rows, columns);
    matrix f = a, q(rows, k);
    std::vector<double> tau(static_cast<std::size_t>(k));
    m::householder(f, tau.data());
    m::product_of_reflectors(f, tau.data(), k, q);
    CHECK(distance(product(turned(q), q), identity(k)) < 1e-14);
    CHECK(distance(product(q, part(f, k, columns, true)), a) < 1e-13);
  }
}
TEST_CASE("matrices: reflectors of numbers that are hardly more than 0", "[kernel][matrices]") {
  for (auto const [rows, columns] : all) {
    index_t const k = std::min(rows, columns);
    matrix a(rows, columns);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) a(i, j) = static_cast<double>((3 * i + 5 * j) % 7 - 3) * (j ? 5e-324 : 1);
    matrix f = a, q(rows, k);
    std::vector<double> tau(static_cast<std::size_t>(k));
    m::householder(f, tau.data());
    m::product_of_reflectors(f, tau.data(), k, q);
    CHECK(distance(product(turned(q), q), identity(k)) < 1e-14);
  }
}
TEST_CASE("matrices: eigenvalues and vectors of symmetric ones", "[kernel][matrices]") {
  for (index_t const n : {1, 2, 3, 10, 48, 101}) {
    matrix const a = normal(n, n);
    matrix s = turned(a);
    for (std::size_t k = 0; k < s.memory.size(); ++k) s.memory.data()[k] += a.memory.data()[k];
    std::vector<double> values(static_cast<std::size_t>(n)), alone = values;
    matrix x = s, y = s, v(n, n);
    m::symmetric_eigen(x, values.data(), v), m::symmetric_eigenvalues(y, alone.data());
    CHECK(std::is_sorted(values.begin(), values.end()));
    CHECK(distance(product(turned(v), v), identity(n)) < 2e-14);
    CHECK(distance(product(s, v), times_columns(v, values)) < 1e-13);
    for (std::size_t k = 0; k < values.size(); ++k) CHECK(std::abs(values[k] - alone[k]) < 2e-13);
  }
}
TEST_CASE("matrices: singular values with vectors and alone", "[kernel][matrices]") {
  for (auto const [rows, columns] : all) {
    index_t const k = std::min(rows, columns);
    matrix const a = normal(rows, columns);
    matrix x = a, y = a, u(rows, k), v(columns, k);
    std::vector<double> values(static_cast<std::size_t>(k)), alone = values;
    m::singular_of(x, u, values.data(), v), m::singular_values(y, alone.data());
    CHECK(distance(product(times_columns(u, values), turned(v)), a) < 1e-12);
    for (std::size_t j = 0; j < values.size(); ++j) CHECK(std::abs(values[j] - alone[j]) < 1e-12);
  }
}
TEST_CASE("matrices: vectors of singular values that are 0 are at right angles to the others", "[kernel][matrices]") {
  for (auto const [rows, columns] : all)
    for (int kind = 0; kind < 4; ++kind) { // whole numbers, whose dependence is exact
      index_t const k = std::min(rows, columns);
      matrix a(rows, columns);
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < columns; ++j)
          a(i, j) = kind == 0   ? static_cast<double>((i % 3 + 1) * (j % 4 + 1))
                    : kind == 1 ? static_cast<double>((i * i + 3 * j) % 5 + (j % 2 ? i % 3 : 0))
                    : kind == 2 ? (i % 2 ? 1 : 2) * 1e-120 + (j == 1 ? 3 : 0)
                                : 0;
      matrix x = a, u(rows, k), v(columns, k);
      std::vector<double> s(static_cast<std::size_t>(k));
      m::singular_of(x, u, s.data(), v);
      matrix y = a; // rank one: what is left of the rows and columns behind the first gets ever smaller
      std::vector<double> alone(static_cast<std::size_t>(k));
      m::singular_values(y, alone.data());
      for (std::size_t j = 0; j < s.size(); ++j) CHECK(std::abs(s[j] - alone[j]) <= 1e-13 * (1 + s[0]));
      CHECK(distance(product(turned(u), u), identity(k)) < 2e-13);
      CHECK(distance(product(turned(v), v), identity(k)) < 2e-13);
      CHECK(distance(product(times_columns(u, s), turned(v)), a) < 1e-12);
    }
  constexpr auto gradient = [](std::array<double, 9> const& rows) {
    matrix a(3, 3), c(3, 3);
    for (std::size_t k = 0; k < 9; ++k) a.memory.data()[k] = rows[k];
    m::cofactors(a, c);
    std::array<double, 9> r{};
    for (std::size_t k = 0; k < 9; ++k) r[k] = c.memory.data()[k];
    return r;
  };
  std::array<double, 9> const second_is_twice_first{1, 2, 3, 2, 4, 6, 1, 0, 1}, right{4, 4, -4, -2, -2, 2, 0, 0, 0};
  for (std::size_t k = 0; k < 9; ++k) CHECK(std::abs(gradient(second_is_twice_first)[k] - right[k]) < 1e-13);
}
TEST_CASE("matrices: eigenvalues of zeros, ones, parts apart, extreme sizes and NaN", "[kernel][matrices]") {
  auto const check = [](matrix a, std::vector<double> const& right, double tolerance) {
    std::size_t const n = right.size();
    std::vector<double> with(n), alone(n), sizes(n), rest = right;
    matrix x = a, y = a, z = a, v(a.rows, a.rows);
    m::symmetric_eigen(x, with.data(), v), m::symmetric_eigenvalues(y, alone.data());
    m::singular_values(z, sizes.data());
    for (double& r : rest) r = std::abs(r);
    std::sort(rest.begin(), rest.end(), std::greater<>());
    for (std::size_t k = 0; k < n; ++k) {
      CHECK(std::abs(with[k] - right[k]) <= tolerance);
      CHECK(std::abs(alone[k] - right[k]) <= tolerance);
      CHECK(std::abs(sizes[k] - rest[k]) <= tolerance);
    }
  };
  check(matrix(4, 4), {0, 0, 0, 0}, 0);
  check(identity(3), {1, 1, 1}, 0);
  for (double const size : {1.0, 1e300, 1e-300}) {
    matrix ones(4, 4);
    for (double& x : ones.memory) x = size;
    check(ones, {0, 0, 0, 4 * size}, 4e-15 * size);
  }
  matrix apart(4, 4);
  apart(0, 1) = apart(1, 0) = 1, apart(1, 2) = apart(2, 1) = 1e-200, apart(2, 3) = apart(3, 2) = 1e-170;
  check(apart, {-1, 0, 0, 1}, 1e-15);
  matrix diagonal(5, 5);
  double const d[] = {1e-9, 5, -2, 1e-30, 3};
  for (index_t i = 0; i < 5; ++i) diagonal(i, i) = d[i];
  check(diagonal, {-2, 1e-30, 1e-9, 3, 5}, 1e-15);
  for (double const odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    matrix a = normal(6, 6), b = a;
    a(2, 3) = a(3, 2) = b(2, 3) = odd;
    std::vector<double> e(6), s(6);
    m::symmetric_eigenvalues(a, e.data()), m::singular_values(b, s.data());
    for (std::size_t k = 0; k < 6; ++k) CHECK((e[k] != e[k] && s[k] != s[k]));
  }
}
TEST_CASE("matrices: the compiler finds the same values", "[kernel][matrices]") {
  constexpr auto value = [](bool singular) {
    matrix a(3, 3);
    double const x[] = {2, 1, 0, 1, 3, 1, 0, 1, 4};
    for (int k = 0; k < 9; ++k) a.memory[k] = x[k];
    double v[3]{};
    if (singular) m::singular_values(a, v);
    else m::symmetric_eigenvalues(a, v);
    return v[singular ? 0 : 2];
  };
  constexpr double eigen = value(false), singular = value(true);
  CHECK(std::abs(eigen - value(false)) < 1e-14);
  CHECK(std::abs(singular - value(true)) < 1e-14);
  CHECK(std::abs(eigen - 4.7320508075688773) < 1e-14);
  CHECK(std::abs(singular - eigen) < 1e-14);
}
