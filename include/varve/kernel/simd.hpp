// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <varve/config.hpp>
#if VARVE_USE_XSIMD
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#endif

/// @file
/// SIMD batches: the only header that includes xsimd, and the only one that knows its versions (8.1 to 14). Without xsimd a batch is one scalar.
namespace varve::kernel {

/// Element types that have batches; `bool` and `uint8` go through plain loops, which the compiler vectorizes.
template <class T>
concept lane = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

#if VARVE_USE_XSIMD

#if XSIMD_VERSION_MAJOR < 9 && defined(__AVX512F__) && !defined(__OPTIMIZE__)
/// Instruction set of the batches. xsimd 8.1 passes run-time shift counts where AVX-512 wants constants: AVX2 without optimization.
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
/// a * b + c, rounded once where the hardware can.
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return xsimd::fma(a, b, c);
}
namespace detail {
/// The bits of a batch as a batch of `To` (xsimd 8.1 is told the batch, later versions the element).
template <class To, class From>
VARVE_INLINE batch<To> bits(batch<From> const& v) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::bitwise_cast<batch<To>>(v);
#else
  return xsimd::bitwise_cast<To>(v);
#endif
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
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::hadd(v);
#else
  return xsimd::reduce_add(v);
#endif
}
} // namespace detail

/// The functions of xsimd that `math.hpp` builds on, one name for xsimd and the scalar path.
namespace library {
using xsimd::abs, xsimd::ceil, xsimd::copysign, xsimd::cos, xsimd::erf, xsimd::floor, xsimd::log1p, xsimd::nearbyint, xsimd::sin, xsimd::sqrt,
    xsimd::tan, xsimd::trunc;
} // namespace library

#else // the scalar path

/// One element that behaves as a batch of width 1; integers wrap, as in registers.
template <class T>
struct batch {
  using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>, std::type_identity<T>>::type;
  T v;
  batch() = default;
  constexpr batch(T x) : v(x) {}
  friend constexpr batch operator+(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) + static_cast<W>(b.v)); }
  friend constexpr batch operator-(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) - static_cast<W>(b.v)); }
  friend constexpr batch operator*(batch a, batch b) { return static_cast<T>(static_cast<W>(a.v) * static_cast<W>(b.v)); }
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
/// a * b + c; rounded twice where the hardware has no such instruction, since the library's exact version is slow there.
template <lane T>
VARVE_INLINE batch<T> fma(batch<T> const& a, batch<T> const& b, batch<T> const& c) {
  return a * b + c;
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
template <class T> VARVE_INLINE batch<T> abs(batch<T> x) { return x.v < 0 ? -x : x.v == 0 ? batch<T>(T(0)) : x; }
template <class T> VARVE_INLINE batch<T> ceil(batch<T> x) { return std::ceil(x.v); }
template <class T> VARVE_INLINE batch<T> copysign(batch<T> x, batch<T> y) { return std::copysign(x.v, y.v); }
template <class T> VARVE_INLINE batch<T> cos(batch<T> x) { return std::cos(x.v); }
template <class T> VARVE_INLINE batch<T> erf(batch<T> x) { return std::erf(x.v); }
template <class T> VARVE_INLINE batch<T> floor(batch<T> x) { return std::floor(x.v); }
template <class T> VARVE_INLINE batch<T> log1p(batch<T> x) { return std::log1p(x.v); }
template <class T> VARVE_INLINE batch<T> nearbyint(batch<T> x) { return std::nearbyint(x.v); }
template <class T> VARVE_INLINE batch<T> sin(batch<T> x) { return std::sin(x.v); }
template <class T> VARVE_INLINE batch<T> sqrt(batch<T> x) { return std::sqrt(x.v); }
template <class T> VARVE_INLINE batch<T> tan(batch<T> x) { return std::tan(x.v); }
template <class T> VARVE_INLINE batch<T> trunc(batch<T> x) { return std::trunc(x.v); }
} // namespace library

#endif

/// Whether `V` is a batch.
template <class V>
inline constexpr bool is_batch = detail::element<V>::is_batch;
/// Element type of a batch; a scalar is its own element.
template <class V>
using element_t = typename detail::element<V>::type;
/// Elements in one batch of `T`.
template <class T>
inline constexpr std::size_t lanes = sizeof(batch<T>) / sizeof(T);

/// A value `V` (scalar or batch) with `x` in every lane.
template <class V>
constexpr V broadcast(element_t<V> x) {
  return V(x);
}

namespace detail {
/// Copies the first `n` < lanes elements in pieces of constant size.
template <class T>
VARVE_INLINE void copy_first(T* to, T const* from, std::size_t n) {
#pragma GCC unroll 4
  for (std::size_t piece = lanes<T> / 2; piece > 0; piece /= 2)
    if ((n & piece) != 0) {
      std::memcpy(to, from, piece * sizeof(T));
      to += piece, from += piece;
    }
}
/// Read from element 8 - n on: a mask of n lanes.
inline constexpr std::int32_t mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
} // namespace detail

