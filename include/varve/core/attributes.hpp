// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

/// @file
/// Numbers, such as the bounds of `clamp`, are operands and no attributes.
namespace varve {

/// The attributes of one call as data, whatever the operator: axes, sizes, flags, dtypes, each an integer list.
/// What a graph node, a boxed operator and a printer hold; the typed form is the pack of facts inside `bound`.
struct attributes {
  static constexpr int capacity = 3;
  dims fact[capacity]{};
  int count = 0;

  constexpr attributes() = default;
  template <class... F>
    requires(sizeof...(F) > 0 && (std::is_convertible_v<F const&, dims> && ...))
  constexpr explicit attributes(F const&... f) : fact{dims(f)...}, count(sizeof...(F)) {}

  constexpr dims const& operator[](int i) const { return fact[i]; }
  /// Is there a symbol among them?
  constexpr bool any_symbol() const {
    bool r = false;
    for (int k = 0; k < count; ++k)
      for (extent e : fact[k]) r = r || is_symbol(e);
    return r;
  }
  /// The numbers that they are, or are taken for.
  constexpr attributes as_numbers() const {
    attributes r = *this;
    for (int k = 0; k < count; ++k) r.fact[k] = fact[k].as_numbers();
    return r;
  }
  /// The same entries: asks nobody (`known_equal`).
  friend constexpr bool operator==(attributes const& a, attributes const& b) {
    if (a.count != b.count) return false;
    for (int k = 0; k < a.count; ++k)
      if (!known_equal(a.fact[k], b.fact[k])) return false;
    return true;
  }
};

/// The attributes of operators that have none.
inline constexpr attributes no_attributes{};

namespace detail {
/// Refuses sizes below 0, and more elements than a memory could have bytes.
constexpr void require_sizes(char const* op, dims const& sizes) {
  index_t count = 16; // bytes of an element, at most
  bool fits = true;
  for (int k = 0; k < sizes.n; ++k) {
    if (!sizes[k].is_size()) fits = false;
    if (!sizes[k].is_number()) continue; // a symbol's environment says what it may be
    index_t const size = sizes[k].number();
    if (size < 0) refuse::argument_is_invalid(op, "a size is negative");
    if (size > 0) fits = fits && !__builtin_mul_overflow(count, size, &count);
  }
  if (!fits) refuse::argument_is_invalid(op, "the sizes are greater than any memory");
}
} // namespace detail

} // namespace varve
