// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/implicit/linear_system.hpp>
#include <varve/optim/least_squares.hpp>

#if __has_include(<Eigen/SparseLU>)
#include <Eigen/SparseLU>
#else
#include <eigen3/Eigen/SparseLU>
#endif

/// @file
/// Eigen's sparse LU as the linear solver of implicit functions:
/// `implicit::root(f, implicit::newton<eigen_sparse_lu>{.linear = lu}, lu)`.
namespace varve {

/// Solves linear equations whose matrix has nonzero elements at known places, by Eigen's SparseLU. `pattern` are the
/// rows and columns of these places. Columns without a common row share a product, so that a band costs as many
/// products as it is wide. Computes in float64. A pattern that lacks an element is found by the residual: like a matrix
/// that is singular, it throws `convergence_error`. Under `vmap` lanes are solved one after another; traces refuse it,
/// because it reads numbers.
struct eigen_sparse_lu {
  static constexpr bool solves_linear_equations = true, reads_numbers = true;
  std::vector<std::pair<index_t, index_t>> pattern;
  double tolerance = 0; ///< bound on the residual, relative to the right side; 0: the square root of the rounding

  eigen_sparse_lu transpose() const {
    eigen_sparse_lu r = *this;
    for (auto& [row, column] : r.pattern) std::swap(row, column);
    return r;
  }
  template <class M, class Data, class V>
  auto solve(M const& map, Data const& data, V const& b) const {
    using numbers = optim::detail::numbers;
    numbers const right = optim::detail::as_numbers(b);
    std::size_t const n = right.size();
    std::vector<int> const colors = colors_of(n);
    std::vector<Eigen::Triplet<double>> entries;
    for (int c = 0;; ++c) {
      numbers seed(n, 0.0);
      bool any = false;
      for (std::size_t k = 0; k < n; ++k)
        if (colors[k] == c) seed[k] = 1, any = true;
      if (!any) break;
      numbers const product = optim::detail::as_numbers(map.apply(optim::detail::vector_like(b, seed), data));
      for (auto const& [row, column] : pattern)
        if (colors[static_cast<std::size_t>(column)] == c)
          entries.emplace_back(static_cast<int>(row), static_cast<int>(column), product[static_cast<std::size_t>(row)]);
    }
    V const x = optim::detail::vector_like(b, solved(entries, right));
    numbers const left = optim::detail::as_numbers(sub(map.apply(x, data), b));
    double const bound = implicit::detail::tolerance_or(tolerance, dtype_of(b), 0.5);
    if (!(square(left) <= bound * bound * square(right)))
      implicit::detail::no_solution_was_found("eigen_sparse_lu", 1, kernel::sqrt(square(left)));
    return x;
  }
  template <class M, class Data, class V>
  auto step(M const& map, Data const& data, V const& b) const {
    return solve(map, data, b);
  }

private:
  static double square(optim::detail::numbers const& v) {
    double s = 0;
    for (double const e : v) s += e * e;
    return s;
  }
  static optim::detail::numbers solved(std::vector<Eigen::Triplet<double>> const& entries,
                                       optim::detail::numbers const& right) {
    auto const n = static_cast<Eigen::Index>(right.size());
    Eigen::SparseMatrix<double> matrix(n, n);
    matrix.setFromTriplets(entries.begin(), entries.end(), [](double, double last) { return last; });
    Eigen::SparseLU<Eigen::SparseMatrix<double>> lu(matrix);
    optim::detail::numbers x(right.size(), std::numeric_limits<double>::quiet_NaN());
    if (lu.info() == Eigen::ComputationInfo{}) // success, a name that X11 makes a macro
      Eigen::Map<Eigen::VectorXd>(x.data(), n) = lu.solve(Eigen::Map<Eigen::VectorXd const>(right.data(), n));
    return x;
  }
  /// Returns a color for each column, so that columns of one color have no row in common. Greedy, in order.
  std::vector<int> colors_of(std::size_t n) const {
    std::vector<std::vector<std::size_t>> of_row(n), of_column(n);
    for (auto const& [row, column] : pattern) {
      if (row < 0 || column < 0 || static_cast<std::size_t>(row) >= n || static_cast<std::size_t>(column) >= n)
        refuse::argument_is_invalid("eigen_sparse_lu", "the pattern names an element outside of the matrix");
      of_row[static_cast<std::size_t>(row)].push_back(static_cast<std::size_t>(column));
      of_column[static_cast<std::size_t>(column)].push_back(static_cast<std::size_t>(row));
    }
    std::vector<int> colors(n, -1);
    for (std::size_t k = 0; k < n; ++k) {
      std::vector<bool> taken(n + 1, false);
      for (std::size_t const row : of_column[k])
        for (std::size_t const other : of_row[row])
          if (colors[other] >= 0) taken[static_cast<std::size_t>(colors[other])] = true;
      while (taken[static_cast<std::size_t>(colors[k] + 1)]) ++colors[k];
      ++colors[k];
    }
    return colors;
  }
};

} // namespace varve

#pragma GCC diagnostic pop
