// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if VARVE_USE_XSIMD
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized" // g++ 12 warns about its own AVX-512 header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#endif
#if !defined(__clang__) // g++ 12 warns about its own AVX-512 header if xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// SIMD batches. This is the only header that includes xsimd and handles its versions (8.1 to 14). Without xsimd a
/// batch is one scalar. Users include `simd.hpp`, which adds the functions that both share.
namespace varve::kernel {

/// An element type that has batches. `bool` and `uint8` use plain loops, which the compiler vectorizes.
template <class T>
concept lane = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
               std::is_same_v<T, std::int64_t>;

#if VARVE_USE_XSIMD

#if XSIMD_VERSION_MAJOR < 9 && defined(__AVX512F__) && !defined(__OPTIMIZE__)
/// Instruction set of the batches: AVX2. Without optimization, xsimd 8.1 passes run-time shift counts where AVX-512
/// requires constants.
using arch = xsimd::fma3<xsimd::avx2>;
#else
/// Instruction set of the batches, as selected by the compiler's flags.
using arch = xsimd::default_arch;
#endif

/// Several elements of type `T` (float, double, int32, int64) in one register.
template <class T>
using batch = xsimd::batch<T, arch>;
/// Lanes selected by a comparison of two batches.
template <class T>
using mask = xsimd::batch_bool<T, arch>;

namespace detail {
template <class V>
struct element {
  using type = V;
  static constexpr bool is_batch = false;
};
template <class T, class A>
struct element<xsimd::batch<T, A>> {
  using type = T;
  static constexpr bool is_batch = true;
};
} // namespace detail

/// Loads a whole batch from any address, aligned or not.
template <lane T>
VARVE_INLINE batch<T> load(T const* p) {
  return batch<T>::load_unaligned(p);
}
/// Stores a whole batch to any address, aligned or not.
template <lane T>
VARVE_INLINE void store(T* p, batch<T> const& v) {
  v.store_unaligned(p);
}
/// Returns the lanes of `a` where `m` holds, and of `b` elsewhere.
template <lane T>
VARVE_INLINE batch<T> select(mask<T> const& m, batch<T> const& a, batch<T> const& b) {
  return xsimd::select(m, a, b);
}
/// Returns whether a comparison holds in any lane.
template <lane T>
VARVE_INLINE bool any(mask<T> const& m) {
  return xsimd::any(m);
}
/// Returns a != b, which is true for NaN. (The function of xsimd 8.1 is false for NaN.)
template <lane T>
VARVE_INLINE mask<T> differ(batch<T> const& a, batch<T> const& b) {
  return !(a == b);
}
/// Returns a * b; integers wrap around. (xsimd multiplies 64-bit integers one by one in C++, where overflow is
/// undefined.)
template <lane T>
VARVE_INLINE batch<T> product(batch<T> const& a, batch<T> const& b) {
  if constexpr (std::is_integral_v<T>) {
    typedef std::make_unsigned_t<T> W __attribute__((vector_size(sizeof(batch<T>))));
    return std::bit_cast<batch<T>>(std::bit_cast<W>(a) * std::bit_cast<W>(b));
  } else {
    return a * b;
  }
}
/// Returns a * b + c, rounded once if the hardware can. (xsimd 8.1 does not use the AVX-512 instruction.)
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  if constexpr (std::is_integral_v<T>) return kernel::product<T>(a, b) + c;
#ifdef __AVX512F__
  else if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fmadd_pd(a, b, c);
#endif
  else return xsimd::fma(a, b, c);
}
/// Returns c - a * b, rounded once if the hardware can.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  if constexpr (std::is_integral_v<T>) return c - kernel::product<T>(a, b);
#ifdef __AVX512F__
  else if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fnmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fnmadd_pd(a, b, c);
