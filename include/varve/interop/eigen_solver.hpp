// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/value/array.hpp>
#include <varve/value/tensor.hpp>

#if __has_include(<Eigen/Cholesky>)
#include <Eigen/Cholesky>
#else
#include <eigen3/Eigen/Cholesky>
#endif

/// @file
/// Eigen as the solver of varve's least-squares methods:
/// `levenberg_marquardt{}.minimize_by(eigen_ldlt{}, residuals, p)`.
namespace varve {

/// Solves a x = b with Eigen's pivoted LDLT. `a` is a symmetric matrix and `b` a vector of doubles or floats, as arrays
/// or as tensors in memory. O(n^3 / 6).
struct eigen_ldlt {
  template <class T, index_t N>
  array<T, N> operator()(array<T, N, N> const& a, array<T, N> const& b) const {
    array<T, N> x{};
    run(a.data, b.data, x.data, N);
    return x;
  }
  template <std::same_as<tensor> X>
  X operator()(X const& a, X const& b) const {
    X const rows = contiguous(a), right = contiguous(b), x = X::empty(right.sizes(), right.dtype());
    if (rows.dtype() == dtype::float64 && right.dtype() == dtype::float64) run_on<double>(rows, right, x);
    else if (rows.dtype() == dtype::float32 && right.dtype() == dtype::float32) run_on<float>(rows, right, x);
    else refuse::argument_is_invalid("eigen_ldlt", "float32 or float64 is expected, the same of both");
    return x;
  }

private:
  template <class T>
  static void run_on(tensor const& a, tensor const& b, tensor const& x) {
    if (b.dim() != 1 || !(a.sizes() == dims{b.size(0), b.size(0)}))
      refuse::shapes_do_not_match("eigen_ldlt", a.sizes(), b.sizes());
    run(static_cast<T const*>(a.raw()), static_cast<T const*>(b.raw()), static_cast<T*>(x.raw()), b.size(0));
  }
  template <class T>
  static void run(T const* a, T const* b, T* x, index_t n) {
    using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    Eigen::Map<vector>(x, n) = Eigen::Map<matrix const>(a, n, n).ldlt().solve(Eigen::Map<vector const>(b, n));
  }
};

} // namespace varve

#pragma GCC diagnostic pop
