// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/norms.hpp>
#include <varve/linalg/lu.hpp>

/// @file
/// Linear systems, inverses, powers, determinants and exponentials of square matrices.
namespace varve {

/// Solves a x = b for matrices of equal batches. With `check` a singular matrix throws `value_error`; otherwise its x
/// is infinite or NaN.
inline constexpr struct solve_matrices_t {
  static constexpr auto op_name = "linalg_solve";
  template <value A, value B, class C = ints<1>>
  constexpr auto operator()(A const& a, B const& b, C const& check = {}) const {
    return bind<solve_matrices_t>(detail::as_fact(check))(a, b);
  }
} solve_matrices{};

template <>
struct rules<solve_matrices_t> : detail::of_matrices<solve_matrices_t, 2> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result, saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor self, Tensor B, bool check=True) -> Tensor";
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const*) {
    return attributes(dims{at.count == 0 || (at[0].n > 0 && at[0][0] != 0)});
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const a = require_square(in[0]), b = require_matrix(in[1]);
    require_dtypes(in), require_equal_batches(a, 2, b, 2);
    if (a[a.n - 1] != b[b.n - 2]) refuse::shapes_do_not_match("linalg_solve", a, b);
    return {in[1].type, b};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> b) {
    kernel::matrices::matrix m(detail::matrix_rows(a), detail::matrix_rows(a)),
        x(detail::matrix_rows(b), detail::matrix_columns(b));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p, T const* q) {
          detail::read_matrix(a, p, m), detail::read_matrix(b, q, x);
          if (kernel::matrices::solve(m, x) != 0 && at[0][0] != 0)
            refuse::argument_is_invalid("solve", "a matrix is singular");
          detail::write_matrix(out, y, x);
        },
        out, a, b);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& y, value auto const& a,
                            value auto const&) {
    return neg(op(a, detail::times(d, y)));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const& op, value auto const& d, value auto const&, value auto const& a,
                            value auto const&) {
    return op(a, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& y, value auto const& a,
                            value auto const&) {
    return neg(detail::times_transposed(op(transpose(a), g), y));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& a,
                            value auto const&) {
    return op(transpose(a), g);
  }
};

/// Solves a x = b (`torch.linalg.solve`). Batches broadcast. b may be a vector, or a batch of vectors with the batch of
/// a.
inline constexpr struct solve_t : composite_operator<solve_t> {
  static constexpr auto op_name = "linalg_solve";
  template <value A, value B, class C = ints<1>>
  static constexpr auto body(A const& a, B const& b, C const& check = {}) {
    auto const vectors = on_dims(
        [](dims const& s, dims const& t) {
          if (s.n < 2) refuse::argument_is_invalid(op_name, "matrices are expected");
          return dims{t.n == 1 || (t.n == s.n - 1 && t == s.sub(0, s.n - 1))};
        },
        shape_of(a), shape_of(b));
    auto const of_vectors = [&](auto const& v) {
      return squeeze(broadcasting(a, unsqueeze(v, axis<-1>), check), axis<-1>);
    };
    auto const of_matrices = [&](auto const& v) { return broadcasting(a, v, check); };
    return choose(same_fact(vectors, ints<1>{}), of_vectors, of_matrices, b);
  }

private:
  template <value A, value B, class C>
  static constexpr auto broadcasting(A const& a, B const& b, C const& check) {
    auto const with = [](dims const& s, dims const& t) {
      if (s.n < 2 || t.n < 2) refuse::shapes_do_not_match(op_name, s, t);
      dims r = broadcast(s.sub(0, s.n - 2), t.sub(0, t.n - 2));
      return r.push_back(s[s.n - 2]).push_back(s[s.n - 1]);
    };
    return solve_matrices(expand(a, on_dims(with, shape_of(a), shape_of(b))),
                          expand(b, on_dims(with, shape_of(b), shape_of(a))), check);
  }
} solve{};
/// The inverse of square matrices (`torch.linalg.inv`). With `check` a singular matrix throws `value_error`.
inline constexpr struct inverse_t : composite_operator<inverse_t> {
  static constexpr auto op_name = "linalg_inv";
  template <value A, class C = ints<1>>
  static constexpr auto body(A const& a, C const& check = {}) {
    auto const square = [](dims const& s) {
      if (s.n < 2 || s[s.n - 1] != s[s.n - 2]) refuse::argument_is_invalid(op_name, "square matrices are expected");
      return s;
    };
    (void)on_dims(square, shape_of(a));
    return solve_matrices(a, detail::identity_like(a), check);
  }
} inverse{};
namespace detail {
/// Returns the lower triangle. Its derivative also covers elements above the diagonal, as if none were removed.
template <value L>
constexpr auto lower_with_derivative(L const& l) {
  auto const known = where(isfinite(l), l, 0); // elements above the diagonal are arbitrary
  return add(known, detach(sub(tril(l), known)));
}
} // namespace detail
/// The inverse of l l^T for a given lower Cholesky factor l (`torch.cholesky_inverse`). Elements above the diagonal are
/// not read but have a derivative, as in PyTorch: that of l l^T.
inline constexpr struct cholesky_inverse_t : composite_operator<cholesky_inverse_t> {
  static constexpr auto op_name = "cholesky_inverse";
  template <value L>
  static constexpr auto body(L const& l) {
    auto const i = inverse(detail::lower_with_derivative(l));
    return detail::transposed_times(i, i);
  }
} cholesky_inverse{};
/// Solves l l^T x = b for a given lower Cholesky factor l (`torch.cholesky_solve`). Batches broadcast. Elements above
/// the diagonal are not read but have a derivative, as in PyTorch.
inline constexpr struct cholesky_solve_t : composite_operator<cholesky_solve_t> {
  static constexpr auto op_name = "cholesky_solve";
  template <value B, value L>
  static constexpr auto body(B const& b, L const& l) {
    auto const with = [](dims const& s, dims const& t) {
      if (s.n < 2 || t.n < 2) refuse::shapes_do_not_match(op_name, s, t);
      dims r = broadcast(s.sub(0, s.n - 2), t.sub(0, t.n - 2));
      return r.push_back(s[s.n - 2]).push_back(s[s.n - 1]);
    };
    auto const lower = detail::lower_with_derivative(expand(l, on_dims(with, shape_of(l), shape_of(b))));
    auto const right = expand(b, on_dims(with, shape_of(b), shape_of(l)));
    constexpr ints<0> unchecked{};
    return solve_matrices(transpose(lower), solve_matrices(lower, right, unchecked), unchecked);
  }
} cholesky_solve{};
/// The n-th power of square matrices (`torch.linalg.matrix_power`). Negative powers use the inverse.
inline constexpr struct matrix_power_t : composite_operator<matrix_power_t> {
  static constexpr auto op_name = "linalg_matrix_power";
  template <value A>
  static constexpr auto body(A const& a, index_t n) {
    if (n == 0) return add(mul(detach(a), 0), detail::identity_like(a));
    auto power = n < 0 ? inverse(a) : add(a, 0);
    index_t rest = n < 0 ? -n : n;
    while (rest % 2 == 0) power = detail::times(power, power), rest /= 2;
    auto r = power;
    for (rest /= 2; rest > 0; rest /= 2) {
      power = detail::times(power, power);
      if (rest % 2) r = detail::times(r, power);
    }
    return r;
  }
} matrix_power{};