#endif
  else return xsimd::fnma(a, b, c);
}
/// Returns -a, with signed zeros. (xsimd computes 0 - a with AVX-512; elsewhere it uses code that compilers cannot fold
/// into a multiply-add.)
template <lane T>
VARVE_INLINE batch<T> negate(batch<T> const& a) {
#ifdef __SSE2__
  if constexpr (std::is_floating_point_v<T>) return batch<T>(-a.data);
  else
#endif
    return -a;
}
namespace detail {
/// Returns the bits of a batch as a batch of `To`. (The template arguments of xsimd's own function differ between
/// versions.)
template <class To, class From>
VARVE_INLINE batch<To> bits(batch<From> const& v) {
  return std::bit_cast<batch<To>>(v);
}
/// Returns the bits of a batch as unsigned integers, which shift and wrap on all platforms.
template <class T>
VARVE_INLINE auto raw_bits(batch<T> const& v) {
  return detail::bits<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(v);
}
template <class T, class U>
VARVE_INLINE batch<T> from_raw_bits(batch<U> const& v) {
  return detail::bits<T>(v);
}
/// Returns the number whose bits are those of `one` plus the bits of `v` shifted left by N; builds powers of two.
template <int N, class I, class T>
VARVE_INLINE batch<T> shift_left(batch<T> const& v, batch<T> const& one) {
  return detail::bits<T>((detail::bits<I>(v) << N) + detail::bits<I>(one));
}
template <class T>
VARVE_INLINE T lane_sum(batch<T> const& v) {
  if constexpr (std::is_integral_v<T>) { // xsimd adds integers as in C++, where overflow is undefined
    std::make_unsigned_t<T> all[sizeof v / sizeof(T)], r = 0;
    std::memcpy(all, &v, sizeof v);
    for (auto const one : all) r += one;
    return static_cast<T>(r);
  } else if constexpr (requires { reduce_add(v); }) return reduce_add(v);
  else return hadd(v); // xsimd 8.1
}
} // namespace detail

/// Functions of xsimd on which `math.hpp` is built; the scalar path defines the same names.
namespace library {
using xsimd::abs, xsimd::acos, xsimd::asin, xsimd::atan, xsimd::ceil, xsimd::copysign, xsimd::cos, xsimd::floor,
    xsimd::log1p, xsimd::nearbyint, xsimd::sin, xsimd::sqrt, xsimd::tan, xsimd::trunc;
} // namespace library

#else // the scalar path

/// A batch of one element; integers wrap around, as in SIMD registers.
template <class T>
struct batch {
  using W = typename std::conditional_t<std::is_integral_v<T>,
                                        std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>,
                                        std::type_identity<T>>::type;
  T v;
  batch() = default;
  constexpr batch(T x) : v(x) {}
  friend constexpr batch operator+(batch a, batch b) {
    return static_cast<T>(static_cast<W>(a.v) + static_cast<W>(b.v));
  }
  friend constexpr batch operator-(batch a, batch b) {
    return static_cast<T>(static_cast<W>(a.v) - static_cast<W>(b.v));
  }
  friend constexpr batch operator*(batch a, batch b) {
    return static_cast<T>(static_cast<W>(a.v) * static_cast<W>(b.v));
  }
  friend constexpr batch operator/(batch a, batch b) { return static_cast<T>(a.v / b.v); }
  friend constexpr batch operator-(batch a) { return static_cast<T>(-static_cast<W>(a.v)); }
  constexpr batch& operator+=(batch b) { return *this = *this + b; }
  constexpr batch& operator-=(batch b) { return *this = *this - b; }
  constexpr batch& operator*=(batch b) { return *this = *this * b; }
  constexpr batch& operator/=(batch b) { return *this = *this / b; }
  friend constexpr bool operator<(batch a, batch b) { return a.v < b.v; }
  friend constexpr bool operator>(batch a, batch b) { return a.v > b.v; }
  friend constexpr bool operator<=(batch a, batch b) { return a.v <= b.v; }
  friend constexpr bool operator>=(batch a, batch b) { return a.v >= b.v; }
  friend constexpr bool operator==(batch a, batch b) { return a.v == b.v; }
  friend constexpr bool operator!=(batch a, batch b) { return a.v != b.v; }
};
/// Result of a comparison of two batches.
template <class T>
using mask = bool;

