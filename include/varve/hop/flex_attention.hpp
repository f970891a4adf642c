// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/attention_tiles.hpp>

namespace varve {

/// A tag that makes `flex_attention` return the logarithms of the sums as well.
inline constexpr struct return_lse_t {
} return_lse{};

/// The attention operator: `flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse)`
/// computes softmax(score) value. Here score = score_mod(query key^T scale, b, h, q, kv), element by element, and -inf
/// where `block_mask` is false. The shapes are query {B, Hq, L, E}, key {B, H, S, E} and value {B, H, S, Ev}; the
/// result is {B, Hq, L, Ev}. Arguments from the fourth on may be omitted or `none`; the default of `scale` is 1 /
/// sqrt(E). With `enable_gqa`, Hq is a multiple of H, and each key head serves Hq / H query heads. A key and value of
/// batch size 1 serve every batch element of the query. A row that is masked completely is 0. With `return_lse` the
/// result is a pair. Its second element holds the logarithms of the sums of exponentials, {B, Hq, L}, which are -inf
/// for rows masked completely.
///
/// score_mod and mask_mod are functions of single elements, mapped over int64 indices. They may not branch on the
/// indices, and they read captured values by `index(bias, h, q, kv)`. Captures of score_mod are differentiated like
/// other arguments. Under static transforms they must be declared, as in `closure(score_mod, bias)`, and are passed
/// after the indices. score_mod may not write into its score.
///
/// This is a composite: interpreters, traces and `fuse` see the operators that it calls, and it computes the whole
/// matrix of scores. When only eager autograd observes tensors, it works in tiles instead (`attention_tiles.hpp`).
///
/// Errors: `shape_error` if shapes do not match; `dtype_error` for integers or different dtypes; `value_error` if the
/// mask is for shorter sequences, or if declared captures of mask_mod require a gradient.
inline constexpr struct flex_attention_t : composite_operator<flex_attention_t> {
  static constexpr auto op_name = "flex_attention";
  using composite_operator<flex_attention_t>::operator();
  template <class Q, class K, class V, class F, class M, class S, class G>
  constexpr auto operator()(Q const& query, K const& key, V const& value, F const& score_mod, M const& block_mask,
                            S const& scale, G enable_gqa, return_lse_t) const {
    if constexpr (detail::memory_ref<Q> || detail::memory_ref<K> || detail::memory_ref<V>) {
      return (*this)(detail::viewed(query), detail::viewed(key), detail::viewed(value), score_mod, block_mask, scale,
                     enable_gqa, return_lse);
    } else if constexpr (detail::meets_trace<Q, K, V>) {
      return (*this)(detail::beside_trace(query, query, key, value), detail::beside_trace(key, query, key, value),
                     detail::beside_trace(value, query, key, value), score_mod, block_mask, scale, enable_gqa,
                     return_lse);
    } else {
      using namespace detail;
      if constexpr (is_one_tensor<Q> && is_one_tensor<K> && is_one_tensor<V>)
        if (auto y = attention_by_tiles(query, key, value, score_mod, block_mask, scale, enable_gqa); y.first.defined())
          return y;
      auto const y = attention_formula::parts(query, key, value, score_mod, block_mask, scale, enable_gqa);
      return std::pair(std::get<0>(y), attention_formula::lse(y));
    }
  }
  template <value Q, value K, value V, class F = none_t, class M = none_t, class S = none_t>
  static constexpr auto body(Q const& query, K const& key, V const& value, F const& score_mod = {},
                             M const& block_mask = {}, S const& scale = {}, bool enable_gqa = false) {
    using namespace detail;
    if constexpr (is_one_tensor<Q> && is_one_tensor<K> && is_one_tensor<V>)
      if (auto y = attention_by_tiles(query, key, value, score_mod, block_mask, scale, enable_gqa).first; y.defined())
        return y;
    return std::get<0>(attention_formula::parts(query, key, value, score_mod, block_mask, scale, enable_gqa));
  }
} flex_attention{};

} // namespace varve
