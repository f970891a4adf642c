// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

namespace varve {

/// A size that is a number, or names an expression of symbols: entry `k` of the table of an environment (environment 0:
/// of the graph at hand). Eight bytes, so that it fits where a number does; the two are told apart by the two highest
/// bits, 01 for an entry. `INT64_MAX`, which `slice` takes for "the end", stays a number.
class extent {
public:
  constexpr extent() = default;
  constexpr extent(index_t number) : n_(number) {}
  static constexpr extent entry(index_t k, index_t environment = 0) {
    extent e;
    e.n_ = mark | (environment << entry_bits) | k;
    return e;
  }
  constexpr bool is_number() const { return (n_ & highest) != mark || n_ == all_but_sign; }
  /// The number; only where `is_number()`.
  constexpr index_t number() const { return n_; }
  /// The place of its expression, and whose table that is in; only where it is no number.
  constexpr index_t entry() const { return n_ & ((index_t{1} << entry_bits) - 1); }
  constexpr index_t environment() const { return (n_ & ~highest) >> entry_bits; }
  /// The same number, or the same entry: structural, and asks nobody. Two entries of one table are the same exactly if
  /// their normal forms are.
  friend constexpr bool known_equal(extent a, extent b) { return a.n_ == b.n_; }

private:
  static constexpr int entry_bits = 40;
  static constexpr index_t all_but_sign = ~(index_t{1} << 63), mark = index_t{1} << 62, highest = index_t{3} << 62;
  index_t n_ = 0;
};

} // namespace varve
