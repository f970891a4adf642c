// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/traits.hpp>

#include <cstdint>
#include <type_traits>

namespace varve::detail {

/// A number in a list of literals. If one of them is floating-point, all are: `tensor({0.5, -1, 2})`.
struct literal {
  double as_double = 0;
  std::int64_t as_integer = 0;
  int category = 0; // of dtypes: bool, integer, floating
  template <number N>
  constexpr literal(N v)
      : as_double(static_cast<double>(v)), as_integer(std::is_integral_v<N> ? static_cast<std::int64_t>(v) : 0),
        category(std::is_same_v<N, bool> ? 0
                 : std::is_integral_v<N> ? 1
                                         : 2) {}
};

} // namespace varve::detail
