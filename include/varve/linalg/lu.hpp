// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/linalg/triangular.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/where.hpp>
#include <varve/special/rounding.hpp>

#include <limits>

/// @file
/// LU factorization with row exchanges: p a = l u.
namespace varve {

/// The row exchanges of partial pivoting. For [.., m, n], with k the smaller of m and n, the result is int64 and has
/// the shape [.., k + m + 1]. It contains the row that each of the first k rows was exchanged with; the final order of
/// all m rows; and the number of the first zero pivot, counted from 1, or 0.
inline constexpr struct lu_order_t {
  static constexpr auto op_name = "lu_order";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<lu_order_t>()(a);
  }
} lu_order{};

template <>
struct rules<lu_order_t> : detail::of_matrices<lu_order_t, 1> {
  static constexpr char const* part_of = "slogdet and lu";
  static constexpr bool differentiable = false;
  static constexpr auto schema = "(Tensor self) -> Tensor";
  template <class>
  using result = std::int64_t;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    dims const s = require_matrix(in[0]);
    extent const m = s[s.n - 2], n = s[s.n - 1];
    return {dtype::int64, with_own(s, (m < n ? m : n) + m + 1)};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    index_t const m = detail::matrix_rows(a), n = detail::matrix_columns(a), k = m < n ? m : n;
    index_t const step = out.strides[out.sizes.n - 1];
    kernel::matrices::matrix lu(m, n);
    list<index_t> pivots(static_cast<std::size_t>(k), 0);
    detail::for_each_of_batch(
        detail::batch_of<1>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, lu);
          index_t const info = kernel::matrices::lu(lu, pivots.data());
          for (index_t i = 0; i < m; ++i) y[(k + i) * step] = i;
          for (index_t i = 0; i < k; ++i) {
            y[i * step] = pivots[i];
            std::swap(y[(k + i) * step], y[(k + pivots[i]) * step]);
          }
          y[(k + m) * step] = info;
        },
        out, a);
  }
};

/// The order of m rows after exchanges: [.., m] for pivots [.., k], which count from 1 as in LAPACK. Attribute {m}.
inline constexpr struct rows_of_pivots_t {
  static constexpr auto op_name = "rows_of_pivots";
  template <value P, class M>
  constexpr auto operator()(P const& pivots, M const& rows) const {
    return bind<rows_of_pivots_t>(detail::as_fact(rows))(to(pivots, ints<static_cast<index_t>(dtype::int64)>{}));
  }
} rows_of_pivots{};

template <>
struct rules<rows_of_pivots_t> {
  static constexpr auto schema = "(Tensor self, int rows) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  using only = std::int64_t;
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at[0].n != 1) refuse::argument_is_invalid("rows_of_pivots", "the number of rows is one number");
    return at;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    if (in[0].type != dtype::int64 || in[0].sizes.n < 1)
      refuse::argument_is_invalid("rows_of_pivots", "pivots are vectors of int64");
    dims s = in[0].sizes;
    s[s.n - 1] = at[0][0];
    return {dtype::int64, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> pivots) {
    index_t const m = at[0][0], k = pivots.sizes[pivots.sizes.n - 1], step = out.strides[out.sizes.n - 1];
    index_t const from = pivots.strides[pivots.sizes.n - 1];
    detail::for_each_of_batch(
        detail::batch_of<1>(out),
        [&](R* y, T const* p) {
          for (index_t i = 0; i < m; ++i) y[i * step] = i;
          for (index_t i = 0; i < k; ++i) {
            auto const other = static_cast<index_t>(p[i * from]) - 1;
            if (i >= m || other < 0 || other >= m) refuse::index_out_of_range("pivots", other + 1, m);
            std::swap(y[i * step], y[other * step]);
          }
        },
        out, pivots);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

/// Factors l and u of a square a = l u without row exchanges, packed into one matrix: u, and below its diagonal l
/// without its ones.
inline constexpr struct lu_in_place_t {
  static constexpr auto op_name = "lu_in_place";
  template <value A>
  constexpr auto operator()(A const& a) const {
    return bind<lu_in_place_t>()(a);
  }
} lu_in_place{};

namespace detail {
template <value X>
constexpr auto solved_from_right(X const& x, value auto const& a, auto upper, auto unit) { // x t^-1
  return transpose(solve_triangular(transpose(a), transpose(x), on_dims(other_triangle, as_fact(upper)), unit));
}
} // namespace detail

template <>
struct rules<lu_in_place_t> : detail::of_matrices<lu_in_place_t, 1> {
  static constexpr saved_values saved{{saved_values::result}};
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr meta shape(attributes const&, meta const* in, int) { return {in[0].type, require_square(in[0])}; }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> a) {
    kernel::matrices::matrix lu(detail::matrix_rows(a), detail::matrix_rows(a));
    detail::for_each_of_batch(
        detail::batch_of<2>(out),
        [&](R* y, T const* p) {
          detail::read_matrix(a, p, lu);
          kernel::matrices::lu(lu, nullptr);
          detail::write_matrix(out, y, lu);
        },
        out, a);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, value auto const& y, value auto const&) {
    auto const inner = detail::solved_from_right(solve_triangular(y, d, ints<0>{}, ints<1>{}), y, ints<1>{}, ints<0>{});
    auto const below = tril(inner, -1);
    auto const l = add(tril(y, -1), detail::identity_like(y));
    return add(detail::times(l, below), detail::times(triu(inner), triu(y)));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const& y, value auto const&) {
    auto const l = add(tril(y, -1), detail::identity_like(y));
    auto const inner =
        add(tril(detail::transposed_times(l, tril(g, -1)), -1), triu(detail::times_transposed(triu(g), triu(y))));
    auto const left = solve_triangular(transpose(y), inner, ints<1>{}, ints<1>{});
    return detail::solved_from_right(left, transpose(y), ints<0>{}, ints<0>{});
  }
};

