// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/array.hpp>
#include <varve/value/math.hpp>

namespace varve {

struct at_t;
template <class I, class V, class Extra = none_t>
struct seen;

/// True if a type is that of a value seen through a static transform.
template <class V>
inline constexpr bool is_seen = false;
template <class I, class V, class E>
inline constexpr bool is_seen<seen<I, V, E>> = true;

namespace detail {
/// True if a number can become a constant of this interpreter: the value must have rank 0. Modes that watch calls are
/// excluded, because they must see the call that makes a constant.
template <class I, class V>
consteval bool can_be_constant() {
  if constexpr (requires { I::watches; }) return false;
  else if constexpr (is_array<V>) return decltype(I::logical_shape(shape_of(std::declval<V const&>())))::size() == 0;
  else return number<V> || std::is_constructible_v<V, double>;
}
template <class V>
constexpr V constant_of(auto n) {
  if constexpr (is_array<V>) {
    V r{};
    for (auto& e : r) e = static_cast<typename V::value_type>(n);
    return r;
  } else return static_cast<V>(n);
}
} // namespace detail

/// A static value `V` seen through interpreter `I`: a dual number, a batched, tracked or logged value. `V` may be any
/// value, so transforms nest. `I` carries the level, the tag of the transform and its state (batch size, mode, tape).
/// `Extra` is what the interpreter stores for each value (a tangent, a cotangent slot).
template <class I, class V, class Extra>
struct seen {
  using interpreter = I;
  V value;
  [[no_unique_address]] I in;
  [[no_unique_address]] Extra extra;

  constexpr seen() = default;
  constexpr seen(V const& v, I const& i, Extra const& e) : value(v), in(i), extra(e) {}
  /// Makes a constant from a number, so that generic code can write `T s = 0` and `T(2.0)` as with Eigen and Ceres.
  template <number N>
    requires(detail::can_be_constant<I, V>())
  constexpr seen(N n) : value(detail::constant_of<V>(n)), in{}, extra{} {}

  /// Returns the part that indices select (`at`): `x[i]`, `x[index<2>]`, `x.at(index<0>, ellipsis)`. `x[i]` is an
  /// element of a vector and a row of a matrix.
  template <class K>
  constexpr auto operator[](K const& i) const -> detail::indexed_part<at_t, seen, K> {
    return dependent<at_t, K>{}(*this, i);
  }
  template <class... K>
  constexpr auto at(K const&... i) const -> detail::indexed_part<at_t, seen, K...> {
    return dependent<at_t, K...>{}(*this, i...);
  }
  template <class Y>
  constexpr void operator=(Y const&) const&& {
    detail::refuse_assigned_part<Y>();
  }

  /// Fails to compile with a message that says what to write instead of `double y = x` and `std::sin(x)`.
  template <std::same_as<double> T>
  constexpr operator T() const {
    return detail::refuse_double<dependent<seen, T>>();
  }
  /// Fails to compile with a message that says what to write instead of `x.item()`.
  template <class T = double>
  constexpr seen item() const {
    return detail::refuse_item<T>(), *this;
  }
  /// Fails to compile: only a plain value can decide a branch of C++.
  constexpr explicit operator bool() const {
    static_assert(
        never<V>,
        "varve: a batched value has no single truth value; use `where`, `cond` or `while_loop` instead of `if`");
    return false;
  }
};

template <class I, class V, class E>
struct traits<seen<I, V, E>> {
  using base = base_of<V>;
  static constexpr int level = I::level;
  static constexpr auto shape(seen<I, V, E> const& s) { return I::logical_shape(shape_of(s.value)); }
  static constexpr auto type(seen<I, V, E> const& s) { return type_fact(s.value); }
};

/// True if `V` is seen through the interpreter of level `N`.
template <class V, int N>
inline constexpr bool at_level = is_seen<V> && level_of<V> == N;

} // namespace varve
