// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/create.hpp>
#include <varve/op/factory.hpp>
#include <varve/op/slice.hpp>
#include <varve/op/sum.hpp>
#include <varve/op/where.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/vmap.hpp>

namespace varve {

namespace detail {
/// Returns 0, 1, ..., n - 1 as int64, as the kind of value that `like` is.
template <class L, class N>
constexpr auto indices(L const& like, N const& n) {
  if constexpr (is_ints<N> && !dynamic_value<L> && !traced_value<L>) return arange<std::int64_t, N::to_dims()[0]>();
  else return backend<typename decltype(base_tag<L>())::type>::arange(base_value(like), to_dims(n));
}
/// Maps `f` along those of the four indices whose entry is 0, and along the `Before` arguments that precede them. The
/// `After` arguments that follow the indices are not mapped.
template <int Before, int After, auto Batch, auto Head, auto Query, auto Key, class F>
constexpr auto along(F const& f) {
  return [&]<std::size_t... B, std::size_t... A>(std::index_sequence<B...>, std::index_sequence<A...>) {
    return vmap(f, in_dims<(static_cast<void>(B), 0)..., Batch, Head, Query, Key, (static_cast<void>(A), none)...>);
  }(std::make_index_sequence<Before>{}, std::make_index_sequence<After>{});
}
/// Applies `f(x..., b, h, q, k)`, a function of single elements, at all positions given by four index vectors. `x` have
/// the sizes of these positions. Declared captures of `f` follow the indices.
template <class F, class B, class H, class Q, class K, class... X>
constexpr auto at_positions(F const& f, B const& b, H const& h, Q const& q, K const& k, X const&... x) {
  constexpr int before = sizeof...(X);
  constexpr int after = std::tuple_size_v<decltype(captures_of(f))>;
  auto const over_keys = along<before, after, none, none, none, 0>(without_captures(f));
  auto const over_queries = along<before, after, none, none, 0, none>(over_keys);
  auto const over_heads = along<before, after, none, 0, none, none>(over_queries);
  auto const over_all = along<before, after, 0, none, none, none>(over_heads);
  return std::apply([&](auto const&... c) { return over_all(x..., b, h, q, k, c...); }, captures_of(f));
}
/// Applies `f(x..., b, h, q, k)` at every position of `sizes`, which are {batch, heads, queries, keys}.
template <class F, class L, class S, class... X>
constexpr auto at_all_positions(F const& f, L const& like, S const& sizes, X const&... x) {
  auto const count = [&](auto at) { return indices(like, on_dims(at, sizes)); };
  return at_positions(f, count([](dims const& s) { return dims{s[0]}; }),
                      count([](dims const& s) { return dims{s[1]}; }), count([](dims const& s) { return dims{s[2]}; }),
                      count([](dims const& s) { return dims{s[3]}; }), x...);
}
inline constexpr auto check_block_mask = [](dims const& sizes, dims const& block) {
  bool positive = sizes.n == 4 && block.n == 2;
  for (int k = 0; positive && k < 4; ++k) positive = sizes[k] > 0;
  if (!positive || block[0] < 1 || block[1] < 1)
    refuse::argument_is_invalid("create_block_mask", "batch, heads, lengths and block sizes must be positive numbers");
  return dims{1};
};
/// Rounds a length up to whole blocks. The functions below give the sizes of a mask padded to whole blocks, of queries
/// or of both queries and keys, and the sizes split into blocks.
inline constexpr auto up_to = [](extent n, extent block) { return (n + block - 1) / block * block; };
inline constexpr auto whole_query_blocks = [](dims const& s, dims const& block) {
  return dims{s[0], s[1], up_to(s[2], block[0]), s[3]};
};
inline constexpr auto whole_blocks = [](dims const& s, dims const& block) {
  return dims{s[0], s[1], up_to(s[2], block[0]), up_to(s[3], block[1])};
};
inline constexpr auto as_blocks = [](dims const& s, dims const& block) {
  return dims{s[0], s[1], s[2] / block[0], block[0], s[3] / block[1], block[1]};
};
template <class S, class M>
constexpr auto mask_at(M const& mask_mod, S const& sizes) {
  if constexpr (is_ints<S>) return at_all_positions(mask_mod, std::int64_t(0), sizes);
  else return at_all_positions(mask_mod, tensor(), sizes);
}
} // namespace detail

/// The mask of `flex_attention`: a function that says which key each query may attend to, for `sizes` {batch, heads,
/// queries, keys}. A batch or head size of 1 stands for all. Member functions that report blocks evaluate the function.
/// Made by `create_block_mask`.
template <class F, class S, class B>
struct block_mask {
  [[no_unique_address]] F mask_mod;
  [[no_unique_address]] S sizes;
  [[no_unique_address]] B block_size;

