// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/// @file
/// Functions of batches common to xsimd and the scalar path: traits, partial loads and stores, horizontal folds,
/// conditions as lanes, transposition.
namespace varve::kernel {

/// True if `V` is a batch.
template <class V>
inline constexpr bool is_batch = detail::element<V>::is_batch;
/// Element type of a batch; a scalar is its own element.
template <class V>
using element_t = typename detail::element<V>::type;
/// Number of elements in a batch of `T`.
template <class T>
inline constexpr std::size_t lanes = sizeof(batch<T>) / sizeof(T);

/// Returns a value of type `V` (scalar or batch) with `x` in every lane.
template <class V>
VARVE_INLINE constexpr V broadcast(element_t<V> x) {
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
/// Mask table: 32-byte reads from element 8 - n on have a mask of n lanes.
inline constexpr std::int32_t mask_bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
} // namespace detail

/// Loads the first `n` < lanes elements. The other lanes are 0, and their memory is not accessed.
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
/// Loads the first 0 < `n` < lanes elements. The other lanes are copies of the first, so that functions are only called
/// with values of the caller.
template <lane T>
VARVE_INLINE batch<T> load_filled(T const* p, std::size_t n) {
  static_assert(lanes<T> <= 16);
  constexpr T index[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  T first;
  std::memcpy(&first, p, sizeof(T)); // the memory may hold another type of this size
  return kernel::select<T>(kernel::load(index) < batch<T>(static_cast<T>(n)), kernel::load_first(p, n),
                           batch<T>(first));
}
/// Stores the first `n` < lanes elements. The memory of the others is not accessed.
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

/// Returns the sum of all lanes.
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
/// Moves lane I to lane I ^ Step.
template <std::size_t Step, class T, std::size_t... I>
VARVE_INLINE batch<T> exchange(batch<T> const& v, std::index_sequence<I...>) {
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(
      static_cast<native>(__builtin_shufflevector(std::bit_cast<native>(v), std::bit_cast<native>(v), (I ^ Step)...)));
}
template <std::size_t Step, class T, class F>
VARVE_INLINE batch<T> fold_lanes(batch<T> const& v, F const& f) {
  if constexpr (Step < lanes<T>)
    return detail::fold_lanes<2 * Step, T>(f(v, detail::exchange<Step, T>(v, std::make_index_sequence<lanes<T>>{})), f);
  else return v;
}
} // namespace detail
/// Combines all lanes by `f(batch, batch)`, for which order and grouping must not matter. Takes as many steps as the
/// binary logarithm of the number of lanes.
template <lane T, class F>
VARVE_INLINE T reduce_tree(batch<T> const& v, F f) {
  T all[lanes<T>];
  kernel::store(all, detail::fold_lanes<1, T>(v, f));
  return all[0];
}

namespace detail {
/// Loads the first `live` lanes from `p` on; the others are 0.
template <lane T>
VARVE_INLINE batch<T> load_live(T const* p, std::ptrdiff_t live) {
  if (live == static_cast<std::ptrdiff_t>(lanes<T>)) return kernel::load(p);
  return kernel::load_first(p, static_cast<std::size_t>(live));
}
template <lane T>
VARVE_INLINE void store_live(T* p, std::ptrdiff_t live, batch<T> const& v) {
  if (live == static_cast<std::ptrdiff_t>(lanes<T>)) kernel::store(p, v);
  else kernel::store_first<T>(p, static_cast<std::size_t>(live), v);
}
} // namespace detail

namespace detail {
/// Interleaves the low (High = 0) or high halves of two batches. (It does not use xsimd's zip, since that of 8.1 works
/// within 128-bit parts.)
template <std::size_t High, class T, std::size_t... I>
VARVE_INLINE batch<T> interleave(batch<T> const& a, batch<T> const& b, std::index_sequence<I...>) {
  constexpr std::size_t L = lanes<T>;
  typedef T native __attribute__((vector_size(sizeof(batch<T>))));
  return std::bit_cast<batch<T>>(__builtin_shufflevector(std::bit_cast<native>(a), std::bit_cast<native>(b),
                                                         (I / 2 + High * L / 2 + I % 2 * L)...));
}
} // namespace detail
/// Transposes a square of lanes x lanes elements in registers.
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

/// Returns 1 where `m` holds, else 0: in fused code a boolean is stored in the lane type.
template <lane T>
VARVE_INLINE batch<T> from_mask(mask<T> const& m) {
  return kernel::select<T>(m, batch<T>(T(1)), batch<T>(T(0)));
}
/// Returns the mask of the lanes that are not 0.
template <lane T>
VARVE_INLINE mask<T> to_mask(batch<T> const& v) {
  return kernel::differ(v, batch<T>(T(0)));
}

/// Applies a scalar function lane by lane, for operations without a vector instruction (integer division, `fmod`).
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
