// SPDX-License-Identifier: BSL-1.0
#include "rows.hpp"

void sample::add_others(std::vector<row>& to) { visit_others(collect(to)); }

std::vector<sample::row> const& sample::rows() {
  static auto const table = [] {
    std::vector<row> t;
    add_pointwise(t);
    add_others(t);
    return t;
  }();
  return table;
}
