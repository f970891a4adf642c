// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/compare.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/where.hpp>

namespace varve {

namespace detail {
/// Where element [..., i0, i1, ...] lies in the row of all elements of `x`, of which `axis` is the axis of the first
/// index that is left; -1 if an index but the first is out of range, which `gather` does not see.
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
/// An index of the first axis that indices are of, counted from the front.
template <value X, class I>
constexpr auto index_from_front(X const& x, int axis, I const& i) {
  return where(lt(i, 0), add(i, index_t(to_dims(shape_of(x))[axis])), i);
}
} // namespace detail

/// `index(x, i, j, ...)`: the element `x[i, j, ...]`, for as many indices as x has dimensions. The indices are int64
/// values that broadcast, whose shape is that of the result, or plain numbers; negative ones count from the end. Under
/// `vmap` they are what a function of single elements has, as the functions of `flex_attention`. Repeated elements add
/// up in the gradient. Errors: an index that is out of range (`index_error`), another count of them (`value_error`).
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
/// A position that the compiler knows, as an index of static values: `x[index<2>]`, `x.at(index<0>, range<1, 5>)`.
/// (A function, since `index` is the name of one.)
template <index_t K>
constexpr ints<K> index() {
  return {};
}

} // namespace varve
