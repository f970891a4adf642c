// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/simd.hpp>

#include <bit>
#include <cstring>
#include <utility>

/// @file
/// Loads of records, that is of arrays whose elements are short rows.
namespace varve::fusion {

/// Number of adjacent fields that `load_fields` reads from each record: 16 bytes.
template <class T>
inline constexpr int fields_at_once = 16 / static_cast<int>(sizeof(T));

namespace detail {
template <class T, int Bytes>
struct native {
  typedef T type __attribute__((vector_size(Bytes)));
};
/// Concatenates two vectors.
template <class V, int... I>
VARVE_INLINE auto joined(V const& a, V const& b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
/// Loads 16 bytes each from `p`, `p + step`, ... into one register of `Bytes` bytes. It uses instructions that load and
/// insert at once, which compilers do not always select.
template <int Bytes>
VARVE_INLINE auto pieces(float const* p, index_t step) {
  using V = typename native<float, Bytes>::type;
  if constexpr (Bytes == 16) {
    V r;
    std::memcpy(&r, p, sizeof r);
    return r;
#if VARVE_USE_XSIMD && defined(__AVX__)
  } else if constexpr (Bytes == 32) {
    return std::bit_cast<V>(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1));
#endif
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  } else if constexpr (Bytes == 64) {
    __m512 const half = _mm512_castps256_ps512(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1));
    return std::bit_cast<V>(
        _mm512_insertf32x4(_mm512_insertf32x4(half, _mm_loadu_ps(p + 2 * step), 2), _mm_loadu_ps(p + 3 * step), 3));
#endif
  } else {
    return detail::joined(detail::pieces<Bytes / 2>(p, step), detail::pieces<Bytes / 2>(p + Bytes / 32 * step, step),
                          std::make_integer_sequence<int, Bytes / 4>{});
  }
}
/// Returns the low (High = 0) or high halves of every 16 bytes of `a` and `b`, alternating in groups of `Group`
/// elements.
template <int High, int Group, class T, class V, int... I>
VARVE_INLINE V alternate(V const& a, V const& b, std::integer_sequence<int, I...>) {
  constexpr int n = fields_at_once<T>, all = sizeof...(I);
  return __builtin_shufflevector(
      a, b, (I / n * n + High * n / 2 + I % n / (2 * Group) * Group + I % Group + I / Group % 2 * all)...);
}
} // namespace detail

/// Sets `out[k]` to field `k` of consecutive records, one per lane of a register, at distance `stride` in elements. 16
/// bytes of each record are loaded and transposed by shuffles within 16 bytes.
template <class T>
VARVE_INLINE void load_fields(T const* p, index_t stride, kernel::batch<T>* out) {
  constexpr int n = fields_at_once<T>, bytes = static_cast<int>(sizeof(kernel::batch<T>));
  using V = typename detail::native<T, bytes>::type;
  constexpr std::make_integer_sequence<int, bytes / static_cast<int>(sizeof(T))> every{};
  constexpr index_t floats = static_cast<index_t>(sizeof(T) / sizeof(float));
  V r[n];
#pragma GCC unroll 4
  for (int k = 0; k < n; ++k)
    r[k] = std::bit_cast<V>(detail::pieces<bytes>(reinterpret_cast<float const*>(p + k * stride), floats * n * stride));
  auto put = [out](int k, V const& v) { out[k] = std::bit_cast<kernel::batch<T>>(v); };
  if constexpr (n == 2) {
    put(0, detail::alternate<0, 1, T>(r[0], r[1], every)), put(1, detail::alternate<1, 1, T>(r[0], r[1], every));
  } else {
    V const a = detail::alternate<0, 1, T>(r[0], r[1], every), b = detail::alternate<0, 1, T>(r[2], r[3], every);
    V const c = detail::alternate<1, 1, T>(r[0], r[1], every), d = detail::alternate<1, 1, T>(r[2], r[3], every);
    put(0, detail::alternate<0, 2, T>(a, b, every)), put(1, detail::alternate<1, 2, T>(a, b, every));
    put(2, detail::alternate<0, 2, T>(c, d, every)), put(3, detail::alternate<1, 2, T>(c, d, every));
  }
}

} // namespace varve::fusion
