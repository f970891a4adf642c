// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/core/threads.hpp>
#include <varve/kernel/convert_batch.hpp>
#include <varve/kernel/math.hpp>

#include <cstdint>

/// @file
/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2,
/// 3; SC 2011). Element `i` of a stream depends only on the seed and on `i`, so that batches, threads and constant
/// expressions agree.
namespace varve::kernel {

/// A block of four random words.
struct philox_block {
  std::uint32_t v[4];
};

/// Returns block number `offset` of the stream `seed`. Words 2 and 3 of the counter hold `stream`, for independent uses
/// of the same seed.
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

/// Count of numbers that one block yields: four floats or two doubles.
template <floating T>
inline constexpr int per_block = sizeof(T) == 4 ? 4 : 2;

/// Returns number `i` of a block, uniform in [0, 1): a multiple of 2^-24 (float) or 2^-53 (double).
template <floating T>
constexpr T uniform(philox_block const& b, int i) {
  if constexpr (sizeof(T) == 4) return static_cast<T>(b.v[i] >> 8) * T(0x1p-24);
  else return static_cast<T>((std::uint64_t{b.v[2 * i]} << 32 | b.v[2 * i + 1]) >> 11) * T(0x1p-53);
}
/// Returns number `i` of a block with standard normal distribution: pairs of uniform numbers by Box and Muller.
template <floating T>
constexpr T normal(philox_block const& b, int i) {
  T const u = T(1) - kernel::uniform<T>(b, i & ~1); // in (0, 1]: its logarithm is finite
  T const angle = T(6.283185307179586476925L) * kernel::uniform<T>(b, i | 1);
  // floats are computed in double, so that all code paths agree
  auto const wide = static_cast<double>(angle);
  T const radius = kernel::sqrt(T(-2) * static_cast<T>(kernel::log(static_cast<double>(u))));
  return radius * static_cast<T>(i & 1 ? kernel::sin(wide) : kernel::cos(wide));
}

namespace detail {
/// Number of blocks that are computed together at run time.
inline constexpr int blocks_at_once = 64;
/// Computes the words of blocks `offset`, `offset + 1`, ... of a stream: `w[k]` receives word k of each. (These are
/// plain loops, which compilers vectorize.)
VARVE_VECTORIZED inline void philox_blocks(std::uint64_t seed, std::uint64_t offset,
                                           std::uint32_t (&w)[4][blocks_at_once]) {
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int i = 0; i < blocks_at_once; ++i) {
    std::uint64_t const at = offset + static_cast<std::uint64_t>(i);
    w[0][i] = static_cast<std::uint32_t>(at), w[1][i] = static_cast<std::uint32_t>(at >> 32);
    w[2][i] = 0, w[3][i] = 0;
  }
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < blocks_at_once; ++i) {
      std::uint64_t const p = std::uint64_t{0xD2511F53u} * w[0][i], q = std::uint64_t{0xCD9E8D57u} * w[2][i];
      w[0][i] = static_cast<std::uint32_t>(q >> 32) ^ w[1][i] ^ k0;
      w[2][i] = static_cast<std::uint32_t>(p >> 32) ^ w[3][i] ^ k1;
      w[1][i] = static_cast<std::uint32_t>(q), w[3][i] = static_cast<std::uint32_t>(p);
    }
}
/// Computes 1 - u and 2 pi v for the pairs u, v of uniform numbers in two words of each block.
VARVE_VECTORIZED inline void uniform_pairs(std::uint32_t const* u, std::uint32_t const* v, float* size, float* angle) {
  for (int i = 0; i < blocks_at_once; ++i) {
    size[i] = 1.0f - static_cast<float>(static_cast<std::int32_t>(u[i] >> 8)) * 0x1p-24f;
    angle[i] = 6.283185307179586476925f * (static_cast<float>(static_cast<std::int32_t>(v[i] >> 8)) * 0x1p-24f);
  }
}
/// Computes logarithm, sine and cosine in double and rounds. All machines agree on these floats, except for about one
/// in many millions.
inline void normal_pairs(float const* size, float const* angle, float* even, float* odd) {
  using V = batch<double>;
  constexpr auto L = static_cast<int>(lanes<double>);
  float log[blocks_at_once];
  for (int i = 0; i < blocks_at_once; i += L) {
    kernel::store_converted<true>(log + i, kernel::log<double>(kernel::load_converted<double>(size + i)));
    V const a = kernel::load_converted<double>(angle + i);
    kernel::store_converted<true>(even + i, kernel::cos<double>(a));
    kernel::store_converted<true>(odd + i, kernel::sin<double>(a));
  }
  constexpr auto M = static_cast<int>(lanes<float>);
  for (int i = 0; i < blocks_at_once; i += M) {
    batch<float> const radius = kernel::sqrt<float>(batch<float>(-2.0f) * kernel::load(log + i));
    kernel::store<float>(even + i, radius * kernel::load(even + i));
    kernel::store<float>(odd + i, radius * kernel::load(odd + i));
  }
}
/// Fills `out` with the normal numbers of `blocks_at_once` blocks.
template <class = void>
VARVE_NOINLINE void fill_normal_blocks(float* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint32_t w[4][blocks_at_once];
  float size[blocks_at_once], angle[blocks_at_once], x[4][blocks_at_once];
  detail::philox_blocks(seed, offset, w);
  for (int k = 0; k < 4; k += 2) {
    detail::uniform_pairs(w[k], w[k + 1], size, angle);
    detail::normal_pairs(size, angle, x[k], x[k + 1]);
  }
  for (int i = 0; i < blocks_at_once; ++i)
    for (int k = 0; k < 4; ++k) out[4 * i + k] = x[k][i];
}
/// Fills `out` with the uniform numbers of `blocks_at_once` blocks.
VARVE_VECTORIZED inline void fill_uniform_blocks(float* out, std::uint64_t seed, std::uint64_t offset) {
  std::uint32_t w[4][blocks_at_once];
  detail::philox_blocks(seed, offset, w);
  for (int i = 0; i < blocks_at_once; ++i)
    for (int k = 0; k < 4; ++k) out[4 * i + k] = static_cast<float>(static_cast<std::int32_t>(w[k][i] >> 8)) * 0x1p-24f;
}
/// Fills `n` elements by blocks of `PerBlock` numbers and returns the number of blocks. `one(block, count, to)` writes
/// the numbers of one block and, if `Together`, `many(to, block)` those of `blocks_at_once` blocks. Threads share the
/// elements if `Cost` times their number is large enough, since a number depends only on its index.
template <class T, int PerBlock, bool Together, int Cost, class Many, class One>
constexpr std::uint64_t fill_by_blocks(index_t n, T* out, std::uint64_t offset, Many const& many, One const& one) {
  constexpr index_t unit = PerBlock * blocks_at_once;
  auto const from_to = [&](index_t i, index_t end) {
    if constexpr (Together)
      if (!std::is_constant_evaluated())
        for (; i + unit <= end; i += unit) many(out + i, offset + static_cast<std::uint64_t>(i / PerBlock));
    for (; i < end; i += PerBlock)
      one(offset + static_cast<std::uint64_t>(i / PerBlock), end - i < PerBlock ? end - i : PerBlock, out + i);
  };
  varve::fusion::share(n, unit, Cost * n, from_to);
  return static_cast<std::uint64_t>((n + PerBlock - 1) / PerBlock);
}
/// True if floating-point numbers of this type are computed from many blocks at once.
template <class T>
inline constexpr bool made_together = sizeof(T) == 4 && lanes<double> > 1;
} // namespace detail

