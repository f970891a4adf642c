// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/traits.hpp>

namespace varve {

struct at_t;
template <class T, index_t... D>
struct array;

namespace detail {
/// The type in which a part that is no view is returned: const, so that nobody can assign to it.
template <class V>
struct unassignable {
  using type = V const;
};
template <number V>
struct unassignable<V> {
  using type = V;
};
template <class At, class X, class... I>
using indexed_part = typename unassignable<decltype(std::declval<dependent<At, X>>()(
    std::declval<X const&>(), std::declval<I const&>()...))>::type;
template <class T, index_t... D>
struct row_of_array {
  using type = T;
};
template <class T, index_t First, index_t... Rest>
  requires(sizeof...(Rest) > 0)
struct row_of_array<T, First, Rest...> {
  using type = array<T, Rest...> const;
};
template <class Y>
constexpr void refuse_assigned_part() {
  static_assert(never<Y>,
                "varve: a part of a static value, or of one seen through a static transform, cannot be "
                "assigned to; build the value of its parts, by stack, cat or where; outside of transforms one "
                "element of an array is a(1, 2) = x");
}
} // namespace detail

/// A row-major array of fixed shape: an aggregate usable in constant expressions, such as `array<float, 2, 3>{1, 2, 3,
/// 4, 5, 6}`. `array<double>` has rank 0 and converts to and from `double`. Elements are not initialized unless braces
/// are given.
template <class T, index_t... D>
struct array {
  using value_type = T;
  static constexpr index_t count = (D * ... * 1);
  T data[count > 0 ? count : 1];

  static constexpr index_t size() { return count; }
  /// Returns an element of a vector without a bounds check, as `std::array` does. (Tensors and values seen through
  /// transforms check the index.) `data[k]` is the k-th of all elements in row-major order.
  constexpr T& operator[](index_t i)
    requires(sizeof...(D) < 2)
  {
    return data[i];
  }
  constexpr T const& operator[](index_t i) const
    requires(sizeof...(D) < 2)
  {
    return data[i];
  }
  /// Returns a copy of a row. To write one element of a matrix, use `a(1, 2) = x`.
  constexpr auto operator[](index_t i) const -> typename detail::row_of_array<T, D...>::type
    requires(sizeof...(D) > 1)
  {
    using R = typename detail::row_of_array<T, D...>::type;
    std::remove_const_t<R> r;
    for (index_t k = 0; k < R::count; ++k) r.data[k] = data[i * R::count + k];
    return r;
  }
  /// Returns a copy of the part that indices select (`at`): `a[index<1>]`, `a[range<1, 3>]`, `a.at(none, ellipsis, i)`.
  template <class I>
    requires(!std::is_convertible_v<I const&, index_t>)
  constexpr auto operator[](I const& i) const -> detail::indexed_part<at_t, array, I> {
    return dependent<at_t, I>{}(*this, i);
  }
  template <class... I>
  constexpr auto at(I const&... i) const -> detail::indexed_part<at_t, array, I...> {
    return dependent<at_t, I...>{}(*this, i...);
  }
  template <class Y>
  constexpr void operator=(Y const&) const&& {
    detail::refuse_assigned_part<Y>();
  }
  /// Returns an element by one index per dimension.
  template <class... I>
    requires(sizeof...(I) == sizeof...(D))
  constexpr T const& operator()(I... i) const {
    return data[flat(i...)];
  }
  template <class... I>
    requires(sizeof...(I) == sizeof...(D))
  constexpr T& operator()(I... i) {
    return data[flat(i...)];
  }
  constexpr T* begin() { return data; }
  constexpr T* end() { return data + count; }
  constexpr T const* begin() const { return data; }
  constexpr T const* end() const { return data + count; }
  constexpr operator T() const
    requires(sizeof...(D) == 0)
  {
    return data[0];
  }

private:
  template <class... I>
  static constexpr index_t flat(I... i) {
    index_t r = 0;
    ((r = r * D + static_cast<index_t>(i)), ...);
    return r;
  }
};

template <class T, index_t... D>
struct traits<array<T, D...>> {
  using base = array<T, D...>;
  static constexpr int level = 0;
  static constexpr ints<D...> shape(array<T, D...> const&) { return {}; }
  static constexpr auto type(array<T, D...> const&) { return ints<static_cast<index_t>(dtype_of_type<T>())>{}; }
};

/// True if a type is an `array`.
template <class V>
inline constexpr bool is_array = false;
template <class T, index_t... D>
inline constexpr bool is_array<array<T, D...>> = true;

/// A function that makes a value is used as that value: `arange<double, 6>`.
template <class V>
  requires(!std::is_void_v<V>)
struct traits<V()> {
  using base = V;
  static constexpr int level = 0;
  static constexpr auto shape(V (&)()) { return decltype(traits<V>::shape(std::declval<V const&>())){}; }
  static constexpr auto type(V (&)()) { return decltype(traits<V>::type(std::declval<V const&>())){}; }
};

namespace detail {
template <class T, class S>
struct static_value_of;
template <class T, index_t... D>
struct static_value_of<T, ints<D...>> {
  using type = array<T, D...>;
};
template <class T>
struct static_value_of<T, ints<>> {
  using type = T;
};
} // namespace detail

/// The static value of an element type and a shape: an `array`, or the plain number when the rank is 0.
template <class T, class Shape>
using static_value = typename detail::static_value_of<T, Shape>::type;

/// Returns a pointer to the first element of a static value.
template <class T, index_t... D>
constexpr T* data_of(array<T, D...>& a) {
  return a.data;
}
template <class T, index_t... D>
constexpr T const* data_of(array<T, D...> const& a) {
  return a.data;
}
template <number T>
constexpr T* data_of(T& a) {
  return &a;
}
template <number T>
constexpr T const* data_of(T const& a) {
  return &a;
}

namespace detail {
template <class V>
struct element {
  using type = V;
};
template <class T, index_t... D>
struct element<array<T, D...>> {
  using type = T;
};
} // namespace detail
/// The element type of a static value.
template <class V>
using element_of = typename detail::element<V>::type;

} // namespace varve
