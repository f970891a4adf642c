// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/simd.hpp>

namespace varve::kernel {

namespace detail {
/// Returns x (a number or a register) such that compilers cannot combine it with computations that use it, whatever
/// their flags allow.
template <class X>
VARVE_INLINE X fenced(X const& x) {
#if defined(__ASSOCIATIVE_MATH__) && !defined(__clang__)
  return __builtin_assoc_barrier(x);
#elif defined(__clang__) && defined(__x86_64__) // depends on flags, not all of which define a macro
  return __arithmetic_fence(x);
#else
  return x;
#endif
}
} // namespace detail

/// Returns x as it was rounded: even with -ffast-math, compilers do not combine the operations before and after.
/// Without that flag it does nothing.
template <class T>
VARVE_INLINE batch<T> in_order(batch<T> const& x) {
#if VARVE_USE_XSIMD
  return batch<T>(detail::fenced(x.data));
#else
  return batch<T>(detail::fenced(x.v));
#endif
}

/// Number 1.5 times 2^23 or 2^52, near which the unit in the last place is 1.
template <class T>
inline constexpr T integer_shift = sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52);
/// Returns the integer nearest to x times `factor`, plus `integer_shift`, so that the integer is in the low bits. (It
/// does not also return the integer as a number: g++ 12 computes such a pair twice if sine and cosine share it.)
template <class T>
VARVE_INLINE batch<T> nearest(batch<T> const& x, T factor) {
  using V = batch<T>;
#if defined(__FAST_MATH__) && defined(__clang__) &&                                                                    \
    !defined(__x86_64__) // no fence there; a subtraction would cancel the addition
  return library::nearbyint(x * V(factor)) + V(integer_shift<T>);
#else
  return kernel::in_order<T>(kernel::fma<T>(x, V(factor), V(integer_shift<T>)));
#endif
}

} // namespace varve::kernel
