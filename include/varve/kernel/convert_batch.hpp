// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/arithmetic.hpp>
#include <varve/kernel/convert.hpp>

/// @file
/// Elements of any type in batches of a lane type: loading, storing, and rounding to what their type can hold.
namespace varve::kernel {

namespace detail {
/// Vector of as many elements of `E` as a batch of `T` has lanes.
template <class E, class T>
struct beside {
  typedef E type __attribute__((vector_size(sizeof(E) * lanes<T>)));
};
template <class E, class T>
using beside_t = typename beside<E, T>::type;
template <lane T, class X>
VARVE_INLINE batch<T> lanes_of(X const& x) {
  return std::bit_cast<batch<T>>(__builtin_convertvector(x, beside_t<T, T>));
}
/// Loads one byte per lane of `T`. (g++ 12 converts vectors this short element by element.)
template <class T>
VARVE_INLINE beside_t<std::int32_t, T> load_bytes(void const* p) {
  unsigned char bytes[lanes<T>];
  std::memcpy(bytes, p, sizeof bytes);
#if VARVE_USE_XSIMD && defined(__AVX2__)
#ifdef __AVX512F__
  if constexpr (lanes<T> == 16)
    return std::bit_cast<beside_t<std::int32_t, T>>(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(bytes))));
  else
#endif
      if constexpr (lanes<T> == 8)
    return std::bit_cast<beside_t<std::int32_t, T>>(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(bytes))));
  else if constexpr (lanes<T> == 4)
    return std::bit_cast<beside_t<std::int32_t, T>>(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(std::bit_cast<int>(bytes))));
  else
#endif
    return __builtin_convertvector(std::bit_cast<beside_t<unsigned char, T>>(bytes), beside_t<std::int32_t, T>);
}
template <class T>
VARVE_INLINE void store_bytes(void* p, beside_t<std::int32_t, T> const& x) {
#if VARVE_USE_XSIMD && defined(__AVX2__)
#ifdef __AVX512F__
  if constexpr (lanes<T> == 16)
    return _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(std::bit_cast<__m512i>(x)));
#endif
  [[maybe_unused]] __m128i const low = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  if constexpr (lanes<T> == 4) {
    int const bytes = _mm_cvtsi128_si32(_mm_shuffle_epi8(std::bit_cast<__m128i>(x), low));
    std::memcpy(p, &bytes, sizeof bytes);
  } else if constexpr (lanes<T> == 8) {
    __m256i const bytes = _mm256_shuffle_epi8(std::bit_cast<__m256i>(x), _mm256_broadcastsi128_si256(low));
    _mm_storel_epi64(static_cast<__m128i*>(p),
                     _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
  } else
#endif
  {
    auto const bytes = __builtin_convertvector(x, beside_t<unsigned char, T>);
    std::memcpy(p, &bytes, sizeof bytes);
  }
}
/// Returns `v` where it is in [-bound, bound), and -bound elsewhere.
template <lane T>
VARVE_INLINE batch<T> bounded(batch<T> const& v, T bound) {
  batch<T> const least(-bound);
  // NaN becomes -bound, too
  return kernel::select<T>(v < batch<T>(bound), kernel::select<T>(v >= least, v, least), least);
}
} // namespace detail

