// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/narrow.hpp>
#include <varve/linalg/inverse.hpp>
#include <varve/linalg/matrix_operator.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/amax.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/reciprocal.hpp>

/// @file
/// Eigenvalues of symmetric matrices, singular values, and functions built on them.
namespace varve {

/// Eigenvalues [.., n] of symmetric matrices, in ascending order (`torch.linalg.eigvalsh`). Only the lower triangle is
/// read, or only the upper one if `upper`.
inline constexpr struct eigvalsh_t {
  static constexpr auto op_name = "linalg_eigvalsh";
  template <value A, class U = ints<0>>
  constexpr auto operator()(A const& a, U const& upper = {}) const {
    return bind<eigvalsh_t>(detail::as_fact(upper))(a);
  }
} eigvalsh{};
/// Eigenvectors of symmetric matrices, as columns. Their signs are undefined; for equal eigenvalues, so is the basis of
/// the eigenspace. Derivatives are correct for functions that do not depend on this choice.
inline constexpr struct eigenvectors_t {
  static constexpr auto op_name = "eigenvectors";
  template <value A, class U = ints<0>>
  constexpr auto operator()(A const& a, U const& upper = {}) const {
    return bind<eigenvectors_t>(detail::as_fact(upper))(a);
  }
} eigenvectors{};

namespace detail {
template <class T>
constexpr void read_symmetric(strided<T const> const& x, T const* p, bool upper, kernel::matrices::view to) {
  read_matrix(x, p, to);
  for (index_t i = 0; i < to.rows; ++i)
    for (index_t j = 0; j < i; ++j) (upper ? to(i, j) : to(j, i)) = upper ? to(j, i) : to(i, j);
}
template <class Tag>
struct of_symmetric : of_matrices<Tag, 1> {
  static constexpr auto schema = "(Tensor self, bool upper=False) -> Tensor";
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const*) {
    return attributes(dims{at.count > 0 && at[0].n > 0 && at[0][0] != 0});
  }
};
/// Returns 1 / (x_j - x_i), with 0 on the diagonal.
template <value X>
constexpr auto inverse_differences(X const& x) {
  auto const d = sub(as_columns_factor(x), as_rows_factor(x));
  auto const own = ne(identity_like(d), 0);
  return where(own, 0, reciprocal(where(own, 1, d)));
}
} // namespace detail

template <>
struct rules<eigvalsh_t> : detail::of_symmetric<eigvalsh_t> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const s = require_square(in[0]);
    return {in[0].type, with_own(s, s[s.n - 1])};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a) {
    index_t const n = detail::matrix_rows(a), step = out.strides[out.sizes.n - 1];
    kernel::matrices::matrix m(n, n);
    list<double> values(static_cast<std::size_t>(n), 0.0);
    detail::for_each_of_batch(
        detail::batch_of<1>(out),
        [&](R* y, T const* p) {
          detail::read_symmetric(a, p, at[0][0] != 0, m);
          kernel::matrices::symmetric_eigenvalues(m, values.data());
          for (index_t i = 0; i < n; ++i) y[i * step] = kernel::constant::narrow<R>(values[i]);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const&, value auto const& a) {
    auto const v = eigenvectors(a, op.a);
    return sum(mul(v, detail::times(d, v)), axis<-2>);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& a) {
    auto const v = eigenvectors(a, op.a);
    return detail::times_transposed(mul(v, detail::as_columns_factor(g)), v);
  }
};
template <>
struct rules<eigenvectors_t> : detail::of_symmetric<eigenvectors_t> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, require_square(in[0])}; }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a) {
    index_t const n = detail::matrix_rows(a);
    kernel::matrices::matrix m(n, n), v(n, n);
    list<double> values(static_cast<std::size_t>(n), 0.0);
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_symmetric(a, p, at[0][0] != 0, m);
          kernel::matrices::symmetric_eigen(m, values.data(), v);
          detail::write_matrix(out, y, v);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const& op, value auto const& d, value auto const& v, value auto const& a) {
    auto const inner = detail::transposed_times(v, detail::times(d, v));
    return detail::times(v, mul(detail::inverse_differences(eigvalsh(a, op.a)), inner));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const& v, value auto const& a) {
    auto const inner = mul(detail::inverse_differences(eigvalsh(a, op.a)), detail::transposed_times(v, g));
    return detail::times_transposed(detail::times(v, inner), v);
  }
};
/// Eigenvalues and eigenvectors of symmetric matrices, as a pair (`torch.linalg.eigh`).
inline constexpr struct eigh_t {
  template <value A, class U = ints<0>>
  constexpr auto operator()(A const& a, U const& upper = {}) const {
    return std::pair(eigvalsh(a, upper), eigenvectors(a, upper));
  }
} eigh{};

/// Singular values [.., k], in descending order (`torch.linalg.svdvals`).
inline constexpr struct svdvals_t {
  static constexpr auto op_name = "linalg_svdvals";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<svdvals_t>()(a);
  }
} svdvals{};
/// The left singular vectors of [.., m, n] as columns, and the right ones below them: [.., m + n, k].
inline constexpr struct singular_vectors_t {
  static constexpr auto op_name = "singular_vectors";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<singular_vectors_t>()(a);
  }
} singular_vectors{};

