// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

namespace varve {

/// A size: a number, an expression of symbols, or the name of a symbol. An expression is named by its place, entry `k`
/// of the table of an environment (environment 0: of the graph at hand); names stand in specs only. Eight bytes, so
/// that it fits where a number does; the highest bits tell the three apart, 010 for an entry and 011 for a name.
/// `INT64_MAX`, which `slice` takes for "the end", stays a number.
class extent {
public:
  constexpr extent() = default;
  constexpr extent(index_t number) : n_(number) {}
  static constexpr extent entry(index_t k, index_t environment = 0) { return mark | (environment << entry_bits) | k; }
  constexpr bool is_number() const { return (n_ & highest) != mark || n_ == all_but_sign; }
  constexpr bool is_entry() const { return (n_ & highest_of_names) == mark; }
  constexpr bool is_name() const { return (n_ & highest_of_names) == mark_of_names && n_ != all_but_sign; }
  /// The number; only where `is_number()`. Otherwise what stands for the expression or name in its place.
  constexpr index_t number() const { return n_; }
  /// The place of its expression, and whose table that is in; only where `is_entry()`.
  constexpr index_t entry() const { return n_ & ((index_t{1} << entry_bits) - 1); }
  constexpr index_t environment() const { return (n_ & ~highest) >> entry_bits; }
  /// The same number, name or entry: structural, and asks nobody. Two entries of one table are the same exactly if
  /// their normal forms are.
  friend constexpr bool known_equal(extent a, extent b) { return a.n_ == b.n_; }

private:
  static constexpr int entry_bits = 40;
  static constexpr index_t all_but_sign = ~(index_t{1} << 63), mark = index_t{1} << 62,
                           highest = static_cast<index_t>(3ull << 62), mark_of_names = index_t{3} << 61,
                           highest_of_names = static_cast<index_t>(7ull << 61);
  index_t n_ = 0;
};

} // namespace varve
