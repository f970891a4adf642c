// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/index_select.hpp>
#include <varve/composite/logical.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/nonzero.hpp>
#include <varve/op/pow.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sqrt.hpp>

/// @file
/// Vector norms, and distances based on them.
namespace varve {

namespace detail {
/// Returns the square root of a sum of squares along axes. The derivative is 0 where the root is 0.
template <value X, class A, class K>
constexpr auto euclidean(X const& x, A const& axes, K const& keep) {
  return root(sum(square(x), axes, keep));
}
} // namespace detail

/// The p-norm along axes, by default all (`torch.linalg.vector_norm`). For p = 0 it is the number of nonzero elements,
/// for infinity the greatest absolute value, for minus infinity the least. Integers are refused.
inline constexpr struct vector_norm_t : composite_operator<vector_norm_t> {
  static constexpr auto op_name = "linalg_vector_norm";
  template <value X, class A = ints<>, class K = ints<0>>
  static constexpr auto body(X const& x, double p = 2, A const& axes = {}, K const& keep = {}) {
    detail::needs_floating<vector_norm_t>(x);
    if (p == 2) return detail::euclidean(x, axes, keep);
    if (p == 0) return to(count_nonzero(x, axes, keep), type_fact(x));
    if (p == 1) return sum(abs(x), axes, keep);
    if (p == std::numeric_limits<double>::infinity()) return amax(abs(x), axes, keep);
    if (p == -std::numeric_limits<double>::infinity()) return amin(abs(x), axes, keep);
    auto const size = abs(x);
    auto const zero = eq(size, 0);
    auto const powers =
        where(zero, p < 0 ? std::numeric_limits<double>::infinity() : 0.0, pow(where(zero, 1, size), p));
    auto const s = sum(powers, axes, keep);
    auto const none_there = eq(s, 0);
    return where(none_there, mul(s, 0), pow(where(none_there, 1, s), 1 / p));
  }
} vector_norm{};
/// `norm(x)`, `norm(x, p, axes)`: another name of `vector_norm`, as in PyTorch.
inline constexpr vector_norm_t norm{};

/// The p-norm of the difference of two values (`torch.dist`).
inline constexpr struct dist_t : composite_operator<dist_t> {
  static constexpr auto op_name = "dist";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y, double p = 2) {
    return vector_norm(sub(x, y), p);
  }
} dist{};

/// Scales slices of an axis down to a p-norm of at most `maxnorm` (`torch.renorm`).
inline constexpr struct renorm_t : composite_operator<renorm_t> {
  static constexpr auto op_name = "renorm";
  template <value X, class A>
  static constexpr auto body(X const& x, double p, A const& axis, double maxnorm) {
    if (!(p > 0)) refuse::argument_is_invalid(op_name, "the norm must be positive");
    if (!(maxnorm >= 0)) refuse::argument_is_invalid(op_name, "the greatest norm must not be negative");
    auto const others = on_dims(
        [](dims const& s, dims const& a) {
          if (s.n < 2) refuse::argument_is_invalid(op_name, "at least two dimensions are expected");
          dims r;
          for (int k = 0; k < s.n; ++k)
            if (k != wrap_axis(a[0], s.n)) r.push_back(k);
          return r;
        },
        shape_of(x), detail::as_fact(axis));
    auto const n = vector_norm(x, p, others, keepdim);
    return mul(x, where(gt(n, maxnorm), div(maxnorm, add(n, 1e-7)), 1));
  }
} renorm{};

/// The p-norm along the last axis of x - y + eps (`torch.nn.functional.pairwise_distance`).
inline constexpr struct pairwise_distance_t : composite_operator<pairwise_distance_t> {
  static constexpr auto op_name = "pairwise_distance";
  template <value X, value Y, class K = ints<0>>
  static constexpr auto body(X const& x, Y const& y, double p = 2, double eps = 1e-6, K const& keep = {}) {
    return vector_norm(add(sub(x, y), eps), p, axis<-1>, keep);
  }
} pairwise_distance{};

