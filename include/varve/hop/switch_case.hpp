// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/cond.hpp>
#include <varve/op/add.hpp>
#include <varve/op/compare.hpp>

#include <tuple>

namespace varve {

/// `switch_case(index, std::tuple{f0, f1, f2}, x...)`: the function at `index`, of x: `f0` where it is 0 or less, the
/// last one where it is beyond the others, as JAX's `switch` has it (OH-17). `index` is an integer, or a value of one
/// element. What holds of `cond` holds here: one function runs, or all and a selection where `index` is mapped; a
/// traced index makes conditions within one another; results are of one structure, shape and dtype. Functions: one at
/// least.
template <class I, class... F, class... X>
constexpr auto switch_case(I const& index, std::tuple<F...> const& branches, X const&... x) {
  static_assert(sizeof...(F) > 0, "varve: switch_case: there must be a function at least");
  if constexpr (sizeof...(F) == 1) {
    return std::get<0>(branches)(x...);
  } else {
    return std::apply(
        [&](auto const& first, auto const&... others) {
          return cond(
              le(index, 0), first,
              [index, rest = std::tuple(others...)](auto const&... v) {
                return switch_case(sub(index, 1), rest, v...);
              },
              x...);
        },
        branches);
  }
}

} // namespace varve
