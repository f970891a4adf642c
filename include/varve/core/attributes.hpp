// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

/// @file
/// Attributes of operator calls. Numbers such as the bounds of `clamp` are operands, not attributes.
namespace varve {

/// The attributes of one operator call as data: axes, sizes, flags and dtypes, each an integer list. Graph nodes, boxed
/// operators and printers store attributes in this form. The typed form is the pack of facts inside `bound`.
struct attributes {
  static constexpr int capacity = 3;
  dims fact[capacity]{};
  int count = 0;

  constexpr attributes() = default;
  template <class... F>
    requires(sizeof...(F) > 0 && (std::is_convertible_v<F const&, dims> && ...))
  constexpr explicit attributes(F const&... f) : fact{dims(f)...}, count(sizeof...(F)) {}

  constexpr dims const& operator[](int i) const { return fact[i]; }
  /// True if an attribute contains a symbolic size.
  constexpr bool any_symbol() const {
    bool r = false;
    for (int k = 0; k < count; ++k)
      for (extent e : fact[k]) r = r || is_symbol(e);
    return r;
  }
  /// Returns the attributes as numbers. A symbolic size is specialized: its environment fixes its number from now on.
  constexpr attributes as_numbers() const {
    attributes r = *this;
    for (int k = 0; k < count; ++k) r.fact[k] = fact[k].as_numbers();
    return r;
  }
  /// True if all entries are identical. Compares symbolic sizes with `known_equal`, so no environment decides anything.
  friend constexpr bool operator==(attributes const& a, attributes const& b) {
    if (a.count != b.count) return false;
    for (int k = 0; k < a.count; ++k)
      if (!known_equal(a.fact[k], b.fact[k])) return false;
    return true;
  }
};

/// The attributes of operators without attributes.
inline constexpr attributes no_attributes{};

namespace detail {
/// Refuses negative sizes, and shapes with more elements than memory could contain.
constexpr void require_sizes(char const* op, dims const& sizes) {
  index_t count = 16; // the most bytes of an element
  bool fits = true;
  for (int k = 0; k < sizes.n; ++k) {
    if (!sizes[k].is_size()) fits = false;
    if (!sizes[k].is_number()) continue; // the environment of a symbol checks its range
    index_t const size = sizes[k].number();
    if (size < 0) refuse::argument_is_invalid(op, "a size is negative");
    if (size > 0) fits = fits && !__builtin_mul_overflow(count, size, &count);
  }
  if (!fits) refuse::argument_is_invalid(op, "the sizes are greater than any memory");
}
} // namespace detail

} // namespace varve
