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
#pragma GCC diagnostic ignored "-Wuninitialized" // g++ 12 warns of its own AVX-512 header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#endif
#if !defined(__clang__) // g++ 12 warns of its own AVX-512 header where xsimd was included before this header
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// @file
/// SIMD batches: the only header that includes xsimd, and the only one that knows its versions (8.1 to 14). Without
/// xsimd a batch is one scalar. Users include `simd.hpp`, which adds what is common to both.
namespace varve::kernel {

/// Element types that have batches; `bool` and `uint8` go through plain loops, which the compiler vectorizes.
template <class T>
concept lane = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
               std::is_same_v<T, std::int64_t>;

#if VARVE_USE_XSIMD

#if XSIMD_VERSION_MAJOR < 9 && defined(__AVX512F__) && !defined(__OPTIMIZE__)
/// Instruction set of the batches. xsimd 8.1 passes run-time shift counts where AVX-512 wants constants: AVX2 without
/// optimization.
using arch = xsimd::fma3<xsimd::avx2>;
#else
/// Instruction set of the batches: what the compiler's flags say.
using arch = xsimd::default_arch;
#endif

/// Several elements of type `T` (float, double, int32, int64) in one register.
template <class T>
using batch = xsimd::batch<T, arch>;
/// Lanes chosen by a comparison of two batches.
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

/// Loads a whole batch from any address.
template <lane T>
VARVE_INLINE batch<T> load(T const* p) {
  return batch<T>::load_unaligned(p);
}
/// Stores a whole batch to any address.
template <lane T>
VARVE_INLINE void store(T* p, batch<T> const& v) {
  v.store_unaligned(p);
}
/// Lanes of `a` where `m` holds, of `b` elsewhere.
template <lane T>
VARVE_INLINE batch<T> select(mask<T> const& m, batch<T> const& a, batch<T> const& b) {
  return xsimd::select(m, a, b);
}
/// Whether a comparison holds in any lane.
template <lane T>
VARVE_INLINE bool any(mask<T> const& m) {
  return xsimd::any(m);
}
/// a != b, true for NaN. (xsimd 8.1 has the ordered comparison there.)
template <lane T>
VARVE_INLINE mask<T> differ(batch<T> const& a, batch<T> const& b) {
  return !(a == b);
}
/// a * b; integers wrap around. (xsimd multiplies those of 64 bits one by one, as C++ does, where overflow is
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
/// a * b + c, rounded once where the hardware can. (xsimd 8.1 does not use that instruction of AVX-512.)
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  if constexpr (std::is_integral_v<T>) return kernel::product<T>(a, b) + c;
#ifdef __AVX512F__
  else if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fmadd_pd(a, b, c);
#endif
  else return xsimd::fma(a, b, c);
}
/// c - a * b, rounded once where the hardware can.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  if constexpr (std::is_integral_v<T>) return c - kernel::product<T>(a, b);
#ifdef __AVX512F__
  else if constexpr (std::is_same_v<T, float> && sizeof(batch<T>) == 64) return _mm512_fnmadd_ps(a, b, c);
  else if constexpr (std::is_same_v<T, double> && sizeof(batch<T>) == 64) return _mm512_fnmadd_pd(a, b, c);
#endif
  else return xsimd::fnma(a, b, c);
}
/// -a, whose zeros have signs. (xsimd computes 0 - a with AVX-512, and elsewhere what compilers do not see as a sign
/// that a multiply-add may take.)
template <lane T>
VARVE_INLINE batch<T> negate(batch<T> const& a) {
#ifdef __SSE2__
  if constexpr (std::is_floating_point_v<T>) return batch<T>(-a.data);
  else
#endif
    return -a;
}
namespace detail {
/// The bits of a batch as a batch of `To` (the library's own function changed its template arguments between versions).
template <class To, class From>
VARVE_INLINE batch<To> bits(batch<From> const& v) {
  return std::bit_cast<batch<To>>(v);
}
/// The bits of a batch as unsigned integers, which shift and wrap everywhere.
template <class T>
VARVE_INLINE auto raw_bits(batch<T> const& v) {
  return detail::bits<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(v);
}
template <class T, class U>
VARVE_INLINE batch<T> from_raw_bits(batch<U> const& v) {
  return detail::bits<T>(v);
}
/// The number whose bits are those of `one` plus the bits of `v` shifted left: builds powers of two.
template <int N, class I, class T>
VARVE_INLINE batch<T> shift_left(batch<T> const& v, batch<T> const& one) {
  return detail::bits<T>((detail::bits<I>(v) << N) + detail::bits<I>(one));
}
template <class T>
VARVE_INLINE T lane_sum(batch<T> const& v) {
  if constexpr (std::is_integral_v<T>) { // xsimd adds integers as C++ does, where overflow is undefined
    std::make_unsigned_t<T> all[sizeof v / sizeof(T)], r = 0;
    std::memcpy(all, &v, sizeof v);
    for (auto const one : all) r += one;
    return static_cast<T>(r);
  } else if constexpr (requires { reduce_add(v); }) return reduce_add(v);
  else return hadd(v); // 8.1
}
} // namespace detail

/// The functions of xsimd that `math.hpp` builds on, one name for xsimd and the scalar path.
namespace library {
using xsimd::abs, xsimd::acos, xsimd::asin, xsimd::atan, xsimd::ceil, xsimd::copysign, xsimd::cos, xsimd::floor,
    xsimd::log1p, xsimd::nearbyint, xsimd::sin, xsimd::sqrt, xsimd::tan, xsimd::trunc;
} // namespace library

#else // the scalar path

/// One element that behaves as a batch of width 1; integers wrap, as in registers.
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
/// `a` if `m` holds, else `b`.
template <lane T>
VARVE_INLINE batch<T> select(bool m, batch<T> const& a, batch<T> const& b) {
  return m ? a : b;
}
/// Whether a comparison holds.
template <lane T>
VARVE_INLINE bool any(bool m) {
  return m;
}
/// a != b, true for NaN.
template <lane T>
VARVE_INLINE bool differ(batch<T> const& a, batch<T> const& b) {
  return a.v != b.v;
}
/// a * b; integers wrap around.
template <lane T>
VARVE_INLINE batch<T> product(batch<T> const& a, batch<T> const& b) {
  return a * b;
}
/// a * b + c; rounded twice where the hardware has no such instruction, since the library's exact version is slow
/// there.
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return a * b + c;
}
/// c - a * b.
template <lane T>
VARVE_INLINE batch<T> fnma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return c - a * b;
}
/// -a.
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

/// The functions that `math.hpp` builds on.
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
