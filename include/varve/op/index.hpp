// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/where.hpp>

namespace varve {

namespace detail {
/// Returns the position of element [..., i0, i1, ...] in the flattened `x`. `at` is the position along the axes before
/// `axis`, to which the next index belongs. Returns -1 if an index but the first is out of range, because `gather`
/// would not detect that.
template <value X, class At>
constexpr auto place_in_row(X const&, int, At const& at) {
  return at;
}
template <value X, class At, class I, class... Rest>
constexpr auto place_in_row(X const& x, int axis, At const& at, I const& i, Rest const&... rest) {
  index_t const n = to_dims(shape_of(x))[axis];
  auto const from_front = where(lt(i, 0), add(i, n), i);
  auto const place = add(mul(at, n), from_front);
  auto const below_end = where(ge(from_front, n), -1, place);
  return place_in_row(x, axis + 1, where(lt(from_front, 0), -1, below_end), rest...);
}
/// Returns an index of the given axis, counted from the front.
template <value X, class I>
constexpr auto index_from_front(X const& x, int axis, I const& i) {
  return where(lt(i, 0), add(i, index_t(to_dims(shape_of(x))[axis])), i);
}
} // namespace detail

/// `index(x, i, j, ...)`: the element `x[i, j, ...]`, with one index for each dimension of x. The indices are plain
/// numbers or int64 values; they broadcast, and the result has their shape. Negative indices count from the end. Under
/// `vmap` a function of single elements can use it, as the functions of `flex_attention` do. In the gradient, repeated
/// elements add up. Errors: an index out of range (`index_error`), a wrong number of indices (`value_error`).
inline constexpr struct element_at_t : composite_operator<element_at_t> {
  static constexpr bool keeps_elements = true;
  static constexpr auto op_name = "index";
  template <value X, value I, value... J>
  static constexpr auto body(X const& x, I const& i, J const&... j) {
    if (rank_of(x) != 1 + static_cast<int>(sizeof...(J)))
      refuse::argument_is_invalid("index", "there must be one index for each dimension");
    auto const row = reshape(x, on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(x)));
    auto const place = detail::place_in_row(x, 1, detail::index_from_front(x, 0, i), j...);
    auto const at = reshape(place, on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(place)));
    return detail::reshape_to(gather(row, ints<0>{}, to(at, ints<static_cast<index_t>(dtype::int64)>{})),
                              shape_of(place));
  }
} element_at{};
template <value X, value I, value... J>
constexpr auto index(X const& x, I const& i, J const&... j) {
  return element_at(x, i, j...);
}
/// A compile-time index for static values: `x[index<2>]`, `x.at(index<0>, range<1, 5>)`. (It is a function because the
/// name `index` already denotes one.)
template <index_t K>
constexpr ints<K> index() {
  return {};
}

} // namespace varve
