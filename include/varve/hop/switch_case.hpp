// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/cond.hpp>
#include <varve/op/add.hpp>
#include <varve/op/compare.hpp>

#include <tuple>

namespace varve {

/// Calls the function at `index` with x: `switch_case(index, std::tuple{f0, f1, f2}, x...)`. An index below 0 selects
/// the first function and an index that is too large the last one, as in JAX's `switch`. `index` is an integer or a
/// value with one element. The rules of `cond` apply: one function runs, or all functions run and the results are
/// selected if `index` is mapped. A traced index becomes nested conditions. All functions must return the same
/// structure, shapes and dtypes. There must be at least one function.
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
