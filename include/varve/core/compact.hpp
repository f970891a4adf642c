// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>

#include <bit>
#include <concepts>

/// @file
/// Elements of the dtypes that are stored in fewer bytes than they are computed in: int8 and int16 (computed as int32),
/// float16 and bfloat16 (computed as float32). Each operator rounds its results once, to nearest, ties to even.
/// Integers wrap.
namespace varve {

namespace detail {
/// Returns the bits of the nearest float16 (10 fraction bits, 5 exponent bits), which may be subnormal. Numbers that
/// are too large become infinite.
constexpr std::uint16_t half_bits(float x) {
  std::uint32_t const all = std::bit_cast<std::uint32_t>(x), a = all & 0x7FFFFFFFu, sign = (all >> 16) & 0x8000u;
  std::uint32_t const normal = ((a + 0xFFFu + ((a >> 13) & 1u)) >> 13) - (112u << 10); // carries into the exponent
  // below 2^-14 float16 has steps of 2^-24, as float has at 0.5: adding 0.5 rounds to such a step
  float const tiny = a < 0x38800000u ? std::bit_cast<float>(a) : 0.0f;
  std::uint32_t const subnormal = std::bit_cast<std::uint32_t>(tiny + 0.5f) - 0x3F000000u;
  std::uint32_t r = a < 0x38800000u ? subnormal : normal;
  r = a >= 0x477FF000u ? 0x7C00u : r;
  r = a > 0x7F800000u ? 0x7E00u : r;
  return static_cast<std::uint16_t>(r | sign);
}
constexpr float from_half_bits(std::uint16_t h) {
  std::uint32_t const a = h & 0x7FFFu, sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  std::uint32_t const normal = (a << 13) + (a >= 0x7C00u ? 224u << 23 : 112u << 23);
  std::uint32_t const subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(a)) * 0x1p-24f);
  return std::bit_cast<float>((a < 0x400u ? subnormal : normal) | sign);
}
/// Returns the upper half of the bits of a float, rounded.
constexpr std::uint16_t bfloat_bits(float x) {
  std::uint32_t const a = std::bit_cast<std::uint32_t>(x);
  std::uint32_t const rounded = (a + 0x7FFFu + ((a >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((a & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded);
}
constexpr float from_bfloat_bits(std::uint16_t b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }
} // namespace detail

/// An element of dtype float16. It converts from and to float, and has no arithmetic of its own.
struct float16 {
  std::uint16_t bits = 0;
  constexpr float16() = default;
  constexpr explicit float16(float x) : bits(detail::half_bits(x)) {}
  constexpr operator float() const { return detail::from_half_bits(bits); } // NOLINT(google-explicit-constructor)
};
/// An element of dtype bfloat16. It converts from and to float, and has no arithmetic of its own.
struct bfloat16 {
  std::uint16_t bits = 0;
  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float x) : bits(detail::bfloat_bits(x)) {}
  constexpr operator float() const { return detail::from_bfloat_bits(bits); } // NOLINT(google-explicit-constructor)
};

namespace detail {
/// A type of complex numbers, such as `std::complex<float>`, that stores its real part, then its imaginary part.
template <class T>
concept complex_number = requires(T const& z) {
  typename T::value_type;
  { z.real() } -> std::convertible_to<typename T::value_type>;
  z.imag();
} && std::is_floating_point_v<typename T::value_type> && sizeof(T) == 2 * sizeof(typename T::value_type);
/// Returns the dtype of a C++ element type, including the compact and the complex ones.
template <class T>
constexpr dtype stored_dtype() {
  if constexpr (complex_number<T>) return complex_type(dtype_of_type<typename T::value_type>());
  else if constexpr (std::is_same_v<T, float16>) return dtype::float16;
  else if constexpr (std::is_same_v<T, bfloat16>) return dtype::bfloat16;
  else if constexpr (std::is_same_v<T, std::int8_t>) return dtype::int8;
  else if constexpr (std::is_same_v<T, std::int16_t>) return dtype::int16;
  else return dtype_of_type<T>();
}
/// Calls `f.template operator()<T>()` as `on_dtype` does, but also accepts the compact dtypes.
template <class F>
constexpr decltype(auto) on_stored_dtype(dtype t, char const* op, F&& f) {
  if (t == dtype::float16) return f.template operator()<float16>();
  if (t == dtype::bfloat16) return f.template operator()<bfloat16>();
  if (t == dtype::int8) return f.template operator()<std::int8_t>();
  if (t == dtype::int16) return f.template operator()<std::int16_t>();
  return on_dtype(t, op, f);
}
/// Calls `f(read)`, where `read(memory, k)` returns element k of a memory of dtype `t` as a `T`. If `t` is complex, `T`
/// must be complex too; otherwise throws `dtype_error`.
template <class T, class F>
constexpr decltype(auto) on_elements_as(dtype t, char const* op, F&& f) {
  if constexpr (complex_number<T>) {
    using part = typename T::value_type;
    auto const of = [&]<class E>(E const*) {
      return f([](void const* p, index_t k) {
        E const* const at = static_cast<E const*>(p) + 2 * k;
        return T(static_cast<part>(at[0]), static_cast<part>(at[1]));
      });
    };
    if (t == dtype::complex64) return of(static_cast<float const*>(nullptr));
    if (t == dtype::complex128) return of(static_cast<double const*>(nullptr));
    return on_stored_dtype(t, op, [&]<class E>() {
      return f([](void const* p, index_t k) { return T(static_cast<part>(static_cast<E const*>(p)[k])); });
    });
  } else {
    return on_stored_dtype(t, op, [&]<class E>() {
      return f([](void const* p, index_t k) { return static_cast<T>(static_cast<E const*>(p)[k]); });
    });
  }
}
} // namespace detail

} // namespace varve