namespace detail {
template <class V>
struct element {
  using type = V;
  static constexpr bool is_batch = false;
};
template <class T>
struct element<batch<T>> {
  using type = T;
  static constexpr bool is_batch = true;
};
} // namespace detail

/// Loads a batch.
template <lane T>
VARVE_INLINE batch<T> load(T const* p) {
  return *p;
}
/// Stores a batch.
template <lane T>
VARVE_INLINE void store(T* p, batch<T> const& v) {
  *p = v.v;
}
/// Returns `a` if `m` holds, else `b`.
template <lane T>
VARVE_INLINE batch<T> select(bool m, batch<T> const& a, batch<T> const& b) {
  return m ? a : b;
}
/// Returns whether a comparison holds.
template <lane T>
VARVE_INLINE bool any(bool m) {
  return m;
}
/// Returns a != b, which is true for NaN.
template <lane T>
VARVE_INLINE bool differ(batch<T> const& a, batch<T> const& b) {
  return a.v != b.v;
}
/// Returns a * b; integers wrap around.
template <lane T>
VARVE_INLINE batch<T> product(batch<T> const& a, batch<T> const& b) {
  return a * b;
}
/// Returns a * b + c. It is rounded twice unless the hardware has a multiply-add, because the exact library function is
/// slow without one.
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return a * b + c;
}
/// Returns c - a * b.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return c - a * b;
}
/// Returns -a.
template <lane T>
VARVE_INLINE batch<T> negate(batch<T> const& a) {
  return -a;
}
namespace detail {
template <class T>
VARVE_INLINE auto raw_bits(batch<T> const& v) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(v.v);
}
template <class T, class U>
VARVE_INLINE batch<T> from_raw_bits(U v) {
  return std::bit_cast<T>(v);
}
template <int N, class I, class T>
VARVE_INLINE batch<T> shift_left(batch<T> const& v, batch<T> const& one) {
  using U = std::make_unsigned_t<I>;
  return std::bit_cast<T>(static_cast<U>((std::bit_cast<U>(v.v) << N) + std::bit_cast<U>(one.v)));
}
template <class T>
VARVE_INLINE T lane_sum(batch<T> const& v) {
  return v.v;
}
} // namespace detail

/// Functions on which `math.hpp` is built.
namespace library {
template <class T>
VARVE_INLINE batch<T> abs(batch<T> x) {
  return x.v < 0 ? -x : x.v == 0 ? batch<T>(T(0)) : x;
}
template <class T>
VARVE_INLINE batch<T> acos(batch<T> x) {
  return std::acos(x.v);
}
template <class T>
VARVE_INLINE batch<T> asin(batch<T> x) {
  return std::asin(x.v);
}
template <class T>
VARVE_INLINE batch<T> atan(batch<T> x) {
  return std::atan(x.v);
}
template <class T>
VARVE_INLINE batch<T> ceil(batch<T> x) {
  return std::ceil(x.v);
}
template <class T>
VARVE_INLINE batch<T> copysign(batch<T> x, batch<T> y) {
  return std::copysign(x.v, y.v);
}
template <class T>
VARVE_INLINE batch<T> cos(batch<T> x) {
  return std::cos(x.v);
}
template <class T>
VARVE_INLINE batch<T> floor(batch<T> x) {
  return std::floor(x.v);
}
template <class T>
VARVE_INLINE batch<T> log1p(batch<T> x) {
  return std::log1p(x.v);
}
template <class T>
VARVE_INLINE batch<T> nearbyint(batch<T> x) {
  return std::nearbyint(x.v);
}
template <class T>
VARVE_INLINE batch<T> sin(batch<T> x) {
  return std::sin(x.v);
}
template <class T>
VARVE_INLINE batch<T> sqrt(batch<T> x) {
  return std::sqrt(x.v);
}
template <class T>
VARVE_INLINE batch<T> tan(batch<T> x) {
  return std::tan(x.v);
}
template <class T>
VARVE_INLINE batch<T> trunc(batch<T> x) {
  return std::trunc(x.v);
}
} // namespace library

#endif

} // namespace varve::kernel

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
