// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/linalg/matrix_operator.hpp>
#include <varve/op/where.hpp>

#include <limits>
#include <utility>

/// @file
/// Triangular systems and the Cholesky factorization.
namespace varve {

/// `solve_triangular(a, b, upper, unit)`: solves t x = b, where t is the lower or upper triangle of a. With `unit` the
/// diagonal of t is all ones. The other triangle is not read. Batches must be equal. Zeros on the diagonal yield
/// infinities.
inline constexpr struct solve_triangular_t {
  static constexpr auto op_name = "linalg_solve_triangular";
  template <value A, value B, class U, class N = ints<0>>
  constexpr auto operator()(A const& a, B const& b, U const& upper, N const& unit = {}) const {
    return bind<solve_triangular_t>(detail::as_fact(upper), detail::as_fact(unit))(a, b);
  }
} solve_triangular{};

namespace detail {
/// Returns the part of a matrix that a triangular system reads.
template <class U, class N, value X>
constexpr auto triangle_read(U const& upper, N const& unit, X const& x) {
  auto const inner = [&](auto const& v) {
    return choose(
        same_fact(upper, ints<0>{}), [](auto const& w) { return tril(w, -1); },
        [](auto const& w) { return triu(w, 1); }, v);
  };
  auto const whole = [&](auto const& v) {
    return choose(
        same_fact(upper, ints<0>{}), [](auto const& w) { return tril(w); }, [](auto const& w) { return triu(w); }, v);
  };
  return choose(same_fact(unit, ints<0>{}), whole, inner, x);
}
inline constexpr auto other_triangle = [](dims const& u) { return dims{u[0] == 0}; };
} // namespace detail

/// Attributes {upper}, {unit}.
template <>
struct rules<solve_triangular_t> : detail::of_matrices<solve_triangular_t, 2> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result, saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor self, Tensor B, bool upper, bool unitriangular=False) -> Tensor";
  static constexpr int least_attributes = 1;
  static constexpr attributes checked(attributes const& at, meta const*) {
    return attributes(dims{at[0].n > 0 && at[0][0] != 0}, dims{at.count > 1 && at[1].n > 0 && at[1][0] != 0});
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const a = require_square(in[0]), b = require_matrix(in[1]);
    require_dtypes(in), require_equal_batches(a, 2, b, 2);
    if (a[a.n - 1] != b[b.n - 2]) refuse::shapes_do_not_match("linalg_solve_triangular", a, b);
    return {in[1].type, b};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> b) {
    kernel::matrices::matrix t(detail::matrix_rows(a), detail::matrix_rows(a)),
        x(detail::matrix_rows(b), detail::matrix_columns(b));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p, T const* q) {
          detail::read_matrix(a, p, t), detail::read_matrix(b, q, x);
          kernel::matrices::solve_triangle(t, x, at[0][0] != 0, at[1][0] != 0);
          detail::write_matrix(out, y, x);
        },
        out, a, b);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& y, value auto const& a,
                            value auto const&) {
    return neg(op(a, detail::times(detail::triangle_read(op.a, op.b, d), y)));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const& op, value auto const& d, value auto const&, value auto const& a,
                            value auto const&) {
    return op(a, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& y, value auto const& a,
                            value auto const&) {
    return neg(detail::triangle_read(op.a, op.b, detail::times_transposed(back(op, g, a), y)));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& a,
                            value auto const&) {
    return back(op, g, a);
  }

private:
  template <class Op, value G, value A>
  static constexpr auto back(Op const& op, G const& g, A const& a) {
    return solve_triangular(transpose(a), g, on_dims(detail::other_triangle, op.a), op.b);
  }
};

/// The lower triangular l of a = l l^T for symmetric positive definite matrices (`torch.linalg.cholesky`). Only the
/// lower triangle is read. Throws `value_error` if a matrix is not positive definite.
inline constexpr struct cholesky_t {
  static constexpr auto op_name = "linalg_cholesky";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<cholesky_t>()(a);
  }
} cholesky{};

/// For each symmetric matrix the order of the first leading minor that is not positive, or 0, as int64. Its derivative
/// is zero.
inline constexpr struct cholesky_info_t {
  static constexpr auto op_name = "cholesky_info";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<cholesky_info_t>()(a);
  }
} cholesky_info{};
/// `cholesky` and `cholesky_info` (int32), as a pair (`torch.linalg.cholesky_ex`). A matrix that is not positive
/// definite is no error; its factor is NaN.
inline constexpr struct cholesky_ex_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const info = to(cholesky_info(a), ints<static_cast<index_t>(dtype::int32)>{});
    auto const fails = unsqueeze(unsqueeze(ne(info, 0), axis<-1>), axis<-1>);
    auto const known = where(fails, detail::identity_like(a), a);
    return std::pair(where(fails, std::numeric_limits<double>::quiet_NaN(), cholesky(known)), info);
  }
} cholesky_ex{};

template <>
struct rules<cholesky_info_t> : detail::of_matrices<cholesky_info_t, 1> {
  static constexpr bool differentiable = false;
  static constexpr auto schema = "(Tensor self) -> Tensor";
  template <class>
  using result = std::int64_t;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    return {dtype::int64, with_own(require_square(in[0]))};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix l(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<0>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, l);
          *y = kernel::matrices::cholesky(l);
        },
        out, a);
  }
};

template <>
struct rules<cholesky_t> : detail::of_matrices<cholesky_t, 1> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, require_square(in[0])}; }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix l(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, l);
          if (kernel::matrices::cholesky(l) != 0)
            refuse::argument_is_invalid("cholesky", "a matrix is not positive definite");
          detail::write_matrix(out, y, l);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& l, value auto const&) {
    auto const half = solve_triangular(l, d, ints<0>{});
    auto const inner = transpose(solve_triangular(l, transpose(half), ints<0>{}));
    return detail::times(l, detail::lower_half(inner));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& l, value auto const&) {
    auto const p = tril(detail::transposed_times(l, g));
    auto const symmetric = mul(add(p, transpose(tril(p, -1))), 0.5);
    auto const left = solve_triangular(transpose(l), symmetric, ints<1>{});
    return transpose(solve_triangular(transpose(l), transpose(left), ints<1>{}));
  }
};

} // namespace varve