namespace detail {
/// Reorders the rows of matrices.
template <value A, value P>
constexpr auto rows_in_order(A const& a, P const& rows) {
  auto const wide = on_dims([](dims const& s) { return s; }, shape_of(a));
  return gather(a, ints<-2>{}, expand(unsqueeze(rows, axis<-1>), wide));
}
inline constexpr auto smaller_side = [](dims const& s) {
  if (s.n < 2) refuse::argument_is_invalid("lu", "matrices are expected");
  extent const m = s[s.n - 2], n = s[s.n - 1];
  return dims{m < n ? m : n};
};
template <int FromEnd>
inline constexpr auto rest_of_side = [](dims const& s, dims const& k) { return dims{s[s.n - FromEnd] - k[0]}; };
/// Returns both factors of matrices of any shape whose rows are already in order.
template <value A>
constexpr auto factors_in_order(A const& a) {
  auto const k = on_dims(smaller_side, shape_of(a));
  auto const below = on_dims(rest_of_side<2>, shape_of(a), k), beside = on_dims(rest_of_side<1>, shape_of(a), k);
  auto const square = narrow(narrow(a, ints<-2>{}, ints<0>{}, k), ints<-1>{}, ints<0>{}, k);
  auto const lu = lu_in_place(square);
  auto const tall = [&](auto const& v) { // further rows of l
    auto const rest = solved_from_right(narrow(v, ints<-2>{}, k, below), lu, ints<1>{}, ints<0>{});
    return cat(std::make_tuple(lu, rest), ints<-2>{});
  };
  auto const wide = [&](auto const& v) { // further columns of u
    auto const rest = solve_triangular(lu, narrow(v, ints<-1>{}, k, beside), ints<0>{}, ints<1>{});
    return cat(std::make_tuple(lu, rest), ints<-1>{});
  };
  auto const same = [&](auto const&) { return identity(lu); };
  auto const not_tall = [&](auto const& v) { return choose(same_fact(beside, ints<0>{}), same, wide, v); };
  return choose(same_fact(below, ints<0>{}), not_tall, tall, a);
}
} // namespace detail

/// The result of `lu_factor`: both factors packed into one matrix, the pivots (int32, counted from 1), the order of
/// rows (int64), and for each matrix the number of the first zero pivot, counted from 1, or 0 (int32).
template <class L, class P, class R, class I>
struct lu_factors {
  L packed;
  P pivots;
  R rows;
  I info;
};
/// Factorizes p a = l u for a [.., m, n] (`torch.linalg.lu_factor`). Rows are exchanged by partial pivoting.
inline constexpr struct lu_factor_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const order = lu_order(a);
    auto const k = on_dims(detail::smaller_side, shape_of(a));
    auto const m = on_dims([](dims const& s) { return dims{s[s.n - 2]}; }, shape_of(a));
    auto const last = on_dims([](dims const& x, dims const& y) { return dims{x[0] + y[0]}; }, k, m);
    auto const rows = narrow(order, ints<-1>{}, k, m);
    constexpr ints<static_cast<index_t>(dtype::int32)> narrow_type{};
    auto const pivots = to(add(narrow(order, ints<-1>{}, ints<0>{}, k), 1), narrow_type);
    auto const info = to(squeeze(narrow(order, ints<-1>{}, last, ints<1>{}), axis<-1>), narrow_type);
    auto const packed = detail::factors_in_order(detail::rows_in_order(a, rows));
    return lu_factors<std::remove_cvref_t<decltype(packed)>, std::remove_cvref_t<decltype(pivots)>,
                      std::remove_cvref_t<decltype(rows)>, std::remove_cvref_t<decltype(info)>>{packed, pivots, rows,
                                                                                                info};
  }
} lu_factor{};