/// Fills `n` contiguous elements with uniform numbers of the stream. Returns the number of blocks used, by which the
/// caller advances its offset.
template <floating T>
constexpr std::uint64_t fill_uniform(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  return detail::fill_by_blocks<T, per_block<T>, detail::made_together<T>, 1>(
      n, out, offset, [=](auto* to, std::uint64_t at) { detail::fill_uniform_blocks(to, seed, at); },
      [=](std::uint64_t at, index_t count, T* to) {
        philox_block const b = kernel::philox(seed, at);
        for (int j = 0; j < count; ++j) to[j] = kernel::uniform<T>(b, j);
      });
}
/// Fills `n` contiguous elements with normal numbers of the stream. For floats, logarithm, sine and cosine are computed
/// in double and rounded. Returns the number of blocks used.
template <floating T>
constexpr std::uint64_t fill_normal(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  return detail::fill_by_blocks<T, per_block<T>, detail::made_together<T>, 8>(
      n, out, offset, [=](auto* to, std::uint64_t at) { detail::fill_normal_blocks<>(to, seed, at); },
      [=](std::uint64_t at, index_t count, T* to) {
        philox_block const b = kernel::philox(seed, at);
        for (int j = 0; j < count; ++j) to[j] = kernel::normal<T>(b, j);
      });
}
namespace detail {
/// Remainders by a fixed number, without divisions.
class remainders {
public:
  constexpr explicit remainders(std::uint64_t by) : by_(by), inverse_(~std::uint64_t{0} / by) {}
  constexpr std::uint64_t operator()(std::uint64_t x) const {
    __extension__ using wide = unsigned __int128;
    auto const quotient = static_cast<std::uint64_t>(wide{x} * inverse_ >> 64); // up to 2 too small
    std::uint64_t r = x - quotient * by_;
    r = r >= by_ ? r - by_ : r;
    return r >= by_ ? r - by_ : r;
  }

private:
  std::uint64_t by_, inverse_;
};
} // namespace detail
/// Fills `n` contiguous elements with integers in [low, high), which the element type must be able to hold. They are
/// remainders of 64 random bits, whose bias is below 2^-32 for 32-bit ranges. Returns the number of blocks used.
template <class T>
constexpr std::uint64_t fill_integers(index_t n, T* out, std::int64_t low, std::int64_t high, std::uint64_t seed,
                                      std::uint64_t offset) {
  detail::remainders const remainder(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  auto const of_words = [=](std::uint32_t above, std::uint32_t below) {
    std::uint64_t const r = remainder(std::uint64_t{above} << 32 | below);
    return static_cast<T>(static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + r));
  };
  return detail::fill_by_blocks<T, 2, true, 1>(
      n, out, offset,
      [=](T* to, std::uint64_t at) {
        std::uint32_t w[4][detail::blocks_at_once];
        detail::philox_blocks(seed, at, w);
        for (int k = 0; k < detail::blocks_at_once; ++k)
          to[2 * k] = of_words(w[0][k], w[1][k]), to[2 * k + 1] = of_words(w[2][k], w[3][k]);
      },
      [=](std::uint64_t at, index_t count, T* to) {
        philox_block const b = kernel::philox(seed, at);
        for (int j = 0; j < count; ++j) to[j] = of_words(b.v[2 * j], b.v[2 * j + 1]);
      });
}
/// Writes 0, 1, ..., n - 1 in random order (Fisher-Yates shuffle from the end). The exchanged index is a 64-bit
/// fraction of the candidates, whose bias is below n / 2^64. Returns the number of blocks used.
template <class T>
constexpr std::uint64_t fill_permutation(index_t n, T* out, std::uint64_t seed, std::uint64_t offset) {
  __extension__ using wide = unsigned __int128;
  constexpr index_t many = 2 * detail::blocks_at_once;
  for (index_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  std::uint64_t bits[many]{};
  for (index_t i = n - 1, k = 0; i > 0; --i, ++k) {
    if (k % many == 0)
      detail::fill_by_blocks<std::uint64_t, 2, true, 1>(
          i < many ? i : many, bits, offset + static_cast<std::uint64_t>(k / 2),
          [=](std::uint64_t* to, std::uint64_t at) {
            std::uint32_t w[4][detail::blocks_at_once];
            detail::philox_blocks(seed, at, w);
            for (int b = 0; b < detail::blocks_at_once; ++b)
              to[2 * b] = std::uint64_t{w[0][b]} << 32 | w[1][b],
                     to[2 * b + 1] = std::uint64_t{w[2][b]} << 32 | w[3][b];
          },
          [=](std::uint64_t at, index_t count, std::uint64_t* to) {
            philox_block const b = kernel::philox(seed, at);
            for (int j = 0; j < count; ++j) to[j] = std::uint64_t{b.v[2 * j]} << 32 | b.v[2 * j + 1];
          });
    auto const j = static_cast<index_t>(wide{bits[k % many]} * static_cast<std::uint64_t>(i + 1) >> 64);
    T const t = out[i];
    out[i] = out[j];
    out[j] = t;
  }
  return static_cast<std::uint64_t>(n / 2);
}

} // namespace varve::kernel
