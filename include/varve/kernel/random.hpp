// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/kernel/math.hpp>

#include <cstdint>

/// @file
/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2,
/// 3; SC 2011). Element `i` of a stream depends on nothing but the seed and `i`: batches, threads and the compiler
/// agree.
namespace varve::kernel {

/// Four random words.
struct philox_block {
  std::uint32_t v[4];
};

/// Block number `offset` of the stream `seed` (word 2 and 3 of the counter hold `stream`, for independent uses of one
/// seed).
constexpr philox_block philox(std::uint64_t seed, std::uint64_t offset, std::uint64_t stream = 0) {
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::uint32_t c0 = low(offset), c1 = high(offset), c2 = low(stream), c3 = high(stream), k0 = low(seed),
                k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const p = std::uint64_t{0xD2511F53u} * c0, q = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = high(q) ^ c1 ^ k0;
    c2 = high(p) ^ c3 ^ k1;
    c1 = low(q);
    c3 = low(p);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Numbers one block gives: four floats or two doubles.
template <floating T>
inline constexpr int per_block = sizeof(T) == 4 ? 4 : 2;

/// Number `i` of a block, uniform in [0, 1): multiples of 2^-24 (float) or 2^-53 (double).
template <floating T>
constexpr T uniform(philox_block const& b, int i) {
  if constexpr (sizeof(T) == 4) return static_cast<T>(b.v[i] >> 8) * T(0x1p-24);
  else return static_cast<T>((std::uint64_t{b.v[2 * i]} << 32 | b.v[2 * i + 1]) >> 11) * T(0x1p-53);
}
/// Number `i` of a block, of the standard normal distribution: pairs of uniform numbers by Box and Muller.
template <floating T>
constexpr T normal(philox_block const& b, int i) {
  T const u = T(1) - kernel::uniform<T>(b, i & ~1); // in (0, 1]: its logarithm is finite
  T const angle = T(6.283185307179586476925L) * kernel::uniform<T>(b, i | 1);
  T const radius = kernel::sqrt(T(-2) * kernel::log(u));
  return radius * (i & 1 ? kernel::sin(angle) : kernel::cos(angle));
}

/// Fills `n` contiguous elements with uniform numbers of the stream; returns the number of blocks used, by which the
/// caller advances its offset.
template <floating T>
constexpr std::uint64_t fill_uniform(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t used = 0;
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < per_block<T> && i < n; ++j) out[i++] = kernel::uniform<T>(b, j);
  }
  return used;
}
/// The same with normal numbers.
template <floating T>
constexpr std::uint64_t fill_normal(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t used = 0;
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < per_block<T> && i < n; ++j) out[i++] = kernel::normal<T>(b, j);
  }
  return used;
}
/// The same with integers in [low, high): the remainder of 64 random bits, whose bias is below 2^-32 for 32-bit ranges.
/// The element type must hold them.
template <class T>
constexpr std::uint64_t fill_integers(index_t n, T* out, std::int64_t low, std::int64_t high, std::uint64_t seed,
                                      std::uint64_t offset) {
  std::uint64_t used = 0;
  auto const range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  for (index_t i = 0; i < n; ++used) {
    philox_block const b = kernel::philox(seed, offset + used);
    for (int j = 0; j < 2 && i < n; ++j) {
      std::uint64_t const bits = std::uint64_t{b.v[2 * j]} << 32 | b.v[2 * j + 1];
      out[i++] = static_cast<T>(static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bits % range));
    }
  }
  return used;
}
/// 0, 1, ..., n - 1 in random order: from the end on each place takes one of those up to it (Fisher and Yates).
template <class T>
constexpr std::uint64_t fill_permutation(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  for (index_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  philox_block b{};
  for (index_t i = n - 1, k = 0; i > 0; --i, ++k) {
    if (k % 2 == 0) b = kernel::philox(seed, offset + static_cast<std::uint64_t>(k / 2));
    std::uint64_t const bits = std::uint64_t{b.v[2 * (k % 2)]} << 32 | b.v[2 * (k % 2) + 1];
    auto const j = static_cast<index_t>(bits % static_cast<std::uint64_t>(i + 1));
    T const t = out[i];
    out[i] = out[j];
    out[j] = t;
  }
  return static_cast<std::uint64_t>(n / 2);
}

} // namespace varve::kernel
