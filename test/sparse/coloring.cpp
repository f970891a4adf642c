// SPDX-License-Identifier: BSL-1.0
#include <varve/sparse/compression.hpp>

#include <random>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::coloring_order, vv::pattern_view, vv::sparse_compression, vv::sparsity_pattern;

namespace {
constexpr coloring_order orders[] = {coloring_order::natural, coloring_order::largest_first,
                                     coloring_order::smallest_last};

/// A hub that is connected to all others, with the diagonal.
constexpr sparsity_pattern arrow(int n) {
  vv::list<vv::matrix_entry> e;
  for (int k = 0; k < n; ++k) e.push_back({k, k}), e.push_back({0, k}), e.push_back({k, 0});
  return sparsity_pattern::of(n, n, e);
}
/// The five-point stencil on a grid.
constexpr sparsity_pattern grid(int n) {
  vv::list<vv::matrix_entry> e;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (auto const& [di, dj] : {std::pair{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}})
        if (i + di >= 0 && i + di < n && j + dj >= 0 && j + dj < n) e.push_back({i * n + j, (i + di) * n + j + dj});
  return sparsity_pattern::of(n * n, n * n, e);
}
/// Poses of three numbers: each is tied to the one before, and every tenth to an earlier one.
sparsity_pattern poses(int n) {
  vv::list<vv::matrix_entry> e;
  auto const tie = [&](int a, int b) {
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) e.push_back({3 * a + r, 3 * b + c}), e.push_back({3 * b + c, 3 * a + r});
  };
  for (int k = 0; k < n; ++k) tie(k, k), tie(k, k ? k - 1 : 0);
  for (int k = 40; k < n; k += 10) tie(k, k * 37 % (k - 20));
  return sparsity_pattern::of(3 * n, 3 * n, e);
}
sparsity_pattern random_pattern(int rows, int columns, double share, unsigned seed, bool symmetric) {
  std::mt19937 draw(seed);
  std::bernoulli_distribution is(share);
  vv::list<vv::matrix_entry> e;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (is(draw)) {
        e.push_back({r, c});
        if (symmetric) e.push_back({c, r});
      }
  return sparsity_pattern::of(rows, columns, e);
}
using matrix = std::vector<std::vector<double>>;
matrix random_matrix(pattern_view const& p, bool symmetric, unsigned seed) {
  std::mt19937 draw(seed);
  std::uniform_real_distribution<double> number(1, 2);
  matrix m(static_cast<std::size_t>(p.rows), std::vector<double>(static_cast<std::size_t>(p.columns), 0.0));
  for (int r = 0; r < p.rows; ++r)
    for (int const* c = p.begin(r); c != p.end(r); ++c) {
      auto& here = m[static_cast<std::size_t>(r)][static_cast<std::size_t>(*c)];
      here = symmetric && *c < r ? m[static_cast<std::size_t>(*c)][static_cast<std::size_t>(r)] : number(draw);
    }
  return m;
}
/// Compresses a matrix by a plan and recovers its entries, as the operators of a derivative do.
std::vector<double> round_trip(matrix const& m, pattern_view const& p, vv::detail::compression const& c) {
  std::size_t const n = static_cast<std::size_t>(c.by_rows() ? p.columns : p.rows);
  std::vector<double> compressed(n * static_cast<std::size_t>(c.colors.colors), 0.0);
  for (int r = 0; r < p.rows; ++r)
    for (int k = 0; k < p.columns; ++k) {
      int const color = c.colors.of[c.by_rows() ? r : k];
      if (color >= 0)
        compressed[static_cast<std::size_t>(color) * n + static_cast<std::size_t>(c.by_rows() ? k : r)] +=
            m[static_cast<std::size_t>(r)][static_cast<std::size_t>(k)];
    }
  std::vector<double> read, values;
  for (auto const& s : c.steps) {
    std::vector<double> now;
    for (auto const k : s.read) now.push_back(compressed[static_cast<std::size_t>(k)]);
    for (std::size_t k = 0; k < s.subtract.size(); ++k)
      compressed[static_cast<std::size_t>(s.subtract[static_cast<std::ptrdiff_t>(k)])] -= now[k];
    read.insert(read.end(), now.begin(), now.end());
  }
  if (c.order.empty()) return read;
  for (auto const k : c.order) values.push_back(read[static_cast<std::size_t>(k)]);
  return values;
}
void check_round_trip(sparsity_pattern const& p, sparse_compression how, coloring_order order, bool symmetric) {
  matrix const m = random_matrix(p, symmetric, 5);
  std::vector<double> const v = round_trip(m, p, vv::detail::compress(p, how, &order));
  REQUIRE(static_cast<int>(v.size()) == p.count());
  std::size_t k = 0;
  for (int r = 0; r < p.rows; ++r)
    for (int const* c = p.view().begin(r); c != p.view().end(r); ++c)
      CHECK(v[k++] == Approx(m[static_cast<std::size_t>(r)][static_cast<std::size_t>(*c)]).epsilon(1e-9));
}
} // namespace