  /// Returns a truth value for every block, in shape {batch, heads, blocks of queries, blocks of keys}: true if the
  /// block allows at least one position. Computes a truth value for every element.
  constexpr auto to_dense() const {
    auto const all = on_dims([](dims const& s) { return s; }, sizes);
    auto const by_query = on_dims(detail::whole_query_blocks, all, block_size);
    auto const whole = on_dims(detail::whole_blocks, all, block_size);
    auto const rows = on_dims([](dims const& s) { return dims{2, 0, s[2], 1}; }, all);
    auto const columns = on_dims([](dims const& s) { return dims{3, 0, s[3], 1}; }, all);
    auto const allowed =
        to(broadcast_to(detail::mask_at(mask_mod, sizes), all), ints<static_cast<index_t>(dtype::int64)>{});
    auto const filled = slice_backward(slice_backward(allowed, by_query, rows), whole, columns);
    return gt(sum(reshape(filled, on_dims(detail::as_blocks, whole, block_size)), ints<3, 5>{}), 0);
  }
  /// Returns the number of key blocks for each block of queries, as int64 in shape {batch, heads, blocks of queries}.
  constexpr auto kv_num_blocks() const { return sum(to_dense(), ints<3>{}); }
  /// Returns the percentage of the matrix that lies in blocks without an allowed position. It can be negative if blocks
  /// extend beyond the matrix.
  constexpr double sparsity() const {
    auto const count = sum(kv_num_blocks());
    double blocks = 0;
    if constexpr (is_ints<S>) blocks = static_cast<double>(count);
    else blocks = static_cast<double>(count.template item<std::int64_t>());
    dims const s = to_dims(sizes), b = to_dims(block_size);
    return 100 * (1 - blocks * static_cast<double>(index_t(b[0] * b[1])) / static_cast<double>(index_t(numel(s))));
  }
};

/// Returns the truth values `mask_mod(b, h, q, kv)` at all positions of `sizes` {B, H, Q_LEN, KV_LEN}: a tensor, or an
/// array if `sizes` is `shape<...>` (`create_mask`).
template <class F, class S>
constexpr auto create_mask(F const& mask_mod, S const& sizes) {
  return detail::mask_at(mask_mod, detail::as_fact(sizes));
}

/// Creates the mask of `flex_attention`. For tensors call `create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, BLOCK_SIZE
/// = 128)`. For static values call `create_block_mask(mask_mod, shape<B, H, Q_LEN, KV_LEN>, shape<queries, keys of a
/// block>)`. The query at position `q` of batch element `b` and head `h` may attend to the key at `kv` if `mask_mod(b,
/// h, q, kv)` is true. The arguments are int64 values of rank 0, and the function is mapped over them, so it cannot
/// branch on them. `none` for B or H means 1, which stands for all. A mask also serves shorter sequences. Throws
/// `value_error` if a size is below 1.
template <class F, fact S, fact B = ints<128, 128>>
constexpr auto create_block_mask(F const& mask_mod, S const& sizes, B const& block_size = {}) {
  (void)on_dims(detail::check_block_mask, sizes, block_size);
  return block_mask<F, S, B>{mask_mod, sizes, block_size};
}
template <class F, class B, class H>
  requires(!fact<B>)
constexpr auto create_block_mask(F const& mask_mod, B const& batch, H const& heads, extent q_len, extent kv_len,
                                 index_t block_size = 128) {
  auto const given = [](auto const& n) {
    if constexpr (is_none<std::remove_cvref_t<decltype(n)>>) return extent(1);
    else return extent(n);
  };
  return create_block_mask(mask_mod, dims{given(batch), given(heads), q_len, kv_len}, dims{block_size, block_size});
}

/// A mask that allows every position.
inline constexpr auto noop_mask = [](auto const& b, auto const&, auto const&, auto const&) { return eq(b, b); };

namespace detail {
/// Combines masks: true where all of the functions are true if `All`, else where any is true. The declared captures of
/// each function are passed as one tuple.
template <bool All, class... F>
struct joined_masks {
  [[no_unique_address]] std::tuple<F...> masks;
  template <class B, class H, class Q, class K, class... C>
  constexpr auto operator()(B const& b, H const& h, Q const& q, K const& kv, C const&... captures) const {
    return joined<0>(std::tuple<C const&...>(captures...), b, h, q, kv);
  }

private:
  template <std::size_t K, class C, class... I>
  constexpr auto joined(C const& captures, I const&... at) const {
    auto const here =
        std::apply([&](auto const&... c) { return std::get<K>(masks)(at..., c...); }, std::get<K>(captures));
    if constexpr (K + 1 == sizeof...(F)) return here;
    else if constexpr (All) return where(here, joined<K + 1>(captures, at...), false);
    else return where(here, true, joined<K + 1>(captures, at...));
  }
};
template <bool All, class... F>
constexpr auto join_masks(F const&... f) {
  using join = joined_masks<All, std::remove_cvref_t<decltype(without_captures(f))>...>;
  return closure(join{{without_captures(f)...}}, captures_of(f)...);
}
} // namespace detail

/// Returns a mask of the positions that all of the functions allow.
template <class... F>
  requires(sizeof...(F) > 0)
constexpr auto and_masks(F const&... f) {
  return detail::join_masks<true>(f...);
}
/// Returns a mask of the positions that at least one of the functions allows.
template <class... F>
  requires(sizeof...(F) > 0)
constexpr auto or_masks(F const&... f) {
  return detail::join_masks<false>(f...);
}

} // namespace varve
