// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/kernel/constant_math.hpp>
#include <varve/kernel/simd.hpp>

#include <cmath>
#include <limits>
#include <type_traits>
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// Arithmetic, rounding, comparison and selection, under the same names for scalars and batches. Integers wrap around,
/// as in PyTorch. A comparison returns `bool` for scalars and 0 or 1 in the lane type for batches. A condition is true
/// where it is not 0.
namespace varve::kernel {

template <class T>
concept floating = std::is_floating_point_v<T>;
template <class T>
concept integral = std::is_integral_v<T>;
template <class T>
concept arithmetic = std::is_arithmetic_v<T>;
/// A floating-point type that has batches.
template <class T>
concept floating_lane = lane<T> && floating<T>;
/// A scalar of any element type, or a batch.
template <class V>
concept numeric = arithmetic<V> || is_batch<V>;

namespace detail {
/// Type whose arithmetic may overflow: unsigned for integers; T itself for floating types and batches, whose
/// instructions wrap.
template <class T>
struct wrapping {
  using type = T;
};
template <class T>
  requires(integral<T> && sizeof(T) >= 4)
struct wrapping<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
using wrapping_t = typename wrapping<T>::type;
} // namespace detail

/// Returns a + b; logical or for `bool`.
template <numeric V>
VARVE_INLINE constexpr V add(V const& a, V const& b) {
  using W = detail::wrapping_t<V>;
  return static_cast<V>(static_cast<W>(a) + static_cast<W>(b));
}
/// Returns a - b.
template <numeric V>
VARVE_INLINE constexpr V sub(V const& a, V const& b) {
  using W = detail::wrapping_t<V>;
  return static_cast<V>(static_cast<W>(a) - static_cast<W>(b));
}
/// Returns a * b; logical and for `bool`.
template <numeric V>
VARVE_INLINE constexpr V mul(V const& a, V const& b) {
  if constexpr (is_batch<V>) {
    return kernel::product<element_t<V>>(a, b);
  } else {
    using W = detail::wrapping_t<V>;
    return static_cast<V>(static_cast<W>(a) * static_cast<W>(b));
  }
}
/// Returns -a.
template <numeric V>
VARVE_INLINE constexpr V neg(V const& a) {
  if constexpr (integral<V>) return kernel::sub<V>(V(0), a);
  else if constexpr (is_batch<V>) return kernel::negate<element_t<V>>(a);
  else return -a;
}
/// Returns |a|; the smallest integer is unchanged, since its negative overflows.
template <arithmetic T>
VARVE_INLINE constexpr T abs(T a) {
  if constexpr (std::is_unsigned_v<T>) return a;
  else if constexpr (integral<T>) return a < 0 ? kernel::neg(a) : a;
  else return constant::negative(static_cast<double>(a)) ? -a : a;
}
template <lane T>
VARVE_INLINE batch<T> abs(batch<T> const& a) {
  return library::abs(a);
}
/// Returns 1, 0 or -1, and 0 for NaN (`torch.sign`).
template <arithmetic T>
VARVE_INLINE constexpr T sign(T a) {
  if constexpr (std::is_unsigned_v<T>) return a > 0;
  else return static_cast<T>((a > 0) - (a < 0));
}
template <lane T>
VARVE_INLINE batch<T> sign(batch<T> const& a) {
  batch<T> const zero(T(0)), one(T(1));
  return kernel::select<T>(a > zero, one, kernel::select<T>(a < zero, zero - one, zero));
}

/// Returns a < b; `lt`, `le`, `gt`, `ge`, `eq` and `ne` return `bool` for scalars and lanes of 0 or 1 for batches.
template <numeric V>
VARVE_INLINE constexpr auto lt(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a < b);
  else return a < b;
}
template <numeric V>
VARVE_INLINE constexpr auto le(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a <= b);
  else return a <= b;
}
template <numeric V>
VARVE_INLINE constexpr auto gt(V const& a, V const& b) {
  return kernel::lt(b, a);
}
template <numeric V>
VARVE_INLINE constexpr auto ge(V const& a, V const& b) {
  return kernel::le(b, a);
}
template <numeric V>
VARVE_INLINE constexpr auto eq(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(a == b);
  else return a == b;
}
template <numeric V>
VARVE_INLINE constexpr auto ne(V const& a, V const& b) {
  if constexpr (is_batch<V>) return kernel::from_mask<element_t<V>>(kernel::differ<element_t<V>>(a, b));
  else return a != b;
}
/// Returns whether a value is NaN; false for integers.
template <numeric V>
VARVE_INLINE constexpr auto isnan(V const& a) {
  return kernel::ne(a, a);
}

/// Returns `a` where `c` is not 0, else `b`. For scalars, `c` may have another type than the values.
template <arithmetic C, arithmetic T>
VARVE_INLINE constexpr T where(C c, T a, T b) {
  return c != C(0) ? a : b;
}
template <lane T>
VARVE_INLINE batch<T> where(batch<T> const& c, batch<T> const& a, batch<T> const& b) {
  return kernel::select<T>(kernel::to_mask(c), a, b);
}
/// Returns the greater value; NaN if either is NaN (`torch.maximum`).
template <numeric V>
VARVE_INLINE constexpr V maximum(V const& a, V const& b) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    V const m = kernel::select<T>(a > b, a, b); // b if either is NaN
    if constexpr (floating<T>) return kernel::select<T>(a == a, m, a);
    else return m;
  } else return a > b || a != a ? a : b;
}
/// Returns the smaller value; NaN if either is NaN (`torch.minimum`).
template <numeric V>
VARVE_INLINE constexpr V minimum(V const& a, V const& b) {
  if constexpr (is_batch<V>) {
    using T = element_t<V>;
    V const m = kernel::select<T>(a < b, a, b);
    if constexpr (floating<T>) return kernel::select<T>(a == a, m, a);
    else return m;
  } else return a < b || a != a ? a : b;
}

