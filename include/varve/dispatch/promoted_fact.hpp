// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/operator.hpp>

namespace varve::detail {

/// True if a value is a plain number, seen through transforms or not.
template <class V>
constexpr bool is_plain_number_type() {
  if constexpr (is_seen<V>)
    return is_plain_number_type<std::remove_cvref_t<decltype(std::declval<V const&>().value)>>();
  else return number<V>;
}
template <class V>
inline constexpr bool is_plain_number = is_plain_number_type<V>();
/// Returns what dtype promotion needs from a value: {dtype, class}, as `dtype_sum` takes them.
template <value V>
constexpr auto promoted_fact(V const& v) {
  if constexpr (is_plain_number<V>) return on_dims([](dims const& t) { return dims{t[0], 0}; }, type_fact(v));
  else if constexpr (is_ints<std::remove_cvref_t<decltype(type_fact(v))>>)
    return on_dims([](dims const& t, dims const& s) { return dims{t[0], s.n ? 2 : 1}; }, type_fact(v), shape_of(v));
  else return dims{static_cast<index_t>(dtype_of(v)), promotion_class(meta_of(v))};
}

} // namespace varve::detail