namespace detail {
/// Returns the permutation matrix p of a = p l u for an order of rows.
template <value R, class T>
constexpr auto matrix_of_rows(R const& rows, T const& type) {
  auto const square = on_dims(
      [](dims const& s) {
        dims r = s;
        if (s.n < 1) refuse::argument_is_invalid("lu", "the order of rows is a vector for each matrix");
        return r.push_back(s[s.n - 1]);
      },
      shape_of(rows));
  auto const n = on_dims([](dims const& s) { return dims{s[s.n - 1]}; }, shape_of(rows));
  auto const column = on_dims([](dims const& s) { return dims{s[0], 1}; }, n);
  return expand(to(eq(unsqueeze(rows, axis<-2>), reshape(counted(n, rows), column)), type), square);
}
template <value X>
constexpr auto lower_factor(X const& packed) {
  auto const k = on_dims(smaller_side, shape_of(packed));
  auto const l = narrow(packed, ints<-1>{}, ints<0>{}, k);
  auto const rows = on_dims([](dims const& s) { return dims{s[s.n - 2]}; }, shape_of(l));
  auto const column = reshape(counted(rows, l), on_dims([](dims const& s) { return dims{s[0], 1}; }, rows));
  return add(tril(l, -1), to(eq(column, counted(k, l)), type_fact(l)));
}
template <value X>
constexpr auto upper_factor(X const& packed) {
  return triu(narrow(packed, ints<-2>{}, ints<0>{}, on_dims(smaller_side, shape_of(packed))));
}
} // namespace detail

/// Returns p, l and u of a = p l u as a tuple, from the packed factors and the order of rows (`torch.lu_unpack`).
inline constexpr struct lu_unpack_t {
  template <value X, value R>
  constexpr auto operator()(X const& packed, R const& rows) const {
    return std::make_tuple(detail::matrix_of_rows(rows, type_fact(packed)), detail::lower_factor(packed),
                           detail::upper_factor(packed));
  }
} lu_unpack{};
/// Solves a x = b from the packed factors and the order of rows (`torch.lu_solve`). Batches must be equal.
inline constexpr struct lu_solve_t : composite_operator<lu_solve_t> {
  static constexpr auto op_name = "lu_solve";
  template <value X, value R, value B>
  static constexpr auto body(X const& packed, R const& rows, B const& b) {
    auto const in_order = detail::rows_in_order(b, rows);
    return solve_triangular(packed, solve_triangular(packed, in_order, ints<0>{}, ints<1>{}), ints<1>{});
  }
} lu_solve{};

/// The sign of the determinant and the logarithm of its absolute value, as a pair (`torch.linalg.slogdet`).
inline constexpr struct slogdet_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const f = lu_factor(a);
    auto const d = detail::diagonal_of_matrices(f.packed);
    auto const k = on_dims([](dims const& s) { return dims{s[s.n - 1]}; }, shape_of(f.pivots));
    auto const moved =
        to(ne(sub(f.pivots, 1), detail::counted(k, f.pivots)), ints<static_cast<index_t>(dtype::int64)>{});
    auto const negative = to(lt(d, 0), ints<static_cast<index_t>(dtype::int64)>{});
    auto const turns = sum(add(moved, negative), axis<-1>);
    auto const odd = eq(remainder(turns, 2), 1);
    auto const singular = gt(f.info, 0);
    auto const one = to(ne(f.info, -1), type_fact(a));
    auto const sign = where(singular, mul(one, 0), where(odd, neg(one), one));
    return std::pair(sign, sum(log(abs(d)), axis<-1>));
  }
} slogdet{};
/// The logarithm of the determinant (`torch.logdet`): minus infinity for singular matrices, NaN where the determinant
/// is negative.
inline constexpr struct logdet_t {
  template <value A>
  constexpr auto operator()(A const& a) const {
    auto const [sign, size] = slogdet(a);
    return where(lt(sign, 0), std::numeric_limits<double>::quiet_NaN(), size);
  }
} logdet{};

} // namespace varve
