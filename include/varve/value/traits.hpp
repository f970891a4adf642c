// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/compact.hpp>
#include <varve/core/type.hpp>

#include <array>

namespace varve {

/// The properties of a value type. Specialized for scalars, `array`, `proxy`, `tensor` and `seen`. Members: `base` (the
/// type below all interpreters), `level` (0 for values that are not wrapped), and `shape(v)` and `type(v)` as facts.
template <class V>
struct traits {};

template <class V>
  requires std::is_arithmetic_v<V>
struct traits<V> {
  using base = V;
  static constexpr int level = 0;
  static constexpr ints<> shape(V const&) { return {}; }
  static constexpr auto type(V const&) { return ints<static_cast<index_t>(dtype_of_type<V>())>{}; }
};

/// A type that operators take and return.
template <class V>
concept value = requires { traits<std::remove_cvref_t<V>>::level; };

/// A plain C++ number.
template <class V>
concept number = std::is_arithmetic_v<std::remove_cvref_t<V>>;

/// A value of one of varve's own types, so that expressions with it use varve's operators.
template <class V>
concept varve_value = value<V> && !number<V>;

namespace detail {
template <class R>
using range_element = std::remove_cvref_t<decltype(*std::begin(std::declval<R const&>()))>;
template <class R, int Depth = 0>
consteval bool holds_numbers() {
  if constexpr (Depth == max_rank || value<R>) return false;
  else if constexpr (requires(R const& r) { std::begin(r) != std::end(r); }) {
    using E = range_element<R>;
    if constexpr (number<E>) return !std::is_same_v<E, char> && !std::is_same_v<E, wchar_t>;
    else return holds_numbers<E, Depth + 1>();
  } else return false;
}
/// A range of numbers, or a range of such ranges, from which a tensor can be made.
template <class R>
concept range_of_numbers = holds_numbers<R>();
template <class T>
constexpr void refuse_range() {
  static_assert(never<T>, "varve: a range is no value of varve: loop over its elements, or pass an array or a tensor; "
                          "a range of numbers is no value; write tensor(v) for one");
}
} // namespace detail

/// The type of a value below all transforms: a number, an array, a tensor, a proxy.
template <class V>
using base_of = typename traits<std::remove_cvref_t<V>>::base;
/// The level of the outermost static transform that a value is seen through; 0 for plain values.
template <class V>
inline constexpr int level_of = traits<std::remove_cvref_t<V>>::level;

/// Returns the logical shape of a value as a fact: a type for static values, data for `tensor` and `proxy`.
template <value V>
constexpr auto shape_of(V const& v) {
  return traits<V>::shape(v);
}
/// Returns the dtype of a value as a fact with one entry.
template <value V>
constexpr auto type_fact(V const& v) {
  return traits<V>::type(v);
}
/// Returns the dtype of a value.
template <value V>
constexpr dtype dtype_of(V const& v) {
  return static_cast<dtype>(to_dims(traits<V>::type(v))[0]);
}
/// Returns the number of dimensions.
template <value V>
constexpr int rank_of(V const& v) {
  return to_dims(traits<V>::shape(v)).n;
}
/// Return the number of dimensions (`rank`) and of elements (`numel`) of any value, static or dynamic.
template <varve_value V>
constexpr int rank(V const& v) {
  return rank_of(v);
}
template <number V>
constexpr int rank(V const&) {
  return 0;
}
template <varve_value V>
constexpr extent numel(V const& v) {
  return numel(to_dims(traits<V>::shape(v)));
}
template <number V>
constexpr extent numel(V const&) {
  return 1;
}
/// Returns dtype and shape as data.
template <value V>
constexpr meta meta_of(V const& v) {
  return {dtype_of(v), to_dims(shape_of(v)), number<V>};
}

} // namespace varve
