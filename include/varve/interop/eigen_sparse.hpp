// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/autograd/backward.hpp>
#include <varve/sparse/sparse_jacobian.hpp>

#include <algorithm>

#if __has_include(<Eigen/SparseCore>)
#include <Eigen/SparseCore>
#else
#include <eigen3/Eigen/SparseCore>
#endif

/// @file
/// Sparse derivatives as matrices of Eigen, for its solvers.
namespace varve {

namespace detail {
template <class V>
struct element_in_eigen {
  using type = double;
};
template <class T, index_t... D>
struct element_in_eigen<array<T, D...>> {
  using type = T;
};
} // namespace detail

/// Returns a copy of a sparse matrix for Eigen, in compressed rows: `to_eigen(sparse_jacobian(f)(x))`. Elements are
/// double for tensors, and those of the array else; `to_eigen<float>(m)` chooses. Assign it to a `SparseMatrix<double>`
/// for solvers that want columns. Throws for tensors whose elements cannot be read, such as those of a trace.
template <class T = void, class V, class P>
auto to_eigen(sparse_matrix<V, P> const& m) {
  using E = std::conditional_t<std::is_void_v<T>, typename detail::element_in_eigen<V>::type, T>;
  pattern_view const p = m.pattern();
  Eigen::SparseMatrix<E, Eigen::RowMajor> r(p.rows, p.columns);
  r.resizeNonZeros(p.count());
  std::copy(p.row_start, p.row_start + p.rows + 1, r.outerIndexPtr());
  std::copy(p.column, p.column + p.count(), r.innerIndexPtr());
  if constexpr (std::is_same_v<V, tensor>) {
    auto const values = m.values.template to_vector<E>();
    std::copy(values.begin(), values.end(), r.valuePtr());
  } else {
    std::copy(m.values.begin(), m.values.begin() + p.count(), r.valuePtr());
  }
  return r;
}

} // namespace varve

#pragma GCC diagnostic pop