namespace detail {
/// Separates the left and the right singular vectors.
template <value W, class S>
constexpr auto left_and_right(W const& both, S const& sizes) {
  auto const m = on_dims([](dims const& s) { return dims{s[s.n - 2]}; }, sizes);
  auto const n = on_dims([](dims const& s) { return dims{s[s.n - 1]}; }, sizes);
  return std::pair(narrow(both, ints<-2>{}, ints<0>{}, m), narrow(both, ints<-2>{}, m, n));
}
inline constexpr auto smaller_of_sides = [](dims const& s) {
  return s[s.n - 1] < s[s.n - 2] ? s[s.n - 1] : s[s.n - 2];
};
} // namespace detail

template <>
struct rules<svdvals_t> : detail::of_matrices<svdvals_t, 1> {
  static constexpr saved_values saved{{saved_values::operand(0)}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const s = require_matrix(in[0]);
    return {in[0].type, with_own(s, detail::smaller_of_sides(s))};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const m = detail::matrix_rows(a), n = detail::matrix_columns(a), k = m < n ? m : n;
    index_t const step = out.strides[out.sizes.n - 1];
    kernel::matrices::matrix x(m, n);
    list<double> s(static_cast<std::size_t>(k), 0.0);
    detail::for_each_of_batch(
        detail::batch_of<1>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, x);
          kernel::matrices::singular_values(x, s.data());
          for (index_t i = 0; i < k; ++i) y[i * step] = kernel::constant::narrow<R>(s[i]);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const&, value auto const& a) {
    auto const [u, v] = detail::left_and_right(singular_vectors(a), shape_of(a));
    return sum(mul(u, detail::times(d, v)), axis<-2>);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const& a) {
    auto const [u, v] = detail::left_and_right(singular_vectors(a), shape_of(a));
    return detail::times_transposed(mul(u, detail::as_columns_factor(g)), v);
  }
};
template <>
struct rules<singular_vectors_t> : detail::of_matrices<singular_vectors_t, 1> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const s = require_matrix(in[0]);
    return {in[0].type, with_own(s, s[s.n - 2] + s[s.n - 1], detail::smaller_of_sides(s))};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const m = detail::matrix_rows(a), n = detail::matrix_columns(a), k = m < n ? m : n;
    kernel::matrices::matrix x(m, n), both(m + n, k);
    list<double> s(static_cast<std::size_t>(k), 0.0);
    kernel::matrices::view const w = both;
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, x);
          kernel::matrices::singular_of(x, {w.data, m, k}, s.data(), {w.data + m * k, n, k});
          detail::write_matrix(out, y, w);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& w, value auto const& a) {
    auto const [u, v] = detail::left_and_right(w, shape_of(a));
    auto const s = svdvals(a);
    auto const f = detail::inverse_differences(mul(s, s)), row = detail::as_columns_factor(s);
    auto const column = detail::as_rows_factor(s);
    auto const dv = detail::times(d, v), du = detail::transposed_times(d, u); // d v and d^T u
    auto const p = detail::transposed_times(u, dv);
    auto const of_u = detail::times(u, mul(f, add(mul(p, row), mul(transpose(p), column))));
    auto const of_v = detail::times(v, mul(f, add(mul(p, column), mul(transpose(p), row))));
    auto const rest_u = div(sub(dv, detail::times(u, p)), row);
    auto const rest_v = div(sub(du, detail::times(v, transpose(p))), row);
    return cat(std::make_tuple(add(of_u, rest_u), add(of_v, rest_v)), ints<-2>{});
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& w, value auto const& a) {
    auto const [u, v] = detail::left_and_right(w, shape_of(a));
    auto const [gu, gv] = detail::left_and_right(g, shape_of(a));
    auto const s = svdvals(a);
    auto const f = detail::inverse_differences(mul(s, s)), row = detail::as_columns_factor(s);
    auto const column = detail::as_rows_factor(s);
    auto const pu = detail::transposed_times(u, gu), pv = detail::transposed_times(v, gv);
    auto const inner = add(mul(mul(f, sub(pu, transpose(pu))), row), mul(mul(f, sub(pv, transpose(pv))), column));
    auto const rest_u = div(sub(gu, detail::times(u, pu)), row), rest_v = div(sub(gv, detail::times(v, pv)), row);
    return add(detail::times_transposed(add(detail::times(u, inner), rest_u), v), detail::times_transposed(u, rest_v));
  }
};
/// Returns u [.., m, k], s [.., k] and v [.., n, k] of a = u diag(s) v^T as a tuple (`torch.svd`). The signs of the
/// vectors are undefined; for equal singular values, so is the basis of their space. Derivatives are correct for
/// functions that do not depend on this choice.
inline constexpr struct svd_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const [u, v] = detail::left_and_right(singular_vectors(a), shape_of(a));
    return std::make_tuple(clone(u), svdvals(a), clone(v)); // copied, because both are parts of one value
  }
} svd{};

