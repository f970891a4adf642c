// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/simd.hpp>

namespace varve::kernel {

namespace detail {
/// x (a number or a register), which compilers may not combine with what is computed from it, whatever their flags
/// allow them.
template <class X>
VARVE_INLINE X fenced(X const& x) {
#if defined(__ASSOCIATIVE_MATH__) && !defined(__clang__)
  return __builtin_assoc_barrier(x);
#elif defined(__clang__) && defined(__x86_64__) // by its flags, of which not all define a macro
  return __arithmetic_fence(x);
#else
  return x;
#endif
}
} // namespace detail

/// x, as it was rounded: -ffast-math does not combine what led to it with what follows. Nothing without it.
template <class T>
VARVE_INLINE batch<T> in_order(batch<T> const& x) {
#if VARVE_USE_XSIMD
  return batch<T>(detail::fenced(x.data));
#else
  return batch<T>(detail::fenced(x.v));
#endif
}

/// 1.5 times 2^23 or 2^52, at whose size the unit in the last place is 1.
template <class T>
inline constexpr T integer_shift = sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52);
/// The integer nearest to x times `factor`, plus `integer_shift`: it stands in the low bits. (Not together with the
/// integer as a number: g++ 12 computes a pair of registers twice where sine and cosine share it.)
template <class T>
VARVE_INLINE batch<T> nearest(batch<T> const& x, T factor) {
  using V = batch<T>;
#if defined(__FAST_MATH__) && defined(__clang__) &&                                                                    \
    !defined(__x86_64__) // no fence there, and the addition would be cancelled against a subtraction of the same
  return library::nearbyint(x * V(factor)) + V(integer_shift<T>);
#else
  return kernel::in_order<T>(kernel::fma<T>(x, V(factor), V(integer_shift<T>)));
#endif
}

} // namespace varve::kernel
