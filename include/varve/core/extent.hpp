// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/core/error.hpp>

#include <cstdint>
#include <type_traits>

namespace varve {

/// A size, stride, axis or index.
using index_t = std::int64_t;

/// What is computed of sizes; quotients and remainders are those of division rounded down (Python's `//` and `%`).
enum class size_op : unsigned char { symbol, sum, product, quotient, remainder, least, greatest };
/// What may be asked of two sizes.
enum class relation : unsigned char { equal, unequal, less, less_equal };

struct extent;
namespace detail {
constexpr index_t floor_div(index_t a, index_t b) {
  if (b == 0) [[unlikely]]
    refuse::argument_is_invalid("sizes", "a size is divided by 0");
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
constexpr index_t floor_mod(index_t a, index_t b) { return a - floor_div(a, b) * b; }
constexpr bool holds(relation is, index_t a, index_t b) {
  return is == relation::equal ? a == b : is == relation::unequal ? a != b : is == relation::less ? a < b : a <= b;
}
// Where an operand may be no number: its environment is asked (core/shape_recorder.hpp).
extent combined_sizes(size_op op, extent a, extent b);
bool decided_sizes(relation is, extent a, extent b);
index_t specialized_size(extent a);
index_t number_of_size(extent a);

/// Two extents, or one and an integer: the built-in operators on what an extent converts to are no better then.
template <class A, class B>
concept sizes = (std::is_same_v<A, extent> && (std::is_integral_v<B> || std::is_same_v<B, extent>)) ||
                (std::is_integral_v<A> && std::is_same_v<B, extent>);
} // namespace detail

/// A size: a number, an expression of symbols, or the name of a symbol. An expression is named by its place, entry `k`
/// of the table of an environment (environment 0: of the graph at hand); names stand in specs only. Eight bytes, so
/// that it fits where a number does; the highest bits tell the three apart, 010 for an entry and 011 for a name.
/// `INT64_MAX`, which `slice` takes for "the end", stays a number.
///
/// Numbers are computed with as `index_t` is, but for division, which is rounded down; in constant expressions too.
/// With others the environment is asked (`shape_recorder`): an operation gives an expression, a comparison is decided
/// and remembered there, and so is what a size is taken for where it becomes an `index_t`. Those of graphs and specs
/// have none, and those of an environment that is gone no more: `size_error`, or no constant expression; but those of
/// graphs and specs may be compared for equality, which is that of the expressions.
struct extent {
  index_t bits = 0; // public, so that lists of sizes can be template arguments; `number` tells what it means

  constexpr extent() = default;
  constexpr extent(index_t number) : bits(number) {}
  static constexpr extent entry(index_t k, index_t environment = 0) {
    return index_t{1} << 62 | (environment << entry_bits) | k;
  }
  constexpr bool is_number() const { return is_small() || bits == INT64_MAX; }
  constexpr bool is_entry() const { return bits >> 61 == 2; }
  constexpr bool is_name() const { return bits >> 61 == 3 && bits != INT64_MAX; }
  /// The number; only where `is_number()`. What stands for an expression of a graph, or for a name, otherwise; one of
  /// an environment is taken for its number.
  constexpr index_t number() const {
    if (is_small() || std::is_constant_evaluated()) [[likely]]
      return bits;
    return detail::number_of_size(*this);
  }
  /// The place of its expression, and whose table that is in; only where `is_entry()`.
  constexpr index_t entry() const { return bits & ((index_t{1} << entry_bits) - 1); }
  constexpr index_t environment() const { return bits >> entry_bits & most_environments; }
  /// Is it a number, or is there an environment that knows it? Numbers of 2^62 and more are none.
  constexpr bool is_size() const { return is_number() || (is_entry() && environment() != 0); }
  /// The number that it is, or is taken for: what depends on that holds for that number only.
  constexpr operator index_t() const {
    if (is_small() || (std::is_constant_evaluated() && is_number())) [[likely]]
      return bits;
    return detail::specialized_size(*this);
  }
  /// Of attributes that are enumerators.
  template <class E>
    requires std::is_enum_v<E>
  constexpr explicit operator E() const {
    return static_cast<E>(static_cast<index_t>(*this));
  }

  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator+(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return extent(a).bits + extent(b).bits;
    return detail::combined_sizes(size_op::sum, a, b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator-(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return extent(a).bits - extent(b).bits;
    return a + -extent(b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator*(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return extent(a).bits * extent(b).bits;
    return detail::combined_sizes(size_op::product, a, b);
  }
  /// Rounded down.
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator/(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return detail::floor_div(extent(a).bits, extent(b).bits);
    return detail::combined_sizes(size_op::quotient, a, b);
  }
  /// Of the sign of `b`.
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator%(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return detail::floor_mod(extent(a).bits, extent(b).bits);
    return detail::combined_sizes(size_op::remainder, a, b);
  }
  constexpr extent operator-() const { return is_small() ? extent(-bits) : *this * -1; }
  constexpr extent& operator+=(extent b) { return *this = *this + b; }
  constexpr extent& operator-=(extent b) { return *this = *this - b; }
  constexpr extent& operator*=(extent b) { return *this = *this * b; }
  constexpr extent& operator/=(extent b) { return *this = *this / b; }
  constexpr extent& operator++() { return *this += 1; }
  constexpr extent& operator--() { return *this -= 1; }
  friend constexpr extent(min)(extent a, extent b) {
    if (are_small(a, b)) [[likely]]
      return b.bits < a.bits ? b : a;
    return detail::combined_sizes(size_op::least, a, b);
  }
  friend constexpr extent(max)(extent a, extent b) {
    if (are_small(a, b)) [[likely]]
      return a.bits < b.bits ? b : a;
    return detail::combined_sizes(size_op::greatest, a, b);
  }

  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator==(A a, B b) {
    if (are_small(a, b) || std::is_constant_evaluated()) [[likely]]
      return extent(a).bits == extent(b).bits;
    return detail::decided_sizes(relation::equal, a, b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator!=(A a, B b) {
    if (are_small(a, b) || std::is_constant_evaluated()) [[likely]]
      return extent(a).bits != extent(b).bits;
    return detail::decided_sizes(relation::unequal, a, b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator<(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return extent(a).bits < extent(b).bits;
    return detail::decided_sizes(relation::less, a, b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator<=(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return extent(a).bits <= extent(b).bits;
    return detail::decided_sizes(relation::less_equal, a, b);
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator>(A a, B b) {
    return b < a;
  }
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr bool operator>=(A a, B b) {
    return b <= a;
  }
  /// May some of sizes be a symbol? Asked of all their bits together; said of numbers below 0 as well.
  static constexpr bool any_symbol(index_t bits) { return (bits >> 62 & 1) != 0; }
  /// A number, and not `INT64_MAX`: one compare.
  constexpr bool is_small() const { return bits < index_t{1} << 62; }

  static constexpr index_t most_environments = (index_t{1} << 21) - 1;

private:
  static constexpr int entry_bits = 40;
  static constexpr bool are_small(extent a, extent b) {
    if (std::is_constant_evaluated()) return a.is_number() && b.is_number(); // nobody is asked there
    return a.is_small() && b.is_small();
  }
};

/// The same number, name or entry: structural, and asks nobody. Two entries of one table are the same exactly if their
/// normal forms are.
constexpr bool known_equal(extent a, extent b) { return a.bits == b.bits; }

} // namespace varve
