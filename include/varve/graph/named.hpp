// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/error.hpp>
#include <varve/graph/graph.hpp>

#include <string_view>

namespace varve {

/// A name as a template argument: `named<"x">(g)`.
struct value_name {
  char text[32]{};
  template <std::size_t N>
  consteval value_name(char const (&s)[N]) {
    static_assert(N <= 32, "varve: named: a name has at most 31 characters");
    for (std::size_t k = 0; k + 1 < N; ++k) text[k] = s[k];
  }
  /// True if it consists of letters, digits and underscores, and does not begin with a digit.
  constexpr bool is_identifier() const {
    for (char const* c = text; *c; ++c)
      if (!((*c | 32) >= 'a' && (*c | 32) <= 'z') && *c != '_' && !(c != text && *c >= '0' && *c <= '9')) return false;
    return text[0] != 0;
  }
  constexpr bool operator==(value_name const& o) const { return std::string_view(text) == o.text; }
};

namespace detail {
template <value_name... N>
inline constexpr char const* name_table[] = {N.text...};
template <value_name N, value_name... More>
constexpr bool are_distinct() {
  if constexpr (sizeof...(More) > 0) return !((N == More) || ...) && are_distinct<More...>();
  return true;
}
} // namespace detail

/// Returns a graph of either form with names for its arguments and then its results: `named<"w", "x", "loss">(trace(f,
/// spec<float, 8>, spec<float, 8>))` prints `%w: float32[8] = placeholder(0)` and `return loss = %12`. If there are
/// fewer names, they belong to the first values. Passes keep names; `equal` ignores them. Throws `value_error` if there
/// are more names than arguments and results.
template <value_name... N, class G>
  requires(sizeof...(N) > 0) && std::is_base_of_v<graph_questions<G>, G>
constexpr G named(G g) {
  static_assert((N.is_identifier() && ...),
                "varve: named: a name is letters, digits and underscores, and does not begin with a digit");
  static_assert(detail::are_distinct<N...>(), "varve: named: two values have one name; give each its own");
  graph_view const v = g.view();
  int const values = v.sizes.regions ? v.regions[0].inputs + v.regions[0].result_count : 0;
  if (static_cast<int>(sizeof...(N)) > values)
    refuse::argument_is_invalid("named", "there are more names than arguments and results");
  g.names = {detail::name_table<N...>, sizeof...(N)};
  return g;
}

} // namespace varve
