// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/linalg/matrix_operator.hpp>

/// @file
/// Factorization l d l^T of symmetric matrices that need not be positive definite (`torch.linalg.ldl_factor`). It has
/// no derivatives, as in PyTorch.
namespace varve {

/// Both factors of [.., n, n], packed as by LAPACK's sytrf, and the pivots as an additional row: [.., n + 1, n]. Only
/// the lower triangle is read.
inline constexpr struct ldl_factors_t {
  static constexpr auto op_name = "ldl_factors";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<ldl_factors_t>()(a);
  }
} ldl_factors{};
/// Solves a x = b from factors and pivots, [.., n + 1, n].
inline constexpr struct ldl_solve_t {
  static constexpr auto op_name = "ldl_solve";
  template <value F, value B>
  constexpr auto operator()(F const& factors, B const& b) const {
    return bind<ldl_solve_t>()(factors, b);
  }
} ldl_solve{};

template <>
struct rules<ldl_factors_t> : detail::of_matrices<ldl_factors_t, 1> {
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims s = require_square(in[0]);
    s[s.n - 2] = s[s.n - 2] + 1;
    return {in[0].type, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const n = detail::matrix_rows(a);
    kernel::matrices::matrix x(n + 1, n);
    kernel::matrices::view const v = x;
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, {v.data, n, n});
          kernel::matrices::ldl({v.data, n, n}, v.data + n * n);
          detail::write_matrix(out, y, v);
        },
        out, a);
  }
};
template <>
struct rules<ldl_solve_t> : detail::of_matrices<ldl_solve_t, 2> {
  static constexpr auto schema = "(Tensor factors, Tensor B) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const f = require_matrix(in[0]), b = require_matrix(in[1]);
    require_dtypes(in), require_equal_batches(f, 2, b, 2);
    if (f[f.n - 2] != f[f.n - 1] + 1 || b[b.n - 2] != f[f.n - 1]) refuse::shapes_do_not_match("ldl_solve", f, b);
    return {in[1].type, b};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> f, strided<T const> b) {
    index_t const n = detail::matrix_columns(f);
    kernel::matrices::matrix x(n + 1, n), y(n, detail::matrix_columns(b));
    kernel::matrices::view const v = x;
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* to, T const* p, T const* q) {
          detail::read_matrix(f, p, v), detail::read_matrix(b, q, y);
          for (index_t k = 0; k < n; ++k)
            if (!(kernel::matrices::size_of(v(n, k)) >= 1 &&
                  kernel::matrices::size_of(v(n, k)) <= static_cast<double>(n)) ||
                (v(n, k) < 0 && (k + 1 == n || v(n, k + 1) != v(n, k)) && (k == 0 || v(n, k - 1) != v(n, k))))
              refuse::argument_is_invalid("ldl_solve", "these are no pivots");
          kernel::matrices::solve_ldl({v.data, n, n}, v.data + n * n, y);
          detail::write_matrix(out, to, y);
        },
        out, f, b);
  }
};

} // namespace varve