/// The pseudoinverse [.., n, m] (`torch.linalg.pinv`). `limits` [.., 2] are an absolute limit and one relative to the
/// greatest singular value. Singular values up to the greater of both count as 0. With `symmetric`, matrices are
/// symmetric and only the lower triangle is read.
inline constexpr struct pseudoinverse_t {
  static constexpr auto op_name = "pseudoinverse";
  template <value A, value L, class H = ints<0>>
  constexpr auto operator()(A const& a, L const& limits, H const& symmetric = {}) const {
    return bind<pseudoinverse_t>(detail::as_fact(symmetric))(a, limits);
  }
} pseudoinverse{};

template <>
struct rules<pseudoinverse_t> : detail::of_matrices<pseudoinverse_t, 2> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result, 0}};
  static constexpr auto schema = "(Tensor self, Tensor limits, bool hermitian=False) -> Tensor";
  static constexpr int least_attributes = 0;
  static constexpr attributes checked(attributes const& at, meta const*) {
    return attributes(dims{at.count > 0 && at[0].n > 0 && at[0][0] != 0});
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    dims const s = at[0][0] != 0 ? require_square(in[0]) : require_matrix(in[0]);
    dims const& l = in[1].sizes;
    require_dtypes(in);
    if (l.n < 1 || l[l.n - 1] != 2) refuse::shapes_do_not_match("pinv", s, l);
    require_equal_batches(s, 2, l, 1);
    return {in[0].type, with_own(s, s[s.n - 1], s[s.n - 2])};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> a, strided<T const> limits) {
    kernel::matrices::matrix m(detail::matrix_rows(a), detail::matrix_columns(a)),
        y(detail::matrix_rows(out), detail::matrix_columns(out));
    index_t const step = limits.strides[limits.sizes.n - 1];
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* to, T const* p, T const* l) {
          if (at[0][0] != 0) detail::read_symmetric(a, p, false, m);
          else detail::read_matrix(a, p, m);
          kernel::matrices::pseudoinverse(m, static_cast<double>(l[0]), static_cast<double>(l[step]), y);
          detail::write_matrix(out, to, y);
        },
        out, a, limits);
  }
  // -p da p + p p^T da^T (1 - a p) + (1 - p a) da^T p^T p
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& p, value auto const& a,
                            value auto const&) {
    using namespace detail;
    auto const u = times_transposed(times_transposed(p, p), d), w = transposed_times(d, transposed_times(p, p));
    auto const first = times(p, times(d, p));
    return add(sub(sub(u, times(u, times(a, p))), first), sub(w, times(p, times(a, w))));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& p, value auto const& a,
                            value auto const&) {
    using namespace detail;
    auto const u = transposed_times(g, times_transposed(p, p)); // g^T p p^T
    auto const w = times_transposed(transposed_times(p, p), g); // p^T p g^T
    auto const first = transposed_times(p, times_transposed(g, p));
    return add(sub(sub(u, times(a, times(p, u))), first), sub(w, times(times(w, p), a)));
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const&, value auto const& p, auto const&...) {
    return detail::constant_zeros(p);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const&, value auto const&, value auto const&,
                            value auto const& limits) {
    return detail::constant_zeros(limits);
  }
};

namespace detail {
/// Returns the default relative limit for singular values: the dtype's epsilon times the greater of rows and columns.
template <value A>
constexpr double least_relative(A const& a) {
  dims const s = to_dims(shape_of(a));
  index_t const m = s[s.n - 2], n = s[s.n - 1];
  double const eps = dtype_of(a) == dtype::float32 ? 0x1p-23 : 0x1p-52;
  return eps * static_cast<double>(m > n ? m : n);
}
} // namespace detail
/// The pseudoinverse with numbers as limits (`torch.linalg.pinv`). A negative relative limit stands for the default: 0
/// if an absolute limit is given, otherwise the dtype's epsilon times the greater of rows and columns.
inline constexpr struct pinv_t : composite_operator<pinv_t> {
  static constexpr auto op_name = "linalg_pinv";
  template <value A, class H = ints<0>>
  static constexpr auto body(A const& a, double absolute = 0, double relative = -1, H const& symmetric = {}) {
    if (rank_of(a) < 2) refuse::argument_is_invalid(op_name, "matrices are expected");
    double const r = relative < 0 ? (absolute > 0 ? 0 : detail::least_relative(a)) : relative;
    auto const one = detail::constant_like(a, ints<1>{}, 1);
    auto const limits = cat(std::make_tuple(mul(one, absolute), mul(one, r)), ints<0>{});
    auto const whole = on_dims(
        [](dims const& s) {
          dims l = s.sub(0, s.n - 2);
          return l.push_back(2);
        },
        shape_of(a));
    return pseudoinverse(a, expand(limits, whole), symmetric);
  }
} pinv{};

} // namespace varve
