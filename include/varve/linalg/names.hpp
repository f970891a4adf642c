// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/norms.hpp>
#include <varve/linalg/inverse.hpp>
#include <varve/linalg/lu.hpp>
#include <varve/linalg/multi_dot.hpp>
#include <varve/linalg/orthogonal.hpp>
#include <varve/linalg/spectral.hpp>
#include <varve/linalg/triangular.hpp>

/// @file
/// Matrix functions with the names of `torch.linalg`: `linalg::solve(a, b)` is `solve(a, b)`, and `linalg::inv(a)` is
/// `inverse(a)`. `svd` is missing, because `svd(a)` returns v as `torch.svd` does, while `torch.linalg.svd` returns its
/// transpose.
namespace varve::linalg {

using varve::cholesky;
using varve::cholesky_ex;
using varve::det;
using varve::eigh;
using varve::eigvalsh;
using varve::lu_factor;
using varve::matrix_exp;
using varve::matrix_power;
using varve::multi_dot;
using varve::pinv;
using varve::qr;
using varve::slogdet;
using varve::solve;
using varve::solve_triangular;
using varve::svdvals;
using varve::vector_norm;

/// Another name of `inverse` (`torch.linalg.inv`).
inline constexpr inverse_t inv{};

} // namespace varve::linalg
