// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dtype.hpp>
#include <varve/kernel/convert_batch.hpp>

/// @file
/// Loads and stores registers of a loop body, for memory of any dtype and stride.
namespace varve::fusion {

/// Which lanes of a vector are in use: the first `Live` lanes are in memory, and those before `First` are done already.
template <int Live, int First = 0>
struct lanes_in_use {
  static constexpr int live = Live, first = First;
};
/// Lanes in use if the number of first lanes is known at run time only; it is stored after the loop indices. In
/// `lanes_overlapping` the number of lanes that are done is stored there.
using lanes_counted = lanes_in_use<0>;
template <int Live>
using lanes_overlapping = lanes_in_use<Live, -1>;
template <class M, class V>
VARVE_PART index_t live_lanes([[maybe_unused]] index_t const* i) {
  if constexpr (M::live == 0) return i[max_rank];
  else return M::live;
}

namespace detail {
/// Loads elements `p[0], p[Stride], ...` as a value of the lane type.
template <class V, class M, index_t Stride, class T>
VARVE_PART V load_lanes(T const* p) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V>) {
    return static_cast<V>(*p);
  } else if constexpr (Stride == 0) {
    return V(static_cast<E>(*p));
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    if constexpr (M::live == kernel::lanes<E>) return kernel::load(p);
    else return kernel::load_first(p, M::live);
  } else if constexpr (Stride == 1 && M::live == kernel::lanes<E>) {
    return kernel::load_converted<E>(p);
  } else {
    alignas(64) E all[kernel::lanes<E>]{};
    for (int l = 0; l < M::live; ++l) all[l] = static_cast<E>(p[l * Stride]);
    return kernel::load(all);
  }
}

/// Loads the first `live` elements, which are `stride` apart; both are known at run time.
template <class V, index_t Stride, class T>
VARVE_PART V load_counted(T const* p, index_t stride, index_t live) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V> || Stride == 0) {
    return V(static_cast<E>(*p));
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    return kernel::load_first(p, static_cast<std::size_t>(live));
  } else {
    alignas(64) E all[kernel::lanes<E>]{};
    for (index_t l = 0; l < live; ++l) all[l] = static_cast<E>(p[l * stride]);
    return kernel::load(all);
  }
}

/// Stores lanes to memory. `Fits`: no integer needs to wrap around.
template <class M, index_t Stride, bool Fits = false, class T, class V>
VARVE_PART void store_lanes(T* p, V const& v) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V>) {
    *p = kernel::wrapped<T>(v);
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    if constexpr (M::live == kernel::lanes<E>) kernel::store(p, v);
    else kernel::store_first(p, M::live, v);
  } else if constexpr (Stride == 1 && M::live == kernel::lanes<E>) {
    kernel::store_converted<Fits>(p, v);
  } else {
    alignas(64) E all[kernel::lanes<E>];
    kernel::store(all, v);
    for (int l = 0; l < M::live; ++l) p[l * Stride] = kernel::wrapped<T>(all[l]);
  }
}

template <index_t Stride, class T, class V>
VARVE_PART void store_counted(T* p, V const& v, index_t stride, index_t live) {
  using E = kernel::element_t<V>;
  if constexpr (!kernel::is_batch<V>) {
    *p = kernel::wrapped<T>(v);
  } else if constexpr (Stride == 1 && std::is_same_v<E, T>) {
    kernel::store_first(p, static_cast<std::size_t>(live), v);
  } else {
    alignas(64) E all[kernel::lanes<E>];
    kernel::store(all, v);
    for (index_t l = 0; l < live; ++l) p[l * stride] = kernel::wrapped<T>(all[l]);
  }
}
} // namespace detail

} // namespace varve::fusion