/// Loads the first `n` < lanes elements; the others become 0 and their memory is not touched.
template <lane T>
VARVE_INLINE batch<T> load_first(T const* p, std::size_t n) {
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  if constexpr (sizeof(batch<T>) == 64) {
    if constexpr (std::is_same_v<T, float>) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
    else if constexpr (std::is_same_v<T, double>) return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
    else if constexpr (sizeof(T) == 4) return _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1), p);
    else return _mm512_maskz_loadu_epi64(static_cast<__mmask8>((1u << n) - 1), p);
  } else
#endif
#if VARVE_USE_XSIMD && defined(__AVX2__)
  if constexpr (sizeof(batch<T>) == 32) {
    __m256i const m = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(detail::mask_bits + 8 - n * (sizeof(T) / 4)));
    if constexpr (std::is_same_v<T, float>) return _mm256_maskload_ps(p, m);
    else if constexpr (std::is_same_v<T, double>) return _mm256_maskload_pd(p, m);
    else if constexpr (sizeof(T) == 4) return _mm256_maskload_epi32(p, m);
    else return _mm256_maskload_epi64(reinterpret_cast<long long const*>(p), m);
  } else
#endif
  {
    T first[lanes<T>]{};
    detail::copy_first(first, p, n);
    return kernel::load(first);
  }
}
/// Stores the first `n` < lanes elements; the memory of the others is not touched.
template <lane T>
VARVE_INLINE void store_first(T* p, std::size_t n, batch<T> const& v) {
#if VARVE_USE_XSIMD && defined(__AVX512F__)
  if constexpr (sizeof(batch<T>) == 64) {
    if constexpr (std::is_same_v<T, float>) _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
    else if constexpr (std::is_same_v<T, double>) _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
    else if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(p, static_cast<__mmask16>((1u << n) - 1), v);
    else _mm512_mask_storeu_epi64(p, static_cast<__mmask8>((1u << n) - 1), v);
  } else
#endif
  { // not the masked store of AVX2, which is slow on some processors
    T first[lanes<T>];
    kernel::store(first, v);
    detail::copy_first<T>(p, first, n);
  }
}

/// Sum of all lanes.
template <lane T>
VARVE_INLINE T reduce_sum(batch<T> const& v) {
  return detail::lane_sum<T>(v);
}
/// Combines all lanes by `f(T, T)`, in order. (xsimd 8.1 has no horizontal maximum.)
template <lane T, class F>
VARVE_INLINE T reduce_lanes(batch<T> const& v, F f) {
  T all[lanes<T>];
  kernel::store(all, v);
  T r = all[0];
  for (std::size_t i = 1; i < lanes<T>; ++i) r = f(r, all[i]);
  return r;
}

namespace detail {
/// Interleaves the low (High = 0) or high halves of two batches. Not xsimd's zip: that of 8.1 works within 128-bit parts.
template <std::size_t High, class T, std::size_t... I>
VARVE_INLINE batch<T> interleave(batch<T> const& a, batch<T> const& b, std::index_sequence<I...>) {
  constexpr std::size_t L = lanes<T>;
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(__builtin_shufflevector(std::bit_cast<native>(a), std::bit_cast<native>(b), (I / 2 + High * L / 2 + I % 2 * L)...));
}
} // namespace detail
/// Rows of a square of lanes x lanes elements become its columns, in registers.
template <lane T>
VARVE_INLINE void transpose(batch<T>* r) {
  constexpr std::size_t L = lanes<T>;
  if constexpr (L > 1) {
#pragma GCC unroll 4
    for (std::size_t stage = 1; stage < L; stage *= 2) {
      batch<T> s[L];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < L / 2; ++i) {
        s[2 * i] = detail::interleave<0>(r[i], r[i + L / 2], std::make_index_sequence<L>{});
        s[2 * i + 1] = detail::interleave<1>(r[i], r[i + L / 2], std::make_index_sequence<L>{});
      }
#pragma GCC unroll 16
      for (std::size_t i = 0; i < L; ++i) r[i] = s[i];
    }
  }
}

/// 1 where `m` holds, else 0: in fused code a boolean lives in the lane type.
template <lane T>
VARVE_INLINE batch<T> from_mask(mask<T> const& m) {
  return kernel::select<T>(m, batch<T>(T(1)), batch<T>(T(0)));
}
/// The lanes that are not 0.
template <lane T>
VARVE_INLINE mask<T> to_mask(batch<T> const& v) {
  return kernel::differ(v, batch<T>(T(0)));
}

/// Applies a scalar function lane by lane: for what has no vector instruction (integer division, `fmod`).
template <lane T, class F, class... B>
VARVE_INLINE batch<T> lanewise(F f, batch<T> const& a, B const&... b) {
  T x[1 + sizeof...(B)][lanes<T>];
  kernel::store(x[0], a);
  [[maybe_unused]] std::size_t k = 0;
  (kernel::store(x[++k], b), ...);
  for (std::size_t i = 0; i < lanes<T>; ++i) {
    if constexpr (sizeof...(B) == 0) x[0][i] = f(x[0][i]);
    else if constexpr (sizeof...(B) == 1) x[0][i] = f(x[0][i], x[1][i]);
    else x[0][i] = f(x[0][i], x[1][i], x[2][i]);
  }
  return kernel::load(x[0]);
}

} // namespace varve::kernel
