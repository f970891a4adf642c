// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <bit>
#include <cstdint>

/// @file
/// Arithmetic modulo two primes, `p = 2 q + 1`: values modulo p and exponents modulo q. A square modulo p has as many
/// powers as there are exponents modulo q. Therefore e^(a + b) = e^a e^b and e^(log x) = x hold for residues as they do
/// for numbers.
namespace varve::residue {

__extension__ typedef unsigned __int128 product;
inline constexpr std::uint64_t q = 1152921504606845789u, p = 2 * q + 1;

template <std::uint64_t M>
constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(product{a} * b % M);
}
template <std::uint64_t M>
constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return a + b < M ? a + b : a + b - M; // both are below 2^62
}
template <std::uint64_t M>
constexpr std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
  return a >= b ? a - b : a + M - b;
}
template <std::uint64_t M>
constexpr std::uint64_t power(std::uint64_t x, std::uint64_t n) {
  std::uint64_t r = 1;
  for (; n; n >>= 1, x = static_cast<std::uint64_t>(
                         product{x} * x % M)) // written out: each call saved is saved a thousand times in the compiler
    if (n & 1) r = static_cast<std::uint64_t>(product{r} * x % M);
  return r;
}
/// The residue that stands for e: the square of a random number. A simple square such as 4 is a root of polynomials
/// that programs contain; e is not.
inline constexpr std::uint64_t base = times<p>(1397604287562718849u, 1397604287562718849u);
/// Returns 1 / x by Euclid's algorithm; 0 for 0.
template <std::uint64_t M>
constexpr std::uint64_t inverse(std::uint64_t x) {
  std::int64_t a = static_cast<std::int64_t>(x), b = static_cast<std::int64_t>(M), s = 1, t = 0; // a = s x, b = t x
  while (a > 1) {
    std::int64_t const n = b / a, rest = b - n * a, next = t - n * s;
    b = a, a = rest, t = s, s = next;
  }
  return a == 0 ? 0 : static_cast<std::uint64_t>(s < 0 ? s + static_cast<std::int64_t>(M) : s);
}
/// Returns the residue of a number, rounded to 40 bits, so that products of constants that differ by rounding only have
/// the same residue. Infinities and NaN have none.
template <std::uint64_t M>
constexpr std::uint64_t of(double x) {
  if (x == 0) return 0;
  if (x == 1 || x == -1) return x == 1 ? 1 : M - 1;
  std::uint64_t const bits = std::bit_cast<std::uint64_t>(x < 0 ? -x : x) + (1u << 11);
  int const exponent = static_cast<int>(bits >> 52) - 1023 - 40;
  std::uint64_t const mantissa = ((bits >> 12) & ((std::uint64_t{1} << 40) - 1)) | std::uint64_t{1} << 40;
  std::uint64_t const scale = exponent < 0 ? power<M>((M + 1) / 2, static_cast<std::uint64_t>(-exponent))
                                           : power<M>(2, static_cast<std::uint64_t>(exponent)); // (M + 1) / 2 = 1 / 2
  std::uint64_t const r = times<M>(mantissa, scale);
  return x < 0 ? minus<M>(0, r) : r;
}
/// Returns a pseudorandom number derived from two numbers (SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t seed, std::uint64_t x) {
  std::uint64_t z = (seed ^ (x + 0x9E3779B97F4A7C15u + (seed << 6) + (seed >> 2))) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

} // namespace varve::residue
