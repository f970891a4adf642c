// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/permute.hpp>

/// @file
/// Products of vectors and matrices beyond `matmul`. Functions named `add...` return beta times a value plus alpha
/// times a product; the value broadcasts. If beta is 0 the value is ignored, even if it is NaN.
namespace varve {

namespace detail {
inline constexpr auto require_rank = [](char const* op, dims const& s, int rank) {
  if (s.n == rank) return;
  refuse::shapes_do_not_match(op, s, s);
};
/// Returns a factor converted to the category of the dtype: for integers it is truncated.
template <number A>
constexpr double factor(A const& a, dtype t) {
  double const v = static_cast<double>(a);
  return category(t) == 0 ? v != 0 : category(t) == 1 ? static_cast<double>(static_cast<index_t>(v)) : v;
}
template <value X, number A>
constexpr auto times_factor(X const& x, A const& a) {
  double const f = factor(a, dtype_of(x));
  auto const of_truth = [&](auto const& v) { return mul(v, f != 0); };
  auto const of_number = [&](auto const& v) {
    return choose(
        is_floating_fact(v), [&](auto const& u) { return mul(u, f); },
        [&](auto const& u) { return mul(u, static_cast<index_t>(f)); }, v);
  };
  return choose(same_fact(type_fact(x), ints<static_cast<index_t>(dtype::bool_)>{}), of_truth, of_number, x);
}
template <value X, value Y, number B, number A>
constexpr auto beta_plus_alpha(char const* op, X const& x, Y const& product, B const& beta, A const& alpha) {
  if (dtype_of(x) != dtype_of(product)) refuse::dtype_is_not_supported(op, name(dtype_of(x)));
  auto const fits = [](dims const& s, dims const& y) {
    if (!is_expandable(s, y)) refuse::shapes_do_not_match("add of a product", s, y);
    return dims{};
  };
  (void)on_dims(fits, shape_of(x), shape_of(product));
  auto const kept = factor(beta, dtype_of(x)) == 0 ? where(ne(x, x), 0, mul(x, 0)) : times_factor(x, beta);
  return add(kept, times_factor(product, alpha));
}
} // namespace detail

/// The outer product of two vectors (`torch.outer`).
inline constexpr struct outer_t : composite_operator<outer_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "outer";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const column = [](dims const& s) {
      detail::require_rank(op_name, s, 1);
      return dims{s[0], 1};
    };
    auto const row = [](dims const& s) {
      detail::require_rank(op_name, s, 1);
      return s;
    };
    return mul(reshape(a, on_dims(column, shape_of(a))), reshape(b, on_dims(row, shape_of(b))));
  }
} outer{};
/// Matrix times vector (`torch.mv`).
inline constexpr struct mv_t : composite_operator<mv_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "mv";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const ranks = [](dims const& s, dims const& t) {
      if (s.n != 2 || t.n != 1) refuse::shapes_do_not_match(op_name, s, t);
      return dims{};
    };
    (void)on_dims(ranks, shape_of(a), shape_of(b));
    return matmul(a, b);
  }
} mv{};
/// Matrix products of two batches of matrices (`torch.bmm`).
inline constexpr struct bmm_t : composite_operator<bmm_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "bmm";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const ranks = [](dims const& s, dims const& t) {
      if (s.n != 3 || t.n != 3 || s[0] != t[0]) refuse::shapes_do_not_match(op_name, s, t);
      return dims{};
    };
    (void)on_dims(ranks, shape_of(a), shape_of(b));
    return mm(a, b);
  }
} bmm{};
/// Sums of products along the last axes of both operands (`torch.inner`).
inline constexpr struct inner_t : composite_operator<inner_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "inner";
  template <value A, value B>
  static constexpr auto body(A const& a, B const& b) {
    auto const rows = [](dims const& s) {
      extent const last = s.n ? s[s.n - 1] : extent(1);
      extent n = 1;
      for (int k = 0; k + 1 < s.n; ++k) n *= s[k];
      return dims{n, last};
    };
    auto const shape = [](dims const& s, dims const& t) {
      if (s.n && t.n && s[s.n - 1] != t[t.n - 1]) refuse::shapes_do_not_match(op_name, s, t);
      if (s.n == 0 || t.n == 0) return s.n ? s : t;
      dims r = s.sub(0, s.n - 1);
      for (int k = 0; k + 1 < t.n; ++k) r.push_back(t[k]);
      return r;
    };
    auto const out = on_dims(shape, shape_of(a), shape_of(b));
    auto const numbers =
        on_dims([](dims const& s, dims const& t) { return dims{s.n == 0 || t.n == 0}; }, shape_of(a), shape_of(b));
    auto const sums = [&](auto const& u, auto const& v) {
      return reshape(mm(reshape(u, on_dims(rows, shape_of(u))), reshape(v, on_dims(rows, shape_of(v))), ints<0, 1>{}),
                     out);
    };
    return choose(same_fact(numbers, ints<1>{}), [](auto const& u, auto const& v) { return mul(u, v); }, sums, a, b);
  }
} inner{};
/// Sums of products along one axis of both operands, which broadcast (`torch.linalg.vecdot`).
inline constexpr struct vecdot_t : composite_operator<vecdot_t> {
  static constexpr auto op_name = "linalg_vecdot";
  template <value A, value B, class D = ints<-1>>
  static constexpr auto body(A const& a, B const& b, D const& axis = {}) {
    return sum(mul(a, b), axis);
  }
} vecdot{};

