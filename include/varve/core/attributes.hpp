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
  friend constexpr bool operator==(attributes const& a, attributes const& b) {
    if (a.count != b.count) return false;
    for (int k = 0; k < a.count; ++k)
      if (!(a.fact[k] == b.fact[k])) return false;
    return true;
  }
};

/// The attributes of operators that have none.
inline constexpr attributes no_attributes{};

namespace detail {
/// Refuses sizes below 0.
constexpr void require_sizes(char const* op, dims const& sizes) {
  for (int k = 0; k < sizes.n; ++k)
    if (sizes[k] < 0) refuse::argument_is_invalid(op, "a size is negative");
}
} // namespace detail

} // namespace varve
