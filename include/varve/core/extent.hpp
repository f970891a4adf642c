// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/core/error.hpp>

#include <cstdint>
#include <type_traits>

namespace varve {

/// A size, stride, axis or index.
using index_t = std::int64_t;

/// The operations on sizes. Quotients and remainders round down, as Python's `//` and `%`.
enum class size_op : unsigned char { symbol, sum, product, quotient, remainder, least, greatest };
/// The relations of two sizes.
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
// For operands that may not be numbers: their environment computes or decides (core/shape_recorder.hpp).
extent combined_sizes(size_op op, extent a, extent b);
bool decided_sizes(relation is, extent a, extent b);
index_t specialized_size(extent a);
index_t number_of_size(extent a);

/// Two extents, or an extent and an integer. Constrained this way so that the built-in operators on converted extents
/// are not better matches.
template <class A, class B>
concept sizes = (std::is_same_v<A, extent> && (std::is_integral_v<B> || std::is_same_v<B, extent>)) ||
                (std::is_integral_v<A> && std::is_same_v<B, extent>);
} // namespace detail

/// A size: a number, an expression of symbols, or the name of a symbol. It takes eight bytes, so that it fits where a
/// number does. An expression is identified by its index `k` in the table of an environment; environment 0 is the
/// current graph. Names occur in specs only. The highest bits distinguish the three: 010 for an expression, 011 for a
/// name. `INT64_MAX`, which `slice` reads as "the end", stays a number.
///
/// Arithmetic on numbers is that of `index_t`, in constant expressions too, except that division rounds down. For other
/// sizes the environment computes (`shape_recorder`): an operation returns an expression. The environment decides each
/// comparison, and specializes each size that is converted to `index_t` to a number. It remembers both.
///
/// Sizes of graphs, names in specs, and sizes of a destroyed environment have no environment. Computing with them
/// throws `size_error`, or is not a constant expression. Sizes of graphs and names can still be tested for equality:
/// they are equal if their expressions are.
struct extent {
  index_t bits = 0; // public, so that lists of sizes can be template arguments; `number` decodes it

  constexpr extent() = default;
  constexpr extent(index_t number) : bits(number) {}
  static constexpr extent entry(index_t k, index_t environment = 0) {
    return index_t{1} << 62 | (environment << entry_bits) | k;
  }
  constexpr bool is_number() const { return is_small() || bits == INT64_MAX; }
  constexpr bool is_entry() const { return bits >> 61 == 2; }
  constexpr bool is_name() const { return bits >> 61 == 3 && bits != INT64_MAX; }
  /// Returns the number if `is_number()`. An expression of an environment is specialized to its number. An expression
  /// of a graph or a name returns its bits.
  constexpr index_t number() const {
    if (is_small() || std::is_constant_evaluated()) [[likely]]
      return bits;
    return detail::number_of_size(*this);
  }
  /// Returns the index of its expression in the table of its environment. Requires `is_entry()`.
  constexpr index_t entry() const { return bits & ((index_t{1} << entry_bits) - 1); }
  constexpr index_t environment() const { return bits >> entry_bits & most_environments; }
  /// True if this is a number, or an expression that belongs to an environment. False for numbers from 2^62 on, except
  /// `INT64_MAX`.
  constexpr bool is_size() const { return is_number() || (is_entry() && environment() != 0); }
  /// Converts to the number. A symbolic size is specialized: its environment fixes its number, and what depends on the
  /// result holds for that number only.
  constexpr operator index_t() const {
    if (is_small() || (std::is_constant_evaluated() && is_number())) [[likely]]
      return bits;
    return detail::specialized_size(*this);
  }
  /// Converts an attribute to the enumerator that it represents.
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
  /// Returns the quotient, rounded down.
  template <class A, class B>
    requires detail::sizes<A, B>
  friend constexpr extent operator/(A a, B b) {
    if (are_small(a, b)) [[likely]]
      return detail::floor_div(extent(a).bits, extent(b).bits);
    return detail::combined_sizes(size_op::quotient, a, b);
  }
  /// Returns the remainder, which has the sign of `b`.
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
  /// True if one of several sizes may be a symbol, given the bitwise or of their bits. Also true if one is negative.
  static constexpr bool any_symbol(index_t bits) { return (bits >> 62 & 1) != 0; }
  /// True for numbers except `INT64_MAX`. Takes one comparison.
  constexpr bool is_small() const { return bits < index_t{1} << 62; }

  static constexpr index_t most_environments = (index_t{1} << 21) - 1;

private:
  static constexpr int entry_bits = 40;
  static constexpr bool are_small(extent a, extent b) {
    if (std::is_constant_evaluated()) return a.is_number() && b.is_number(); // no environment exists there
    return a.is_small() && b.is_small();
  }
};

/// True if both are the same number, name or expression. Compares bits only; no environment decides anything. Two
/// expressions of one table are the same exactly if their normal forms are.
constexpr bool known_equal(extent a, extent b) { return a.bits == b.bits; }

} // namespace varve
