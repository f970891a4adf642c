// SPDX-License-Identifier: BSL-1.0
#pragma once
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
#include <varve/core/dims.hpp>
#include <varve/core/message.hpp>

#include <cstdint>
#include <random>
#include <vector>

/// @file
/// What the kernel tests share: random strided memory and the plain walk over all indices.
namespace kernel_test {

using varve::dims, varve::index_t;

inline std::mt19937& engine() {
  static std::mt19937 generator(7);
  return generator;
}
inline int random_int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine()); }

/// Calls f(index) for every index of a shape, in row-major order.
template <class F>
void visit_every_index(dims const& sizes, F f) {
  dims at = sizes;
  for (int d = 0; d < at.n; ++d) at.v[d] = 0;
  if (varve::numel(sizes) == 0) return;
  for (;;) {
    f(at);
    int d = sizes.n - 1;
    while (d >= 0 && ++at.v[d] == sizes.v[d]) at.v[d--] = 0;
    if (d < 0) return;
  }
}

/// Memory with random strides for a shape: permuted, with gaps, reversed or broadcast dimensions.
template <class T>
struct strided {
  std::vector<unsigned char> memory; // not vector<T>: vector<bool> has no memory of its elements
  dims strides;
  index_t origin = 0;
  strided(dims const& sizes, bool may_broadcast, bool plain = false) : strides(sizes) {
    int order[varve::max_rank];
    for (int d = 0; d < sizes.n; ++d) order[d] = sizes.n - 1 - d;
    if (!plain)
      for (int d = sizes.n - 1; d > 0; --d) std::swap(order[d], order[random_int(0, d)]);
    index_t step = 1, last = 0;
    for (int k = 0; k < sizes.n; ++k) {
      int const d = order[k];
      if (may_broadcast && !plain && random_int(0, 3) == 0) {
        strides.v[d] = 0;
        continue;
      }
      if (!plain && random_int(0, 3) == 0) step *= 2;
      strides.v[d] = step;
      index_t const size = sizes[d], extent = (size > 0 ? size - 1 : 0) * step;
      last += extent;
      if (!plain && random_int(0, 4) == 0) strides.v[d] = -step, origin += extent;
      step *= size > 0 ? size : 1;
    }
    memory.resize(static_cast<std::size_t>(last + 1) * sizeof(T));
    for (index_t i = 0; i <= last; ++i) {
      if constexpr (std::is_same_v<T, bool>) base()[i] = random_int(0, 1) != 0;
      else base()[i] = static_cast<T>(std::is_unsigned_v<T> ? random_int(0, 9) : random_int(-9, 9));
    }
  }
  T* base() { return reinterpret_cast<T*>(memory.data()); }
  T* data() { return base() + origin; }
  T& operator[](dims const& at) {
    index_t o = 0;
    for (int d = 0; d < at.n; ++d) o += at.v[d] * strides.v[d];
    return data()[o];
  }
};

inline dims random_sizes(int rank, int most) {
  dims s;
  for (int d = 0; d < rank; ++d) s.push_back(random_int(0, 9) == 0 ? 1 : random_int(1, most));
  return s;
}

} // namespace kernel_test
