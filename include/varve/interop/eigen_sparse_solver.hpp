// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/sparse_least_squares.hpp>

#if __has_include(<Eigen/SparseCholesky>)
#include <Eigen/SparseCholesky>
#else
#include <eigen3/Eigen/SparseCholesky>
#endif

/// @file
/// Eigen's sparse Cholesky, for problems in which no parameters can be eliminated separately, such as pose graphs.
namespace varve::optim {

/// Solves the equations of a step of a `sparse_least_squares` problem with Eigen's SimplicialLDLT, which orders the
/// unknowns to reduce fill-in: `problem.minimize(levenberg_marquardt{}, eigen_sparse_cholesky{})`.
struct eigen_sparse_cholesky {
  detail::numbers operator()(detail::block_equations const& e, detail::numbers const& damping) const {
    auto const n = static_cast<Eigen::Index>(damping.size());
    std::vector<Eigen::Triplet<double>> entries;
    for (Eigen::Index k = 0; k < n; ++k) entries.emplace_back(k, k, damping[static_cast<std::size_t>(k)]);
    for (auto const& g : e.groups)
      for (std::size_t k = 0; k < g->count(); ++k)
        for (std::size_t b = 0; b < g->of.size(); ++b)
          for (std::size_t c = 0; c < g->of.size(); ++c) add(entries, e, *g, k, b, c);
    Eigen::SparseMatrix<double> matrix(n, n);
    matrix.setFromTriplets(entries.begin(), entries.end());
    detail::numbers p(damping.size(), 0.0);
    Eigen::Map<Eigen::VectorXd>(p.data(), n) = Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>>(matrix).solve(
        -Eigen::Map<Eigen::VectorXd const>(e.gradient.data(), n));
    return p;
  }

private:
  /// Adds the product of one observation's derivatives by two rows, if it lies on or below the diagonal.
  static void add(std::vector<Eigen::Triplet<double>>& entries, detail::block_equations const& e,
                  detail::observations const& g, std::size_t k, std::size_t b, std::size_t c) {
    std::size_t const n = g.of[b].width, m = g.of[c].width, row = e.place(g, b, k), column = e.place(g, c, k);
    if (row < column) return;
    detail::numbers product(n * m, 0.0);
    detail::add_product(product.data(), m, {g.derivative(b, k), n, n}, {g.derivative(c, k), m, m}, g.width);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < m; ++j)
        entries.emplace_back(static_cast<Eigen::Index>(row + i), static_cast<Eigen::Index>(column + j),
                             product[i * m + j]);
  }
};

} // namespace varve::optim

#pragma GCC diagnostic pop
