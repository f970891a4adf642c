// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/simd.hpp>

namespace varve::loop {

/// Rows of a square of lanes become its columns, in registers: `kernel::transpose`, for 256-bit registers with the fewest shuffles (24 for 8 x 8 floats).
template <class T>
VARVE_INLINE void transpose(kernel::batch<T>* r) {
#if VARVE_USE_XSIMD && defined(__AVX__)
  if constexpr (sizeof(kernel::batch<T>) == 32 && std::is_same_v<T, float>) {
    __m256 a[8], b[8];
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
      a[k] = _mm256_unpacklo_ps(r[k], r[k + 1]);
      a[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
    }
#pragma GCC unroll 2
    for (int k = 0; k < 8; k += 4)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        b[k + 2 * h] = _mm256_shuffle_ps(a[k + h], a[k + 2 + h], 0x44);
        b[k + 2 * h + 1] = _mm256_shuffle_ps(a[k + h], a[k + 2 + h], 0xEE);
      }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      r[k] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
      r[k + 4] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
    }
    return;
  } else if constexpr (sizeof(kernel::batch<T>) == 32 && std::is_same_v<T, double>) {
    __m256d const a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]), c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20), r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31), r[3] = _mm256_permute2f128_pd(b, d, 0x31);
    return;
  } else
#endif
  {
    kernel::transpose<T>(r);
  }
}

} // namespace varve::loop
