// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/block_mask.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/softmax.hpp>
#include <varve/op/sqrt.hpp>

#include <limits>

/// @file
/// `flex_attention` as a formula in operators. It works on every kind of value and computes the whole matrix of scores.
namespace varve {

namespace detail {
constexpr void check_attention_shapes(dims const& q, dims const& k, dims const& v, bool enable_gqa) {
  if (q.n != 4 || k.n != 4 || v.n != 4)
    refuse::argument_is_invalid("flex_attention", "query, key and value must be {batch, heads, length, features}");
  if (q[3] != k[3]) refuse::shapes_do_not_match("flex_attention (features of query and key)", q, k);
  if (k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    refuse::shapes_do_not_match("flex_attention (batch, heads or length of key and value)", k, v);
  if (enable_gqa && k[1] != 0 ? q[1] % k[1] != 0 : q[1] != k[1])
    refuse::shapes_do_not_match(enable_gqa ? "flex_attention (heads of the query must be a multiple of the key's)"
                                           : "flex_attention (heads; enable_gqa allows fewer of key and value)",
                                q, k);
  if (q[0] != k[0] && k[0] != 1) refuse::shapes_do_not_match("flex_attention (batch)", q, k);
}
template <class Q, class K, class V>
constexpr void check_attention_dtypes(Q const& q, K const& k, V const& v) {
  if (!is_floating(dtype_of(q))) refuse::dtype_is_not_supported("flex_attention", name(dtype_of(q)));
  if (dtype_of(k) != dtype_of(q)) refuse::dtypes_differ("flex_attention", name(dtype_of(q)), name(dtype_of(k)));
  if (dtype_of(v) != dtype_of(q)) refuse::dtypes_differ("flex_attention", name(dtype_of(q)), name(dtype_of(v)));
}
constexpr void check_attention_mask(dims const& mask, dims const& q, dims const& k) {
  if ((mask[0] != 1 && mask[0] != q[0]) || (mask[1] != 1 && mask[1] != q[1]))
    refuse::shapes_do_not_match("flex_attention (batch or heads of block_mask)", mask, q);
  if (mask[2] < q[2] || mask[3] < k[2])
    refuse::argument_is_invalid("flex_attention", "block_mask is for shorter sequences; make one for these");
}
/// Refuses captures of `mask_mod` that require a gradient: no derivative passes through a truth value.
template <class C>
constexpr void check_mask_captures(C const& captures) {
  tree_for_each(
      [](auto const& c) {
        if constexpr (dynamic_value<decltype(c)>)
          if (c.has_history())
            refuse::argument_is_invalid("flex_attention", "what mask_mod captures may not require a gradient");
      },
      captures);
}

/// Returns the sizes {batch, heads of key, rows, features}, in which the query heads that share a key head follow one
/// another.
inline constexpr auto rows_of_key_heads = [](dims const& q, dims const& k) {
  return dims{q[0], k[1], k[1] == 0 ? q[2] : q[1] / k[1] * q[2], q[3]};
};
inline constexpr auto beside_queries = [](dims const& x, dims const& q) { return dims{q[0], x[1], x[2], x[3]}; };
inline constexpr auto score_sizes = [](dims const& q, dims const& k) { return dims{q[0], q[1], q[2], k[2]}; };
inline constexpr auto score_rows = [](dims const& q, dims const& k) {
  return dims{q[0], k[1], k[1] == 0 ? q[2] : q[1] / k[1] * q[2], k[2]};
};
inline constexpr auto attention_sizes = [](dims const& q, dims const& v) { return dims{q[0], q[1], q[2], v[3]}; };

/// Returns the exponentials of each row of scores, their sum, and the value subtracted before. A row that is -inf
/// throughout becomes a row of zeros.
template <value X>
constexpr auto exponentials(X const& x) {
  auto const shifted = [](auto const& v) {
    auto const m = safe_maximum(v, ints<-1>{});
    auto const e = exp(sub(v, m));
    return std::tuple(e, varve::sum(e, ints<-1>{}, keepdim), m);
  };
  auto const of_nothing = [](auto const& v) {
    auto const e = exp(v);
    return std::tuple(e, varve::sum(e, ints<-1>{}, keepdim), varve::sum(detach(v), ints<-1>{}, keepdim));
  };
  return unless_empty(x, shifted, of_nothing);
}
/// Returns the result in the stride order of the query, from the greatest stride to the smallest.
template <class T>
T in_order_of(T const& like, T const& y) {
  if (like.is_wrapped() || like.is_contiguous() || like.strides().n != y.dim()) return y;
  dims order, back{0, 0, 0, 0};
  for (int k = 0; k < like.dim(); ++k) {
    int at = order.n;
    while (at > 0 && like.strides()[static_cast<int>(order[at - 1])] < like.strides()[k]) --at;
    order.insert(at, k);
  }
  for (int k = 0; k < order.n; ++k) back[static_cast<int>(order[k])] = k;
  return permute(contiguous(permute(y, order)), back);
}
/// A replacement for a function of positions that is applied to all scores at once, as `over(scores)`.
template <class F>
concept function_of_scores = requires(F const& f, tensor const& x) { f.over(x); };

struct attention_formula {
  template <class Q, class K, class S>
  static constexpr auto raw_scores(Q const& q, K const& k, S const& scale) {
    auto const sq = shape_of(q);
    auto const sk = shape_of(k);
    auto const keys = broadcast_to(k, on_dims(detail::beside_queries, sk, sq));
    auto const s = mm(detail::reshape_to(q, on_dims(detail::rows_of_key_heads, sq, sk)), keys, ints<0, 1>{});
    auto const all = detail::reshape_to(s, on_dims(detail::score_sizes, sq, sk));
    if constexpr (is_none<S>) return mul(all, 1 / sqrt(static_cast<double>(index_t(to_dims(sq)[3]))));
    else return mul(all, scale);
  }
  template <class X, class F>
  static constexpr auto modified(X const& scores, F const& score_mod) {
    if constexpr (is_none<F>) {
      return scores;
    } else if constexpr (function_of_scores<F>) {
      return score_mod.over(scores);
    } else if constexpr (dynamic_value<X>) {
      auto const version = scores.version();
      auto const y = detail::at_all_positions(score_mod, scores, shape_of(scores), scores);
      if (scores.version() != version)
        refuse::argument_is_invalid("flex_attention", "score_mod writes into its score; give a new one");
      return y;
    } else {
      return detail::at_all_positions(score_mod, scores, shape_of(scores), scores);
    }
  }
  template <class X, class M>
  static constexpr auto masked(X const& scores, M const& block_mask) {
    if constexpr (is_none<M>) {
      return scores;
    } else if constexpr (function_of_scores<M>) {
      return where(block_mask.over(scores), scores, -std::numeric_limits<double>::infinity());
    } else {
      detail::check_mask_captures(detail::captures_of(block_mask.mask_mod));
      auto const allowed = detail::at_all_positions(block_mask.mask_mod, scores, shape_of(scores));
      return where(allowed, scores, -std::numeric_limits<double>::infinity());
    }
  }
  /// Returns the result, the sums of exponentials, and the values subtracted before.
  template <class Q, class K, class V, class F, class M, class S>
  static constexpr auto parts(Q const& q, K const& k, V const& v, F const& score_mod, M const& block_mask,
                              S const& scale, bool enable_gqa) {
    detail::check_attention_dtypes(q, k, v);
    auto const sq = shape_of(q);
    detail::check_attention_shapes(to_dims(sq), to_dims(shape_of(k)), to_dims(shape_of(v)), enable_gqa);
    if constexpr (!is_none<M> && !function_of_scores<M>)
      detail::check_attention_mask(to_dims(block_mask.sizes), to_dims(sq), to_dims(shape_of(k)));
    auto const [e, s, m] = detail::exponentials(masked(modified(raw_scores(q, k, scale), score_mod), block_mask));
    auto const weights = to(mul(e, reciprocal(where(eq(s, 0), 1, s))), type_fact(q));
    auto const rows = detail::reshape_to(weights, on_dims(detail::score_rows, sq, shape_of(k)));
    auto const values = broadcast_to(v, on_dims(detail::beside_queries, shape_of(v), sq));
    auto const y = detail::reshape_to(mm(rows, values), on_dims(detail::attention_sizes, sq, shape_of(v)));
    if constexpr (std::is_same_v<Q, tensor>) return std::tuple(detail::in_order_of(q, tensor(y)), s, m);
    else return std::tuple(y, s, m);
  }
  template <class P>
  static constexpr auto lse(P const& parts) {
    auto const& s = std::get<1>(parts);
    auto const nothing = eq(s, 0);
    auto const all =
        where(nothing, -std::numeric_limits<double>::infinity(), add(log(where(nothing, 1, s)), std::get<2>(parts)));
    return detail::reshape_to(all, on_dims([](dims const& d) { return dims{d[0], d[1], d[2]}; }, shape_of(all)));
  }
};
} // namespace detail

} // namespace varve