/// Wraps integers in the lanes, one by one, to what `E` can hold. Infinities and NaN become 0. `V` is a batch or a
/// scalar.
template <class E, class V>
VARVE_INLINE V wrapped_any(V const& v) {
  using T = element_t<V>;
  auto const f = [](T x) { return static_cast<T>(kernel::wrapped<E>(x)); };
  if constexpr (is_batch<V>) return kernel::lanewise<T>(f, v);
  else return f(v);
}
/// Wraps integers in the lanes to what `E` can hold, faster than `wrapped_any`. Their absolute values must not exceed
/// 2^51.
template <class E, lane T>
VARVE_INLINE batch<T> wrapped(batch<T> const& v) {
  if constexpr (std::is_same_v<E, bool>) {
    return kernel::from_mask<T>(kernel::to_mask<T>(v));
  } else if constexpr (std::is_floating_point_v<E> || sizeof(E) == 8 || std::is_same_v<E, T>) {
    return v;
  } else if constexpr (lanes<T> == 1 || std::is_same_v<T, float>) {
    return kernel::wrapped_any<E>(v);
  } else if constexpr (std::is_integral_v<T> && sizeof(E) == 1) {
    return v & batch<T>(T(255));
  } else if constexpr (std::is_integral_v<T>) {
    batch<T> const sign(T(2147483648));
    return ((v & batch<T>(T(4294967295))) ^ sign) - sign;
  } else { // 2^52 + 2^51 + x ends in the bits of x; these, in the mantissa of 2^52, form a non-negative number again
    using bits = detail::beside_t<std::uint64_t, T>;
    constexpr bool byte = sizeof(E) == 1;
    bits const low = std::bit_cast<bits>(v + batch<T>(6755399441055744.0)) & (byte ? 0xffu : 0xffffffffu);
    bits const number = (byte ? low : low ^ 0x80000000u) | 0x4330000000000000u;
    return std::bit_cast<batch<T>>(number) - batch<T>(byte ? 4503599627370496.0 : 4503599627370496.0 + 2147483648.0);
  }
}
/// Converts floating-point lanes by `cast<E>` to integers or flags, or rounds them to `E`; returns the result in `T`.
template <class E, lane T>
VARVE_INLINE batch<T> through(batch<T> const& v) {
  if constexpr (std::is_same_v<E, bool>) return kernel::wrapped<bool>(v);
  else if constexpr (std::is_floating_point_v<E> && sizeof(E) >= sizeof(T)) return v;
  else if constexpr (sizeof(v) <= 16 || sizeof(E) == 1)
    return kernel::lanewise([](T x) { return static_cast<T>(kernel::cast<E>(x)); }, v);
  else if constexpr (std::is_floating_point_v<E>)
    return detail::lanes_of<T>(
        __builtin_convertvector(std::bit_cast<detail::beside_t<T, T>>(v), detail::beside_t<E, T>));
  else return detail::bounded(kernel::trunc(v), sizeof(E) == 4 ? T(2147483648.0) : T(9223372036854775808.0));
}
/// Returns the product of two integers of `E`, which wraps around. It is exact where floating-point lanes would round
/// it. `V` is a batch or a scalar.
template <class E, class V>
VARVE_INLINE V wrapped_product(V const& x, V const& y) {
  using T = element_t<V>;
  if constexpr (std::is_same_v<E, bool>) {
    return kernel::mul(x, y);
  } else if constexpr (is_batch<V> && lanes<T> > 1) {
    using whole = detail::beside_t<std::uint32_t, T>;
    using integers = detail::beside_t<std::int32_t, T>;
    auto const bits = [](V const& v) {
      return std::bit_cast<whole>(__builtin_convertvector(std::bit_cast<detail::beside_t<T, T>>(v), integers));
    };
    return detail::lanes_of<T>(std::bit_cast<integers>(bits(x) * bits(y) & (sizeof(E) == 1 ? 255u : ~0u)));
  } else {
    auto const f = [](T a, T b) {
      return static_cast<T>(kernel::wrapped<E>(static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b)));
    };
    if constexpr (is_batch<V>) return kernel::lanewise<T>(f, x, y);
    else return f(x, y);
  }
}

/// Loads and converts one element per lane of `T` from `p` on.
template <lane T, class E>
VARVE_INLINE batch<T> load_converted(E const* p) {
  if constexpr (lanes<T> == 1) {
    return batch<T>(static_cast<T>(*p));
  } else if constexpr (sizeof(E) == 1) {
    return detail::lanes_of<T>(detail::load_bytes<T>(p));
  } else {
    detail::beside_t<E, T> x;
    std::memcpy(&x, p, sizeof x);
    return detail::lanes_of<T>(x);
  }
}
/// Converts and stores all lanes from `p` on. Integers that `E` cannot hold wrap around. `Fits` skips this if all are
/// known to fit.
template <bool Fits = false, class E, lane T>
VARVE_INLINE void store_converted(E* p, batch<T> const& v) {
  if constexpr (lanes<T> == 1 || (!Fits && std::is_integral_v<E> && sizeof(E) < 8)) {
    T x[lanes<T>];
    kernel::store(x, v);
    for (std::size_t l = 0; l < lanes<T>; ++l) p[l] = kernel::wrapped<E>(x[l]);
  } else {
    auto const x = std::bit_cast<detail::beside_t<T, T>>(v);
    if constexpr (sizeof(E) == 1) {
      detail::store_bytes<T>(p, __builtin_convertvector(x, detail::beside_t<std::int32_t, T>));
    } else {
      auto const y = __builtin_convertvector(x, detail::beside_t<E, T>);
      std::memcpy(p, &y, sizeof y);
    }
  }
}

} // namespace varve::kernel
