// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/convert_batch.hpp>
#include <varve/kernel/simd.hpp>

#include <type_traits>
#include <utility>

/// @file
/// Loops over vectors in the style of hand-written code, used by the code that `emit_cpp` generates.
namespace varve::kernel {

/// Tag: the first `N` lanes of a batch are live, that is, they are used.
template <int N>
struct live_lanes {
  static constexpr int count = N;
};
template <lane T>
inline constexpr live_lanes<static_cast<int>(lanes<T>)> all_lanes{};

/// Calls `f(i, live)` for i = 0, L, 2 L, ... below `N`, where L is the number of lanes of a batch of `T`. In the last
/// call fewer lanes may be live.
template <lane T, index_t N, class F>
VARVE_INLINE void for_vectors(F const& f) {
  constexpr index_t L = lanes<T>, whole = N / L * L;
  for (index_t i = 0; i < whole; i += L) f(i, all_lanes<T>);
  if constexpr (whole < N) f(whole, live_lanes<static_cast<int>(N - whole)>{});
}

/// Calls `f(i, live)` for i = `from`, `from` + L, ... below `to`, where L is the number of lanes of a batch of `T`.
/// `from` and `to` are multiples of L; `to` may also be `N`, and fewer lanes are then live in the last call.
template <lane T, index_t N, class F>
VARVE_INLINE void for_vectors(index_t from, index_t to, F const& f) {
  constexpr index_t L = lanes<T>, whole = N / L * L;
  index_t const end = to < whole ? to : whole;
  for (index_t i = from; i < end; i += L) f(i, all_lanes<T>);
  if constexpr (whole < N)
    if (to == N) f(whole, live_lanes<static_cast<int>(N - whole)>{});
}

/// The registers of a reduction whose vectors take turns.
template <lane T, int N>
struct registers {
  batch<T> all[N];
  VARVE_INLINE explicit registers(T start) {
    for (batch<T>& r : all) r = batch<T>(start);
  }
  VARVE_INLINE batch<T>& operator[](int k) { return all[k]; }
};
/// Calls `f(i, live, way)` like `for_vectors`, for successive vectors with `way` = 0, 1, ..., `Ways` - 1 in turn, as a
/// constant. A reduction with one register for each way need not wait for the vector before.
template <lane T, index_t N, int Ways, class F>
VARVE_INLINE void for_vectors_in_turn(index_t from, index_t to, F const& f) {
  constexpr index_t L = lanes<T>, whole = N / L * L;
  constexpr std::integral_constant<int, 0> first{};
  index_t const end = to < whole ? to : whole;
  index_t i = from;
  for (; i + Ways * L <= end; i += Ways * L)
    [&]<int... W>(std::integer_sequence<int, W...>) __attribute__((always_inline)) {
      (f(i + W * L, all_lanes<T>, std::integral_constant<int, W>{}), ...);
    }(std::make_integer_sequence<int, Ways>{});
  for (; i < end; i += L) f(i, all_lanes<T>, first);
  if constexpr (whole < N)
    if (to == N) f(whole, live_lanes<static_cast<int>(N - whole)>{}, first);
}

/// Loads the live lanes from `p` on. The others are 0, and their memory is not accessed.
template <lane T, int N>
VARVE_INLINE batch<T> load(T const* p, live_lanes<N>) {
  if constexpr (N == static_cast<int>(lanes<T>)) return kernel::load(p);
  else return kernel::load_first(p, N);
}
/// Loads `p[0]`, `p[stride]`, ..., converted to `T`. Lanes that are not live are 0.
template <lane T, class E, int N>
VARVE_INLINE batch<T> load_strided(E const* p, index_t stride, live_lanes<N>) {
  if (N == static_cast<int>(lanes<T>) && stride == 1) return kernel::load_converted<T>(p);
  T all[lanes<T>]{};
  for (int l = 0; l < N; ++l) all[l] = static_cast<T>(p[l * stride]);
  return kernel::load(all);
}
/// Stores the live lanes from `p` on.
template <lane T, int N>
VARVE_INLINE void store(T* p, batch<T> const& v, live_lanes<N>) {
  if constexpr (N == static_cast<int>(lanes<T>)) kernel::store(p, v);
  else kernel::store_first(p, N, v);
}
/// Stores the live lanes to `p[0]`, `p[stride]`, ..., converted to the element type there.
template <lane T, class E, int N>
VARVE_INLINE void store_strided(E* p, index_t stride, batch<T> const& v, live_lanes<N>) {
  if (N == static_cast<int>(lanes<T>) && stride == 1) return kernel::store_converted(p, v);
  T all[lanes<T>];
  kernel::store(all, v);
  for (int l = 0; l < N; ++l) p[l * stride] = kernel::wrapped<E>(all[l]);
}
/// Returns `x` in the live lanes and `old` in the others.
template <lane T, int N>
VARVE_INLINE batch<T> keep(batch<T> const& x, batch<T> const& old, live_lanes<N>) {
  if constexpr (N == static_cast<int>(lanes<T>)) {
    return x;
  } else {
    constexpr T index[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static_assert(lanes<T> <= 16);
    return kernel::select<T>(kernel::load(index) < batch<T>(static_cast<T>(N)), x, old);
  }
}
/// Returns `start`, `start + step`, `start + 2 step`, ...
template <lane T>
VARVE_INLINE batch<T> ramp(T start, T step) {
  T all[lanes<T>];
  for (std::size_t l = 0; l < lanes<T>; ++l) all[l] = start + static_cast<T>(l) * step;
  return kernel::load(all);
}

} // namespace varve::kernel
