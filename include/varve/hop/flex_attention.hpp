// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/attention_tiles.hpp>

namespace varve {

/// Asks `flex_attention` for the logarithms of the sums as well.
inline constexpr struct return_lse_t {
} return_lse{};

/// `flex_attention(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse)`: softmax(score) value,
/// where score = score_mod(query key^T scale, b, h, q, kv), element by element, and -inf where `block_mask` forbids to
/// look. Query {B, Hq, L, E}, key {B, H, S, E}, value {B, H, S, Ev}; the result is {B, Hq, L, Ev}. From the fourth on
/// the arguments may be left out or be `none`: `scale` is 1 / sqrt(E) then. With `enable_gqa` Hq is a multiple of H,
/// and each head of the key serves Hq / H of the query; key and value of batch 1 serve every batch of the query. A row
/// that may look at nothing is 0. With `return_lse` the result is a pair: the logarithms of the sums of exponentials,
/// {B, Hq, L}, are second, -inf for rows of nothing.
///
/// score_mod and mask_mod are functions of single elements, mapped over the indices, int64 (OH-19): they may not branch
/// on them, and read captured values by `index(bias, h, q, kv)`. Captures are differentiated as all others are; under
/// static transforms they are declared, `closure(score_mod, bias)`, and arrive behind the indices. score_mod may not
/// write into its score. A composite: interpreters, traces and `fuse` see what it calls, and it costs the matrix of
/// scores. Where only eager autograd watches, tensors go through in tiles (`attention_tiles.hpp`).
/// Errors: shapes that do not fit (`shape_error`), integers or two dtypes (`dtype_error`), a mask for shorter
/// sequences, declared captures of mask_mod that require a gradient (`value_error`).
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
