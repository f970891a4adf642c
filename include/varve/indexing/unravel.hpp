// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/unbind.hpp>
#include <varve/special/rounding.hpp>

#include <tuple>
#include <vector>

namespace varve {

namespace detail {
/// Returns the size and the row-major stride of an axis of a shape.
inline constexpr auto size_and_step = [](dims const& shape, dims const& axis) {
  for (extent e : shape)
    if (e < 0) refuse::argument_is_invalid("unravel_index", "sizes must not be negative");
  int const k = static_cast<int>(axis[0].number());
  return dims{shape[k], contiguous_strides(shape)[k]};
};
} // namespace detail

/// Coordinates of the elements of an array with a given shape, from their row-major indices (`torch.unravel_index`).
/// Takes integers and returns one int64 value per axis: in a tuple for static values, else in a `std::vector`.
inline constexpr struct unravel_index_t {
  template <value X, class S>
  constexpr auto operator()(X const& places, S const& shape) const {
    if (category(dtype_of(places)) != 1) refuse::dtype_is_not_supported("unravel_index", name(dtype_of(places)));
    auto const s = detail::as_fact(shape);
    auto const at = to(places, ints<static_cast<index_t>(dtype::int64)>{});
    auto const coordinate = [&](auto const& axis) {
      dims const d = to_dims(on_dims(detail::size_and_step, s, axis));
      return remainder(floor_divide(at, index_t(d[1])), index_t(d[0]));
    };
    if constexpr (detail::parts_are_types<X, std::remove_cvref_t<decltype(s)>>) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return std::make_tuple(coordinate(ints<static_cast<index_t>(K)>{})...);
      }(std::make_index_sequence<std::size_t(std::remove_cvref_t<decltype(s)>::to_dims().n)>{});
    } else {
      std::vector<std::remove_cvref_t<decltype(coordinate(dims{0}))>> r;
      for (index_t k = 0; k < to_dims(s).n; ++k) r.push_back(coordinate(dims{k}));
      return r;
    }
  }
} unravel_index{};

} // namespace varve