/// The cofactor matrix: the derivative of the determinant with respect to each element, also for singular matrices. Its
/// own derivative exists for nonsingular matrices only.
inline constexpr struct cofactors_t {
  static constexpr auto op_name = "cofactors";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<cofactors_t>()(a);
  }
} cofactors{};
/// The determinant of square matrices (`torch.linalg.det`).
inline constexpr struct det_t {
  static constexpr auto op_name = "linalg_det";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<det_t>()(a);
  }
} det{};

template <>
struct rules<cofactors_t> : detail::of_matrices<cofactors_t, 1> {
  static constexpr char const* part_of = "the derivative of det";
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, require_square(in[0])}; }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix m(detail::matrix_rows(a), detail::matrix_rows(a)),
        y(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* to, T const* p) {
          detail::read_matrix(a, p, m);
          kernel::matrices::cofactors(m, y);
          detail::write_matrix(out, to, y);
        },
        out, a);
  }
  // c = det(a) a^-T, so that dc = <a^-T, da> c - a^-T da^T c
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& c, value auto const& a) {
    auto const i = inverse(transpose(a));
    return sub(mul(sum(mul(i, d), axis<-2, -1>, keepdim), c), detail::times(i, detail::transposed_times(d, c)));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& c, value auto const& a) {
    auto const i = inverse(transpose(a));
    return sub(mul(sum(mul(g, c), axis<-2, -1>, keepdim), i), detail::times(c, detail::transposed_times(g, i)));
  }
};
template <>
struct rules<det_t> : detail::of_matrices<det_t, 1> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    return {in[0].type, with_own(require_square(in[0]))};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix m(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<0>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, m);
          *y = kernel::constant::narrow<R>(kernel::matrices::determinant(m));
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const&, value auto const& a) {
    return sum(mul(cofactors(a), d), axis<-2, -1>);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& a) {
    return mul(cofactors(a), unsqueeze(unsqueeze(g, axis<-1>), axis<-1>));
  }
};

/// The matrix exponential e^a of square matrices (`torch.linalg.matrix_exp`).
inline constexpr struct matrix_exp_t {
  static constexpr auto op_name = "linalg_matrix_exp";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<matrix_exp_t>()(a);
  }
} matrix_exp{};

template <>
struct rules<matrix_exp_t> : detail::of_matrices<matrix_exp_t, 1> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, require_square(in[0])}; }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix m(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, m);
          kernel::matrices::exponential_of(m);
          detail::write_matrix(out, y, m);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const&, value auto const& a) {
    return along(a, d);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& a) {
    return along(transpose(a), g);
  }

private:
  /// Returns the derivative of e^a in direction d: the upper right block of the exponential of [a d; 0 a].
  template <value A, value D>
  static constexpr auto along(A const& a, D const& d) {
    auto const n = on_dims([](dims const& s) { return dims{s[s.n - 1]}; }, shape_of(a));
    auto const above = cat(std::make_tuple(a, d), ints<-1>{});
    auto const below = cat(std::make_tuple(detail::constant_zeros(a), a), ints<-1>{});
    auto const whole = matrix_exp(cat(std::make_tuple(above, below), ints<-2>{}));
    return narrow(narrow(whole, ints<-2>{}, ints<0>{}, n), ints<-1>{}, n, n);
  }
};

} // namespace varve
