// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/slice.hpp>

#include <array>
#include <vector>

/// @file
/// Operators that return several views. While gradients are recorded, such a view of a tensor cannot be written into.
namespace varve {

namespace detail {
template <class V>
constexpr V one_of_several(V const& v) {
  if constexpr (std::is_same_v<V, tensor>)
    if (v.base().defined() && v.origin() == view_origin::usual && this_thread_state.grad_mode)
      v.set_origin(view_origin::many);
  return v;
}
/// True if the sizes of a value are part of its type, so that parts of different shapes have different types.
template <class X, class... Fact>
inline constexpr bool parts_are_types =
    is_ints<std::remove_cvref_t<decltype(shape_of(std::declval<X const&>()))>> && (is_ints<Fact> && ...);
/// The range of part k, [k * size, (k + 1) * size), along an axis; the last part may be smaller.
inline constexpr auto part_range = [](dims const& axis, dims const& k, dims const& size, dims const& sizes) {
  extent const n = sizes[wrap_axis(axis[0], sizes.n)], from = k[0] * size[0], to = from + size[0];
  return dims{from, to < n ? to : n};
};
inline constexpr auto part_count = [](dims const& axis, dims const& size, dims const& sizes) {
  if (size[0] < 1) refuse::argument_is_invalid("split", "the size of a part must be positive");
  if (sizes.n == 0) refuse::argument_is_invalid("split", "a rank-0 value has no axis");
  index_t const n = sizes[wrap_axis(axis[0], sizes.n)];
  return dims{n == 0 ? extent(1) : (n + size[0] - 1) / size[0]};
};
inline constexpr auto chunk_extent = [](dims const& axis, dims const& n, dims const& sizes) {
  if (n[0] < 1) refuse::argument_is_invalid("chunk", "the number of parts must be positive");
  if (sizes.n == 0) refuse::argument_is_invalid("chunk", "a rank-0 value has no axis");
  extent const all = sizes[wrap_axis(axis[0], sizes.n)];
  return dims{all == 0 ? extent(1) : (all + n[0] - 1) / n[0]};
};
inline constexpr auto extent_of = [](dims const& axis, dims const& sizes) {
  if (sizes.n == 0) refuse::argument_is_invalid("unbind", "a rank-0 value has no axis");
  return dims{sizes[wrap_axis(axis[0], sizes.n)]};
};
} // namespace detail

/// Splits an axis into its single indices and removes it (`torch.unbind`). Returns as many views as the axis is long:
/// in a `std::array` for static values, otherwise in a `std::vector`.
inline constexpr struct unbind_t {
  template <value X, class A = ints<0>>
  constexpr auto operator()(X const& x, A const& axis = {}) const {
    using fact_t = decltype(detail::as_fact(axis));
    auto const n = on_dims(detail::extent_of, detail::as_fact(axis), shape_of(x));
    if constexpr (detail::parts_are_types<X, fact_t>) {
      constexpr auto count = static_cast<std::size_t>(decltype(n)::to_dims()[0]);
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return std::array{select(x, axis, ints<static_cast<index_t>(K)>{})...};
      }(std::make_index_sequence<count>{});
    } else {
      std::vector<std::remove_cvref_t<decltype(select(x, axis, 0))>> r;
      for (index_t k = 0; k < to_dims(n)[0]; ++k) r.push_back(detail::one_of_several(select(x, axis, k)));
      return r;
    }
  }
} unbind{};

/// Splits an axis into parts of `size` elements; the last part has the rest (`torch.split`). Returns views: in a tuple
/// for static values, otherwise in a `std::vector`. For static values size and axis are types:
/// `split(x, axis<2>, axis<0>)`.
inline constexpr struct split_t {
  template <value X, class S, class A = ints<0>>
  constexpr auto operator()(X const& x, S const& size, A const& axis = {}) const {
    auto const a = detail::as_fact(axis);
    auto const s = detail::as_fact(size);
    auto const n = on_dims(detail::part_count, a, s, shape_of(x));
    if constexpr (detail::parts_are_types<X, decltype(a), decltype(s)>) {
      constexpr auto count = static_cast<std::size_t>(decltype(n)::to_dims()[0]);
      auto const part = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
        return slice(x, axis, on_dims(detail::part_range, a, ints<static_cast<index_t>(K)>{}, s, shape_of(x)));
      };
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return std::make_tuple(part(std::integral_constant<std::size_t, K>{})...);
      }(std::make_index_sequence<count>{});
    } else {
      std::vector<std::remove_cvref_t<decltype(slice(x, axis, 0, 1))>> r;
      for (index_t k = 0; k < to_dims(n)[0]; ++k) {
        dims const range = detail::part_range(to_dims(a), dims{k}, to_dims(s), to_dims(shape_of(x)));
        r.push_back(detail::one_of_several(slice(x, axis, range[0], range[1])));
      }
      return r;
    }
  }
} split{};

/// Splits an axis into at most `n` parts of equal size, except the last: `split` by the rounded-up quotient
/// (`torch.chunk`).
inline constexpr struct chunk_t {
  template <value X, class N, class A = ints<0>>
  constexpr auto operator()(X const& x, N const& n, A const& axis = {}) const {
    return split(x, on_dims(detail::chunk_extent, detail::as_fact(axis), detail::as_fact(n), shape_of(x)), axis);
  }
} chunk{};

} // namespace varve