// A band needs as many colors as it has diagonals, in every order; a star coloring of a tridiagonal matrix three, an
// acyclic one two; an arrow two.
constexpr auto band = sparsity_pattern::banded;
static_assert(vv::color_columns(band(40, 40, 1, 1), coloring_order::natural).colors == 3);
static_assert(vv::color_columns(band(40, 40, 1, 1), coloring_order::smallest_last).colors == 3);
static_assert(vv::color_columns(band(40, 40, 2, 1), coloring_order::natural).colors == 4);
static_assert(vv::color_rows(band(40, 40, 2, 1), coloring_order::natural).colors == 4);
static_assert(vv::star_coloring(band(40, 40, 1, 1)).colors == 3);
static_assert(vv::acyclic_coloring(band(40, 40, 1, 1)).colors == 2);
static_assert(vv::star_coloring(arrow(20)).colors == 2 && vv::acyclic_coloring(arrow(20)).colors == 2);
static_assert(vv::color_columns(arrow(20)).colors == 20);
static_assert(vv::color_columns(sparsity_pattern(3, 4)).colors == 0);

// Patterns are values of constant expressions.
static_assert(sparsity_pattern::of(2, 3, {}) == sparsity_pattern(2, 3) && sparsity_pattern().count() == 0);
static_assert(band(3, 4, 0, 1).contains(1, 2) && !band(3, 4, 0, 1).contains(1, 0) && band(3, 4, 0, 1).count() == 6);
static_assert(transposed(band(3, 4, 0, 1)).contains(2, 1) &&
              transposed(transposed(band(5, 7, 2, 1))) == band(5, 7, 2, 1));
static_assert(united(band(4, 4, 1, 0), band(4, 4, 0, 1)) == band(4, 4, 1, 1));
static_assert(is_symmetric(band(4, 4, 1, 1)) && !is_symmetric(band(4, 4, 1, 0)) && !is_symmetric(band(4, 5, 1, 1)));
static_assert(sparsity_pattern::dense(2, 3).count() == 6);

TEST_CASE("coloring: what was compressed is recovered", "[sparse][coloring]") {
  for (auto const order : orders) {
    for (auto const how : {sparse_compression::columns, sparse_compression::rows, sparse_compression::fewest}) {
      for (unsigned seed = 0; seed < 6; ++seed)
        check_round_trip(random_pattern(17, 23, 0.04 + 0.04 * seed, seed, false), how, order, false);
      check_round_trip(arrow(9), how, order, false);
      check_round_trip(sparsity_pattern(3, 4), how, order, false);
      check_round_trip(sparsity_pattern(0, 4), how, order, false);
    }
    for (auto const how : {sparse_compression::star, sparse_compression::substitution}) {
      for (unsigned seed = 0; seed < 8; ++seed)
        check_round_trip(random_pattern(24, 24, 0.02 + 0.02 * seed, seed, true), how, order, true);
      check_round_trip(arrow(12), how, order, true);
      check_round_trip(grid(7), how, order, true);
      check_round_trip(band(30, 30, 2, 2), how, order, true);
      check_round_trip(sparsity_pattern(4, 4), how, order, true);
      check_round_trip(sparsity_pattern::dense(5, 5), how, order, true);
    }
  }
}

TEST_CASE("coloring: fewest takes rows where they need fewer colors", "[sparse][coloring]") {
  sparsity_pattern wide = sparsity_pattern::dense(2, 30), tall = sparsity_pattern::dense(30, 2);
  auto const a = vv::detail::compress(wide, sparse_compression::fewest);
  auto const b = vv::detail::compress(tall, sparse_compression::fewest);
  CHECK((a.by_rows() && a.colors.colors == 2));
  CHECK((!b.by_rows() && b.colors.colors == 2));
  // the best one of three orders
  CHECK(vv::detail::compress(grid(20), sparse_compression::columns).colors.colors <= 7);
  CHECK(vv::detail::compress(band(40, 40, 2, 2), sparse_compression::columns).colors.colors == 5);
  CHECK(vv::detail::compress(poses(1000), sparse_compression::star).colors.colors <= 20);
}

TEST_CASE("coloring: counts on known graphs", "[sparse][coloring]") {
  // five points: columns need at least five; star colorings of a grid exist with at most five
  CHECK(vv::color_columns(grid(20), coloring_order::natural).colors <= 7);
  CHECK(vv::star_coloring(grid(20)).colors <= 6);
  CHECK(vv::acyclic_coloring(grid(20)).colors <= 4);
  CHECK(vv::acyclic_coloring(grid(20)).colors >= 3);
  for (auto const order : orders)
    for (unsigned seed = 0; seed < 4; ++seed) {
      sparsity_pattern const p = random_pattern(60, 60, 0.05, seed, true);
      CHECK(vv::acyclic_coloring(p, order).colors <= vv::star_coloring(p, order).colors);
      CHECK(vv::star_coloring(p, order).colors <= vv::color_columns(p, order).colors);
    }
}

TEST_CASE("coloring: refused patterns", "[sparse][coloring]") {
  CHECK_THROWS_WITH(vv::star_coloring(band(4, 4, 1, 0)), ContainsText("symmetric matrix is expected"));
  CHECK_THROWS_WITH(vv::acyclic_coloring(band(4, 5, 1, 1)), ContainsText("symmetric matrix is expected"));
  CHECK_THROWS_WITH(sparsity_pattern::of(2, 2, vv::list<vv::matrix_entry>(1, {0, 2})),
                    ContainsText("outside of the matrix"));
  CHECK_THROWS_AS(united(band(2, 2, 1, 1), band(2, 3, 1, 1)), vv::shape_error);
}

TEST_CASE("coloring: a pattern as a picture", "[sparse][coloring]") {
  CHECK(to_string(band(3, 4, 1, 1)) == "xx..\nxxx.\n.xxx\n");
}
