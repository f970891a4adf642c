// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/promoted_fact.hpp>

#include <limits>

/// @file
/// Comparisons and extrema of integers are exact. A plain number beside a value, and a value of rank 0 beside one with
/// dimensions, do not influence the dtype in which an operator computes. If that dtype cannot represent them, they must
/// not wrap around before they are compared. (Arithmetic wraps.)
namespace varve {

struct to_t;
struct maximum_t;
struct minimum_t;

namespace detail {
/// Returns the least number of an integer dtype; `greatest_of` returns the greatest one.
constexpr std::int64_t least_of(dtype t) {
  return t == dtype::uint8   ? 0
         : t == dtype::int8  ? -128
         : t == dtype::int16 ? -32768
         : t == dtype::int32 ? (std::numeric_limits<std::int32_t>::min)()
                             : (std::numeric_limits<std::int64_t>::min)();
}
constexpr std::int64_t greatest_of(dtype t) {
  return t == dtype::uint8   ? 255
         : t == dtype::int8  ? 127
         : t == dtype::int16 ? 32767
         : t == dtype::int32 ? (std::numeric_limits<std::int32_t>::max)()
                             : (std::numeric_limits<std::int64_t>::max)();
}
/// Returns the greatest finite number of a floating dtype, or of the parts of a complex one.
constexpr double greatest_finite_of(dtype t) {
  switch (part_type(t)) {
  case dtype::float16:
    return 65504;
  case dtype::bfloat16:
    return 0x1.fep127;
  case dtype::float32:
    return static_cast<double>((std::numeric_limits<float>::max)());
  default:
    return (std::numeric_limits<double>::max)();
  }
}
/// True if elements of a dtype can be filled with a number. As in PyTorch, fractions are cut off, every number converts
/// to bool, and negative integers from -255 on wrap around in uint8. Infinity is a floating-point number.
template <number N>
constexpr bool is_element(N v, dtype t) {
  if (t == dtype::bool_ || std::is_same_v<N, bool>) return true;
  auto const d = static_cast<double>(v);
  if (category(t) != 1) {
    double const most = greatest_finite_of(t), infinity = std::numeric_limits<double>::infinity();
    return !(d > most || d < -most) || d == infinity || d == -infinity;
  }
  if constexpr (std::is_floating_point_v<N>) {
    return d >= static_cast<double>(least_of(t)) && d <= static_cast<double>(greatest_of(t)); // false for NaN
  } else {
    if (std::is_unsigned_v<N> && d > 0x1p62) return static_cast<std::uint64_t>(v) <= std::uint64_t(greatest_of(t));
    auto const n = static_cast<std::int64_t>(v);
    return n <= greatest_of(t) && n >= (t == dtype::uint8 ? -255 : least_of(t));
  }
}
/// Refuses a plain number that elements of a dtype cannot represent, because the conversion would change it.
template <class N>
constexpr void require_element(char const* op, [[maybe_unused]] N const& v, [[maybe_unused]] dtype t) {
  if constexpr (number<N>)
    if (!is_element(v, t))
      refuse::argument_is_invalid(op, "the number is beyond the range of the dtype; take a wider one");
}
/// Returns a plain integer as int64. Throws `value_error` if it is too great.
template <class N>
constexpr std::int64_t long_number(char const* op, N n) {
  if constexpr (std::is_unsigned_v<N> && sizeof(N) == 8)
    if (n > static_cast<N>((std::numeric_limits<std::int64_t>::max)()))
      refuse::argument_is_invalid(op, "the number is greater than int64 holds");
  return static_cast<std::int64_t>(n);
}
template <class N>
concept integer = number<N> && std::is_integral_v<N> && !std::is_same_v<N, bool>;
/// True if a number of type `N` may lie outside of the dtype of `V`, which is integer, or if this is known only in a
/// call.
template <class N, class V>
consteval bool may_exceed() {
  if constexpr (!integer<N> || number<V>) {
    return false;
  } else if constexpr (is_ints<decltype(type_fact(std::declval<V const&>()))>) {
    constexpr auto t = static_cast<dtype>(decltype(type_fact(std::declval<V const&>()))::to_dims()[0]);
    return category(t) == 1 && (std::is_unsigned_v<N> ? t != dtype::uint8 || sizeof(N) > 1 : t != dtype_of_type<N>());
  } else return true;
}
template <class V>
constexpr auto as_int64(V const& v) {
  return bind<to_t>(ints<static_cast<index_t>(dtype::int64)>{})(v);
}
/// Returns `v` in a dtype in which its comparison with `o` is exact. This is another dtype if one of the two is a
/// number or has rank 0, and therefore does not influence the common dtype.
template <class V, class O>
constexpr auto exact_beside(V const& v, O const& o) {
  auto const type = on_dims(
      [](dims const& t, dims const& u) {
        auto const own = static_cast<dtype>(t[0]), other = static_cast<dtype>(u[0]);
        bool const apart = t[1] != u[1] && category(own) == 1 && category(other) == 1;
        return dims{static_cast<index_t>(apart ? promote_types(own, other) : own)};
      },
      promoted_fact(v), promoted_fact(o));
  return dependent<to_t, V>{}(v, type);
}
} // namespace detail

/// The base of the comparisons `lt` ... `ne`, which are exact for integers of any dtypes.
template <class Tag>
struct comparing_operator {
  template <value A, value B>
  constexpr auto operator()(A const& a, B const& b) const {
    if constexpr (detail::may_exceed<A, B>()) {
      if (std::int64_t const n = detail::long_number(Tag::op_name, a); exceeds(n, dtype_of(b)))
        return bound<Tag>{}(n, detail::as_int64(b));
      else return beside(n, b);
    } else if constexpr (detail::may_exceed<B, A>()) {
      if (std::int64_t const n = detail::long_number(Tag::op_name, b); exceeds(n, dtype_of(a)))
        return bound<Tag>{}(detail::as_int64(a), n);
      else return beside(a, n);
    } else if constexpr (varve_value<A> && varve_value<B> && !(detail::memory_ref<A> || detail::memory_ref<B>)) {
      if constexpr (std::is_same_v<A, B>)
        if constexpr (!is_ints<decltype(type_fact(a))>)
          if (dtype_of(a) == dtype_of(b)) return bound<Tag>{}(a, b);
      return bound<Tag>{}(detail::exact_beside(a, b), detail::exact_beside(b, a));
    } else {
      return beside(a, b);
    }
  }

private:
  static constexpr bool exceeds(std::int64_t n, dtype t) {
    return category(t) == 1 && (n < detail::least_of(t) || n > detail::greatest_of(t));
  }
  template <class A, class B>
  static constexpr auto beside(A const& a, B const& b) {
    return bound<Tag>{}(detail::front<A, B>(a), detail::front<A, B>(b));
  }
};

namespace detail {
template <class N, class R>
constexpr auto between(N const& n, R const& range) {
  return dependent<minimum_t, N>{}(dependent<maximum_t, N>{}(n, to_dims(range)[0].number()),
                                   to_dims(range)[1].number());
}
/// Returns a bound of `clamp`, or an operand of an extremum, limited to the range of the dtype of `v`: no result lies
/// outside.
template <class N, class V>
constexpr auto within_range_of(char const* op, V const& v, N const& n) {
  if constexpr (may_exceed<N, V>()) {
    std::int64_t const all = long_number(op, n);
    if (dtype const t = dtype_of(v); category(t) == 1)
      return all < least_of(t) ? least_of(t) : all > greatest_of(t) ? greatest_of(t) : all;
    return all;
  } else if constexpr (varve_value<N> && varve_value<V> && !memory_ref<N> && !memory_ref<V>) {
    auto const range = on_dims( // for a number, or rank 0 beside dimensions
        [](dims const& t, dims const& u) {
          auto const own = static_cast<dtype>(t[0]), into = static_cast<dtype>(u[0]);
          bool const exceeds =
              t[1] < u[1] && category(into) == 1 && category(own) == 1 && promote_types(own, into) != into;
          return exceeds ? dims{least_of(into), greatest_of(into)} : dims{};
        },
        promoted_fact(n), promoted_fact(v));
    if constexpr (is_ints<decltype(range)>) {
      if constexpr (decltype(range)::to_dims().n == 0) return n;
      else return between(n, range);
    } else return range.n == 0 ? n : between(n, range);
  } else {
    return n;
  }
}
} // namespace detail

/// The base of `maximum` and `minimum`, which are exact within the dtype of the result: a number beyond its range
/// counts as the end of the range.
template <class Tag>
struct extreme_operator {
  template <value A, value B>
  constexpr auto operator()(A const& a, B const& b) const {
    return beside(detail::within_range_of(Tag::op_name, b, a), detail::within_range_of(Tag::op_name, a, b));
  }

private:
  template <class A, class B>
  static constexpr auto beside(A const& a, B const& b) {
    return bound<Tag>{}(detail::front<A, B>(a), detail::front<A, B>(b));
  }
};

} // namespace varve
