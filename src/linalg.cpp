// SPDX-License-Identifier: BSL-1.0
// The factorizations of the compiled library.
#define VARVE_DEFINES 5
#include <varve/linalg.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template struct library_operator<solve_triangular_t, 2>;
template struct library_operator<cholesky_t, 0>;
template struct library_operator<cholesky_info_t, 0>;
template struct library_operator<lu_order_t, 0>;
template struct library_operator<rows_of_pivots_t, 1>;
template struct library_operator<lu_in_place_t, 0>;
template struct library_operator<solve_matrices_t, 1>;
template struct library_operator<cofactors_t, 0>;
template struct library_operator<det_t, 0>;
template struct library_operator<matrix_exp_t, 0>;
template struct library_operator<reflectors_t, 0>;
template struct library_operator<orthonormal_t, 0>;
template struct library_operator<eigvalsh_t, 1>;
template struct library_operator<eigenvectors_t, 1>;
template struct library_operator<svdvals_t, 0>;
template struct library_operator<singular_vectors_t, 0>;
template struct library_operator<pseudoinverse_t, 1>;
template struct library_operator<ldl_factors_t, 0>;
template struct library_operator<ldl_solve_t, 0>;
} // namespace varve::detail
