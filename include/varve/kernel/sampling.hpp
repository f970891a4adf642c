// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/gamma.hpp>
#include <varve/kernel/random.hpp>

#include <cmath>

/// @file
/// Random numbers of distributions, each from 60 random bits. If an element needs more than one random number, its bits
/// are the seed of a stream, so that it depends only on its bits.
namespace varve::kernel {

/// Returns a uniform number in [0, 1), a multiple of 2^-53.
constexpr double uniform_of_bits(std::int64_t bits) { return static_cast<double>(bits >> 7) * 0x1p-53; }
/// Returns a number of the standard normal distribution.
constexpr double normal_of_bits(std::int64_t bits) {
  return kernel::normal<double>(kernel::philox(static_cast<std::uint64_t>(bits), 0, 1), 0);
}

/// Returns a Poisson-distributed count for a rate. Below 10, it counts the uniform numbers whose product stays above
/// e^-rate. Otherwise it uses transformed rejection (Hoermann: The transformed rejection method for generating Poisson
/// random variables, 1993).
inline double poisson_of_bits(double rate, std::int64_t bits) {
  auto const seed = static_cast<std::uint64_t>(bits);
  std::uint64_t used = 0;
  if (!(rate > 0)) return rate; // 0, and NaN
  if (rate < 10) {
    double const limit = std::exp(-rate);
    double product = 1;
    for (std::uint64_t k = 0;; ++k) {
      product *= kernel::uniform<double>(kernel::philox(seed, k / 2, 2), static_cast<int>(k % 2));
      if (product <= limit) return static_cast<double>(k);
    }
  }
  double const b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  double const inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), best = 0.9277 - 3.6224 / (b - 2);
  for (;; ++used) {
    philox_block const block = kernel::philox(seed, used, 2);
    double const u = kernel::uniform<double>(block, 0) - 0.5, v = kernel::uniform<double>(block, 1);
    double const room = 0.5 - std::fabs(u), k = std::floor((2 * a / room + b) * u + rate + 0.43);
    if (room >= 0.07 && v <= best) return k;
    if (k < 0 || (room < 0.013 && v > room)) continue;
    double const left = std::log(v) + std::log(inverse_alpha) - std::log(a / (room * room) + b);
    if (left <= k * std::log(rate) - rate - gamma::log(k + 1)) return k;
  }
}

} // namespace varve::kernel
