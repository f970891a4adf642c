// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/narrow.hpp>
#include <varve/linalg/triangular.hpp>
#include <varve/op/cat.hpp>

/// @file
/// Householder reflectors and the QR factorization.
namespace varve {

/// The reflectors of [.., m, n] as LAPACK's geqrf returns them, with their scales as an additional row below. The shape
/// is [.., m + 1, n]. It has no derivative, as in PyTorch.
inline constexpr struct reflectors_t {
  static constexpr auto op_name = "reflectors";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<reflectors_t>()(a);
  }
} reflectors{};
/// The q [.., m, n] of a = q r for m >= n: its columns are orthonormal, and r is upper triangular. The signs of r's
/// diagonal are those that Householder reflectors produce.
inline constexpr struct orthonormal_t {
  static constexpr auto op_name = "orthonormal";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<orthonormal_t>()(a);
  }
} orthonormal{};

template <>
struct rules<reflectors_t> : detail::of_matrices<reflectors_t, 1> {
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims s = require_matrix(in[0]);
    s[s.n - 2] = s[s.n - 2] + 1;
    return {in[0].type, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const m = detail::matrix_rows(a), n = detail::matrix_columns(a);
    kernel::matrices::matrix x(m + 1, n);
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          kernel::matrices::view const v = x;
          for (index_t j = 0; j < n; ++j) v(m, j) = 0;
          detail::read_matrix(a, p, {v.data, m, n});
          kernel::matrices::householder({v.data, m, n}, v.data + m * n);
          detail::write_matrix(out, y, v);
        },
        out, a);
  }
};
template <>
struct rules<orthonormal_t> : detail::of_matrices<orthonormal_t, 1> {
  static constexpr saved_values saved{{saved_values::operand(0) | saved_values::result}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const s = require_matrix(in[0]);
    if (s[s.n - 2] < s[s.n - 1]) refuse::argument_is_invalid("orthonormal", "there are more columns than rows");
    return {in[0].type, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const m = detail::matrix_rows(a), n = detail::matrix_columns(a);
    kernel::matrices::matrix x(m, n), q(m, n);
    list<double> tau(static_cast<std::size_t>(n), 0.0);
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, x);
          kernel::matrices::householder(x, tau.data());
          kernel::matrices::product_of_reflectors(x, tau.data(), n, q);
          detail::write_matrix(out, y, q);
        },
        out, a);
  }
  // da r^-1 = dq + q (dr r^-1), of which the last is upper triangular, and q^T dq has no symmetric part
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& q, value auto const& a) {
    auto const m = over(d, triu(detail::transposed_times(q, a)));
    auto const s = detail::transposed_times(q, m);
    return sub(m, detail::times(q, transpose(detail::lower_half(add(s, transpose(s))))));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& q, value auto const& a) {
    auto const w = triu(detail::transposed_times(q, g));
    auto const both = sub(add(w, transpose(w)), diag_embed(detail::diagonal_of_matrices(w)));
    auto const r = triu(detail::transposed_times(q, a));
    return transpose(solve_triangular(r, transpose(sub(g, detail::times(q, both))), ints<1>{}));
  }

private:
  /// x r^-1.
  template <value X, value R>
  static constexpr auto over(X const& x, R const& r) {
    return transpose(solve_triangular(transpose(r), transpose(x), ints<0>{}));
  }
};

/// The reduced factors q [.., m, k] and r [.., k, n] of a = q r, as a pair (`torch.linalg.qr`). a is [.., m, n], and k
/// is the smaller of m and n.
inline constexpr struct qr_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const side = [](dims const& s) {
      if (s.n < 2) refuse::argument_is_invalid("qr", "matrices are expected");
      return dims{s[s.n - 1] < s[s.n - 2] ? s[s.n - 1] : s[s.n - 2]};
    };
    auto const k = on_dims(side, shape_of(a));
    auto const q = orthonormal(narrow(a, ints<-1>{}, ints<0>{}, k));
    return std::pair(q, triu(detail::transposed_times(q, a)));
  }
} qr{};

namespace detail {
/// Returns the reflector in column j of a matrix: zeros, a one in row j, and the elements below.
template <value A>
constexpr auto reflector(A const& a, index_t j) {
  auto const column = narrow(a, ints<-1>{}, dims{j}, ints<1>{});
  auto const rows = on_dims([](dims const& s) { return dims{s[s.n - 2]}; }, shape_of(a));
  auto const row = reshape(counted(rows, a), on_dims([](dims const& s) { return dims{s[0], 1}; }, rows));
  return where(gt(row, j), column, to(eq(row, j), type_fact(a)));
}
/// Returns c - tau v (v^T c).
template <value C, value V, value T>
constexpr auto reflected(C const& c, V const& v, T const& tau) {
  return sub(c, mul(times(v, transposed_times(v, c)), unsqueeze(tau, axis<-1>)));
}
template <value T>
constexpr auto scale_at(T const& tau, index_t j) { // [.., 1]
  return narrow(tau, ints<-1>{}, dims{j}, ints<1>{});
}
} // namespace detail
/// Applies a product q of reflectors to matrices c from the left: q c, or q^T c. The shapes are [.., m, r] for c, [..,
/// m, n] for a, and [.., k] for the scales. (Tensors only: it iterates over columns at run time.)
template <class T>
  requires std::is_same_v<T, tensor>
T apply_reflectors(T const& a, T const& tau, T const& c, bool transposed) {
  index_t const k = tau.sizes()[tau.dim() - 1];
  T r = k == 0 ? T(clone(c)) : c;
  for (index_t j = 0; j < k; ++j) {
    index_t const at = transposed ? j : k - 1 - j;
    r = detail::reflected(r, T(detail::reflector(a, at)), T(detail::scale_at(tau, at)));
  }
  return r;
}
/// Returns the first n columns of the product of the reflectors in a [.., m, n] (`torch.linalg.householder_product`).
template <class T>
  requires std::is_same_v<T, tensor>
T householder_product(T const& a, T const& tau) {
  detail::needs_real("householder_product", a, tau);
  if (a.dim() < 2 || tau.dim() != a.dim() - 1 || a.sizes()[a.dim() - 2] < a.sizes()[a.dim() - 1] ||
      tau.sizes()[tau.dim() - 1] > a.sizes()[a.dim() - 1])
    refuse::shapes_do_not_match("householder_product", a.sizes(), tau.sizes());
  index_t const m = a.sizes()[a.dim() - 2], n = a.sizes()[a.dim() - 1];
  T const whole = to(T(eq(T(unsqueeze(T(arange(m)), axis<-1>)), T(arange(n)))), a.dtype());
  return apply_reflectors(a, tau, T(add(T(expand(whole, a.sizes())), 0)), false);
}
/// Returns q c, q^T c, c q or c q^T for the product q of reflectors (`torch.ormqr`).
template <class T>
  requires std::is_same_v<T, tensor>
T ormqr(T const& a, T const& tau, T const& c, bool left, bool transposed) {
  detail::needs_real("ormqr", a, tau, c);
  if (a.dim() < 2 || tau.dim() != a.dim() - 1 || c.dim() != a.dim() ||
      c.sizes()[c.dim() - (left ? 2 : 1)] != a.sizes()[a.dim() - 2])
    refuse::shapes_do_not_match("ormqr", a.sizes(), c.sizes());
  if (!is_floating(a.dtype())) refuse::dtype_is_not_supported("ormqr", name(a.dtype()));
  if (left) return apply_reflectors(a, tau, c, transposed);
  return transpose(apply_reflectors(a, tau, T(transpose(c)), !transposed));
}

} // namespace varve