/// Returns the greatest integer <= x. All four rounding functions return integers unchanged.
template <arithmetic T>
constexpr T floor(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::floor(x)) : std::floor(x);
}
template <lane T>
VARVE_INLINE batch<T> floor(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::copysign(library::floor(x), x); // SSE2 has no floor instruction, and xsimd loses -0
}
/// Returns the smallest integer >= x.
template <arithmetic T>
constexpr T ceil(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::ceil(x)) : std::ceil(x);
}
template <lane T>
VARVE_INLINE batch<T> ceil(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::copysign(library::ceil(x), x);
}
/// Returns x rounded towards zero.
template <arithmetic T>
constexpr T trunc(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::trunc(x)) : std::trunc(x);
}
template <lane T>
VARVE_INLINE batch<T> trunc(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::copysign(library::trunc(x), x);
}
/// Returns the nearest integer, ties to even (`torch.round`).
template <arithmetic T>
constexpr T round(T x) {
  if constexpr (integral<T>) return x;
  else return std::is_constant_evaluated() ? static_cast<T>(constant::round(x)) : std::nearbyint(x);
}
template <lane T>
VARVE_INLINE batch<T> round(batch<T> const& x) {
  if constexpr (integral<T>) return x;
  else return library::nearbyint(x);
}

/// Returns the remainder with the sign of the dividend (`torch.fmod`). Throws `value_error` for an integer divisor of
/// 0, as do `remainder` and `floor_divide`.
template <arithmetic T>
constexpr T fmod(T a, T b) {
  if constexpr (floating<T>) {
    return std::is_constant_evaluated() ? static_cast<T>(constant::fmod(a, b)) : std::fmod(a, b);
  } else {
    if (b == 0) refuse::argument_is_invalid("fmod", "integer division by zero");
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0; // the quotient of the smallest integer by -1 overflows
    return static_cast<T>(a % b);
  }
}
/// Returns the remainder with the sign of the divisor (`torch.remainder`, Python's %).
template <arithmetic T>
constexpr T remainder(T a, T b) {
  T const r = kernel::fmod(a, b);
  if constexpr (std::is_unsigned_v<T>) return r;
  else return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
/// Returns the quotient rounded down (`torch.floor_divide`, Python's //).
template <arithmetic T>
constexpr T floor_divide(T a, T b) {
  if constexpr (floating<T>) {
    if (b == 0) return a / b;
    T const r = kernel::fmod(a, b);
    T q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0)
      return constant::negative(static_cast<double>(a)) != constant::negative(static_cast<double>(b)) ? -T(0) : T(0);
    T const f = kernel::floor(q); // q is an integer up to rounding errors
    return q - f > T(0.5) ? f + 1 : f;
  } else {
    if (b == 0) refuse::argument_is_invalid("floor_divide", "integer division by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return kernel::neg(a);
      return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    } else return static_cast<T>(a / b);
  }
}
namespace detail {
/// True if a multiply-add is rounded only once and sums are not reordered.
#if VARVE_USE_XSIMD && (defined(__FMA__) || defined(__aarch64__)) && !defined(__FAST_MATH__) &&                        \
    !defined(__ASSOCIATIVE_MATH__)
inline constexpr bool remainders_are_exact = true;
#else
inline constexpr bool remainders_are_exact = false;
#endif
template <lane T>
VARVE_NOINLINE batch<T> fmod_of_lanes(batch<T> const& a, batch<T> const& b) {
  return kernel::lanewise([](T x, T y) { return kernel::fmod(x, y); }, a, b);
}
} // namespace detail
/// Returns the remainder of batches with the sign of the dividend. For quotients below 2^22 the truncated quotient is
/// right or too large by one, and the remainder is exact in either case. Other quotients are computed lane by lane.
template <lane T>
VARVE_INLINE batch<T> fmod(batch<T> const& a, batch<T> const& b) {
  if constexpr (detail::remainders_are_exact && std::is_floating_point_v<T>) {
    using V = batch<T>;
    V const zero(T(0)), one(T(1)), most(T(1 << 22)), inf(std::numeric_limits<T>::infinity());
    V const q = library::trunc(a / b), size = library::abs(b);
    V const slow = kernel::select<T>(library::abs(q) < most, kernel::select<T>(size < inf, zero, one), one);
    if (kernel::any<T>(slow > zero)) [[unlikely]]
      return detail::fmod_of_lanes<T>(a, b);
    V const r = kernel::fnma<T>(q, b, a);
    V const too_far = kernel::select<T>(a < zero, r, zero - r); // > 0 where the sign of r differs from that of a
    return library::copysign(kernel::select<T>(too_far > zero, r + library::copysign(size, a), r), a);
  } else return kernel::lanewise([](T x, T y) { return kernel::fmod(x, y); }, a, b);
}
template <lane T>
VARVE_INLINE batch<T> remainder(batch<T> const& a, batch<T> const& b) {
  if constexpr (detail::remainders_are_exact && std::is_floating_point_v<T>) {
    batch<T> const r = kernel::fmod<T>(a, b), zero(T(0));
    batch<T> const other_sign = kernel::select<T>(b < zero, r, zero - r);
    return kernel::select<T>(other_sign > zero, r + b, r);
  } else return kernel::lanewise([](T x, T y) { return kernel::remainder(x, y); }, a, b);
}
template <lane T>
VARVE_INLINE batch<T> floor_divide(batch<T> const& a, batch<T> const& b) {
  return kernel::lanewise([](T x, T y) { return kernel::floor_divide(x, y); }, a, b);
}

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
