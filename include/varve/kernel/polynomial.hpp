// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/simd.hpp>

namespace varve::kernel {

/// Returns p[0] + p[1] z + p[2] z^2 + ... by Horner's scheme: N - 1 dependent multiply-adds.
template <class T, int N>
VARVE_INLINE batch<T> polynomial(T const (&p)[N], batch<T> const& z) {
  batch<T> r(p[N - 1]);
#pragma GCC unroll 16
  for (int k = N - 2; k >= 0; --k) r = kernel::fma<T>(r, z, batch<T>(p[k]));
  return r;
}

} // namespace varve::kernel
