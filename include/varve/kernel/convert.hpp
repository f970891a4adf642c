// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/compact.hpp>
#include <varve/kernel/constant_math.hpp>
#include <varve/kernel/pointwise.hpp>

#include <cstddef>
#include <limits>
#include <type_traits>

/// @file
/// Conversions between the six element types, and between a compact dtype and the one in which it is computed.
namespace varve::kernel {

/// Converts one element. Conversion to bool is `!= 0`, and integers wrap. Floating to integer truncates: a number out
/// of range becomes the smallest 32- or 64-bit integer, as on x86, and uint8 takes the low bits of that.
template <class To, class From>
constexpr To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using W = std::conditional_t<sizeof(To) == 4, std::int32_t, std::int64_t>;
    constexpr From bound = -static_cast<From>((std::numeric_limits<W>::min)());
    bool const fits = (x >= -bound) & (x < bound); // no branch, which would prevent vectorization
    return static_cast<To>(static_cast<W>(fits ? x : -bound));
  } else return static_cast<To>(x);
}

/// Converts an integer in a floating-point lane to `To`; integers that `To` cannot hold wrap around.
template <class To, class From>
  requires std::is_arithmetic_v<From>
constexpr To wrapped(From x) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return static_cast<To>(kernel::cast<std::int64_t>(x));
  else return kernel::cast<To>(x);
}
/// Returns what `cast` from dtype `from` to dtype `to` makes of `x`. Elements are passed as doubles, for the compiler,
/// in which no conversion may overflow.
constexpr double converted(dtype to, double x, dtype from) {
  auto const single = [](double v) { return static_cast<double>(kernel::constant::narrow<float>(v)); };
  double const v = from == dtype::float32 ? single(x) : x;
  if (to == dtype::bool_) return v != 0;
  if (to == dtype::float32) return single(v);
  if (varve::is_floating(to)) return v;
  if (to == dtype::int32 && varve::is_floating(from)) return kernel::cast<std::int32_t>(v);
  std::int64_t const whole = kernel::cast<std::int64_t>(v);
  return to == dtype::uint8   ? static_cast<std::uint8_t>(whole)
         : to == dtype::int32 ? static_cast<std::int32_t>(whole)
                              : static_cast<double>(whole);
}
/// Returns `x`, computed as a double, as an element of dtype `t`.
constexpr double converted(dtype t, double x) { return converted(t, x, t); }

namespace detail {
/// Converts contiguous elements.
template <class To, class From>
VARVE_VECTORIZED void convert_elements(std::size_t n, void* out, void const* const* in) {
  auto* const to = static_cast<byte_for_flag<To>*>(out);
  auto const* const x = static_cast<From const*>(in[0]);
  for (std::size_t i = 0; i < n; ++i) to[i] = kernel::cast<To>(x[i]);
}
template <class To, class From>
inline constexpr loop conversion = convert_elements<To, byte_for_flag<From>>;
template <class To>
loop convert_from(dtype from) {
  return on_dtype(from, "convert", []<class From>() -> loop { return conversion<To, From>; });
}
/// Converts contiguous elements between a compact dtype and the one in which it is computed.
template <class To, class From>
VARVE_VECTORIZED void convert_compact(std::size_t n, void* out, void const* const* in) {
  auto* const to = static_cast<To*>(out);
  auto const* const x = static_cast<From const*>(in[0]);
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<To>(x[i]);
}
template <class = void>
VARVE_NOINLINE loop compact_loop(dtype to, dtype from) {
  bool const narrows = is_compact(to);
  dtype const t = narrows ? to : from;
  if (is_compact(narrows ? from : to) || (narrows ? from : to) != computed_in(t))
    refuse::dtype_is_not_supported("convert", name(t));
  if (t == dtype::float16) return narrows ? convert_compact<float16, float> : convert_compact<float, float16>;
  if (t == dtype::bfloat16) return narrows ? convert_compact<bfloat16, float> : convert_compact<float, bfloat16>;
  if (t == dtype::int8)
    return narrows ? convert_compact<std::int8_t, std::int32_t> : convert_compact<std::int32_t, std::int8_t>;
  return narrows ? convert_compact<std::int16_t, std::int32_t> : convert_compact<std::int32_t, std::int16_t>;
}
} // namespace detail

/// Returns the contiguous kernel that converts one dtype to another. A compact dtype converts only to and from the
/// dtype in which it is computed. Throws `dtype_error` for other pairs. (It is a template so that it costs nothing if
/// unused.)
template <class = void>
VARVE_NOINLINE loop convert_loop(dtype to, dtype from) {
  if (is_compact(to) || is_compact(from)) return detail::compact_loop<>(to, from);
  return on_dtype(to, "convert", [from]<class To>() -> loop { return detail::convert_from<To>(from); });
}
/// Converts strided elements; elements of equal dtypes are copied. `out` and `in` must not overlap. The item sizes of
/// the operands must be those of the dtypes.
template <class = void>
void convert(dims const& sizes, operand out, dtype to, operand in, dtype from) {
  if (to == from) kernel::copy_strided(sizes, out, in);
  else kernel::pointwise(sizes, out, &in, 1, kernel::convert_loop<>(to, from));
}

} // namespace varve::kernel
