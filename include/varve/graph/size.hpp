// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>
#include <varve/graph/list.hpp>

/// @file
/// Sizes that are known when a program runs. A function with symbolic sizes is traced and planned twice, for sample sizes, which are large primes. Every number that differs between the
/// two plans is read back as an expression of the symbols. So tracing and planning compute with plain numbers, and treat a symbolic size as a large one that equals no other.
namespace varve::loop {

/// Most symbols that one function may have.
inline constexpr int max_symbols = 6;
/// The sizes that stand for the symbols in the first and in the second plan. Products of three of them leave room for a static factor of some thousands. They are 15 modulo 16, and in the
/// same order, so that estimates which count registers prefer the same symbols in both plans.
inline constexpr index_t samples[2][max_symbols] = {{65551, 70207, 75391, 80527, 86239, 92383}, {66959, 71711, 77023, 82351, 88079, 94351}};

/// A size as an expression: `constant + symbol * scale`, where the scale may be another expression, `inner`, of the same list.
struct size_term {
  index_t constant;
  int symbol;
  index_t scale;
  int inner; // before this one; -1: `scale`
  friend constexpr bool operator==(size_term const& a, size_term const& b) { return a.constant == b.constant && a.symbol == b.symbol && a.scale == b.scale && a.inner == b.inner; }
};

/// In a finished plan: the number that stands for expression `k`. No other number is as large.
constexpr index_t run_time_size(int k) { return (index_t{1} << 62) + k; }
constexpr bool is_run_time(index_t size) { return size >= index_t{1} << 62; }
constexpr int term_of(index_t size) { return static_cast<int>(size - (index_t{1} << 62)); }

/// Reads pairs of numbers back as expressions; equal ones are kept once. The first expressions are the symbols themselves.
struct size_reader {
  list<size_term> terms{};
  int symbols;
  bool failed = false; // a pair was no expression of the symbols

  constexpr explicit size_reader(int symbols_) : symbols(symbols_) {
    for (int s = 0; s < symbols; ++s) terms.push_back({0, s, 1, -1});
  }
  /// The number itself when both are equal, otherwise one that `is_run_time`.
  constexpr index_t read(index_t first, index_t second) {
    if (first == second && !is_run_time(first)) return first;
    index_t const found = expression(first, second, 0);
    failed = failed || found == none;
    return found;
  }
  constexpr void read(dims& first, dims const& second) {
    failed = failed || first.n != second.n;
    for (int k = 0; k < first.n && k < second.n; ++k) first[k] = read(first[k], second[k]);
  }

private:
  static constexpr index_t none = -1;
  static constexpr index_t greatest_constant = index_t{1} << 24;

  constexpr index_t expression(index_t a, index_t b, int depth) {
    if (a == b || depth > 4) return none;
    for (bool const divides : {true, false}) // products first
      for (int s = 0; s < symbols; ++s) {
        index_t const p = samples[0][s], q = samples[1][s], r = divides ? 0 : remainder(a, p, b, q);
        if (r > greatest_constant || r < -greatest_constant || (a - r) % p != 0 || (b - r) % q != 0) continue;
        index_t const x = (a - r) / p, y = (b - r) / q;
        if (x == y) return kept({r, s, x, -1});
        if (index_t const inner = expression(x, y, depth + 1); inner != none) return kept({r, s, 0, term_of(inner)});
      }
    return none;
  }
  /// The number next to 0 that leaves what `a` leaves when divided by the prime `p`, and what `b` leaves when divided by `q`.
  static constexpr index_t remainder(index_t a, index_t p, index_t b, index_t q) {
    auto modulo = [](index_t x, index_t m) { return (x % m + m) % m; };
    index_t inverse = 1, base = modulo(p, q); // of p modulo q: p^(q - 2)
    for (index_t e = q - 2; e > 0; e /= 2, base = base * base % q)
      if (e % 2) inverse = inverse * base % q;
    index_t const start = modulo(a, p), r = start + p * (modulo(b - start, q) * inverse % q);
    return 2 * r > p * q ? r - p * q : r;
  }
  constexpr index_t kept(size_term const& t) {
    for (std::size_t k = 0; k < terms.size(); ++k)
      if (terms[k] == t) return run_time_size(static_cast<int>(k));
    terms.push_back(t);
    return run_time_size(static_cast<int>(terms.size()) - 1);
  }
};

} // namespace varve::loop