namespace detail {
/// Returns the p-norms along the last axis, which may have no elements.
template <value D>
constexpr auto norms_of_rows(D const& d, double p) {
  auto const nothing = on_dims([](dims const& s) { return dims{s[s.n - 1] == 0}; }, shape_of(d));
  return choose(
      same_fact(nothing, ints<1>{}), [](auto const& v) { return sum(v, axis<-1>); },
      [&](auto const& v) { return vector_norm(v, p, axis<-1>); }, d);
}
} // namespace detail
/// The p-norms of the differences of all rows of x and all rows of y (`torch.cdist`): [.., n, d] and [.., m, d] yield
/// [.., n, m].
inline constexpr struct cdist_t : composite_operator<cdist_t> {
  static constexpr auto op_name = "cdist";
  template <value X, value Y>
  static constexpr auto body(X const& x, Y const& y, double p = 2) {
    auto const rows = [](dims const& s) {
      if (s.n < 2) refuse::argument_is_invalid(op_name, "matrices are expected");
      dims r = s;
      return r.insert(s.n - 1, 1);
    };
    auto const columns = [](dims const& s) {
      if (s.n < 2) refuse::argument_is_invalid(op_name, "matrices are expected");
      dims r = s;
      return r.insert(s.n - 2, 1);
    };
    auto const d = sub(reshape(x, on_dims(rows, shape_of(x))), reshape(y, on_dims(columns, shape_of(y))));
    return detail::norms_of_rows(d, p);
  }
} cdist{};

/// The p-norms of the differences of each row of a matrix [n, d] and each later row (`torch.nn.functional.pdist`). The
/// result is [n (n - 1) / 2], starting with the pairs of the first row.
inline constexpr struct pdist_t : composite_operator<pdist_t> {
  static constexpr auto op_name = "pdist";
  template <value X>
  static constexpr auto body(X const& x, double p = 2) {
    if (!(p >= 0)) refuse::argument_is_invalid(op_name, "p must not be negative");
    auto const rows = [](dims const& s) {
      if (s.n != 2) refuse::argument_is_invalid(op_name, "a matrix is expected, whose rows are the points");
      return dims{s[0]};
    };
    auto const n = on_dims(rows, shape_of(x));
    auto const number = detail::counted(n, x);
    auto const column = reshape(number, on_dims([](dims const& m) { return dims{m[0], 1}; }, n));
    auto const pairs =
        nonzero_static(lt(column, number), on_dims([](dims const& m) { return dims{m[0] * (m[0] - 1) / 2}; }, n));
    auto const rows_at = [&](auto const& k) { return index_select(x, axis<0>, select(pairs, axis<1>, k)); };
    return detail::norms_of_rows(sub(rows_at(ints<0>{}), rows_at(ints<1>{})), p);
  }
} pdist{};

/// The cosine of the angle between vectors along an axis; the operands broadcast
/// (`torch.nn.functional.cosine_similarity`). Vectors shorter than `eps` are treated as having length `eps`.
inline constexpr struct cosine_similarity_t : composite_operator<cosine_similarity_t> {
  static constexpr auto op_name = "cosine_similarity";
  template <value X, value Y, class A = ints<1>>
  static constexpr auto body(X const& x, Y const& y, A const& axis = {}, double eps = 1e-8) {
    auto const type = detail::common_type(x, y);
    if (!is_floating(static_cast<dtype>(to_dims(type)[0].number())))
      refuse::dtype_is_not_supported(op_name, name(dtype_of(x)));
    auto const shape = on_dims([](dims const& s, dims const& t) { return broadcast(s, t); }, shape_of(x), shape_of(y));
    auto const a = detail::as_fact(axis);
    auto const direction = [&](auto const& v) {
      auto const length = detail::euclidean(v, a, keepdim);
      auto const least = detach(where(lt(length, eps), sub(eps, length), 0)); // the derivative is that of the length
      return div(v, add(length, least));
    };
    return sum(mul(direction(expand(to(x, type), shape)), direction(expand(to(y, type), shape))), a);
  }
} cosine_similarity{};

} // namespace varve
