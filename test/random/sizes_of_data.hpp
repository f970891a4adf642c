// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Rows of the table whose results have as many elements as their operands' data tell. Some programs draw from them.
#include "operators.hpp"

#include <varve/op/nonzero.hpp>

namespace random_programs {
/// As many of the first places of `x` as rows of it have a positive sum: what is known of the number is said.
inline tensor first_places(tensor const& x) {
  tensor rows = x;
  while (rows.dim() > 1) rows = vv::sum(rows, dims{-1});
  auto const k = vv::item(vv::count_nonzero(rows > 0.0003));
  vv::check_is_size(k);
  vv::check(vv::relation::less_equal, k, x.sizes()[0]);
  return vv::slice(x, 0, 0, k);
}
/// As many ones as `t` has positive elements, or a half more of each.
inline tensor ones_for_positive(tensor const& t, bool halves) {
  auto const k = vv::item(vv::count_nonzero(t > 0.0003));
  vv::check_is_size(k);
  tensor const ones = vv::ones({k}, dtype::float64);
  return halves ? ones + vv::sum(t) * 0.5 : ones;
}
inline std::vector<row> const& rows_of_data() {
  using enum kind;
  using v = values const&;
  using st = statement const&;
  using f = std::vector<function> const&;
  static std::vector<row> const rows{
      {"first places", view, "f", false, "first_places({0})", choices::has_axes,
       [](v x, st, f) { return values{first_places(x[0])}; }},
      {"sum of first places", reduction, "f", false, "vv::sum(first_places({0}))", choices::has_axes,
       [](v x, st, f) { return values{vv::sum(first_places(x[0]))}; }},
      {"ones for positive", join, "f", false, "ones_for_positive({0}, false)", nullptr,
       [](v x, st, f) { return values{ones_for_positive(x[0], false)}; }},
      {"values for positive", join, "f", false, "ones_for_positive({0}, true)", nullptr,
       [](v x, st, f) { return values{ones_for_positive(x[0], true)}; }},
      {"masked_select", join, "ff", false, "vv::masked_select({0}, {1} > 0.0003)"},
      {"nonzero", integer, "f", false, "vv::nonzero({0} > 0.0003)"},
  };
  return rows;
}
} // namespace random_programs