/// beta x + alpha (a b) for matrices a and b.
inline constexpr struct addmm_t : composite_operator<addmm_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "addmm";
  template <value X, value A, value B, number Be = int, number Al = int>
  static constexpr auto body(X const& x, A const& a, B const& b, Be const& beta = 1, Al const& alpha = 1) {
    auto const ranks = [](dims const& s, dims const& t) {
      if (s.n != 2 || t.n != 2) refuse::shapes_do_not_match(op_name, s, t);
      return dims{};
    };
    (void)on_dims(ranks, shape_of(a), shape_of(b));
    return detail::beta_plus_alpha(op_name, x, mm(a, b), beta, alpha);
  }
} addmm{};
/// beta x + alpha (a b) for a matrix a and a vector b.
inline constexpr struct addmv_t : composite_operator<addmv_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "addmv";
  template <value X, value A, value B, number Be = int, number Al = int>
  static constexpr auto body(X const& x, A const& a, B const& b, Be const& beta = 1, Al const& alpha = 1) {
    return detail::beta_plus_alpha(op_name, x, mv(a, b), beta, alpha);
  }
} addmv{};
/// beta x + alpha times the outer product of two vectors.
inline constexpr struct addr_t : composite_operator<addr_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "addr";
  template <value X, value A, value B, number Be = int, number Al = int>
  static constexpr auto body(X const& x, A const& a, B const& b, Be const& beta = 1, Al const& alpha = 1) {
    return detail::beta_plus_alpha(op_name, x, outer(a, b), beta, alpha);
  }
} addr{};
/// beta x + alpha (a b) for each pair of matrices of two batches.
inline constexpr struct baddbmm_t : composite_operator<baddbmm_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "baddbmm";
  template <value X, value A, value B, number Be = int, number Al = int>
  static constexpr auto body(X const& x, A const& a, B const& b, Be const& beta = 1, Al const& alpha = 1) {
    return detail::beta_plus_alpha(op_name, x, bmm(a, b), beta, alpha);
  }
} baddbmm{};
/// beta x + alpha times the sum of the matrix products of two batches.
inline constexpr struct addbmm_t : composite_operator<addbmm_t> {
  static constexpr bool takes_complex = true;
  static constexpr auto op_name = "addbmm";
  template <value X, value A, value B, number Be = int, number Al = int>
  static constexpr auto body(X const& x, A const& a, B const& b, Be const& beta = 1, Al const& alpha = 1) {
    return detail::beta_plus_alpha(op_name, x, sum(bmm(a, b), axis<0>), beta, alpha);
  }
} addbmm{};

} // namespace varve
