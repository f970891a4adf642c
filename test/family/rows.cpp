// SPDX-License-Identifier: BSL-1.0
#include "../sample/optional_op.hpp"

std::vector<sample::row> const& sample::rows() {
  static auto const table = [] {
    std::vector<row> t;
    visit_special(collect(t));
    visit_rows(collect(t));
    visit_matrices(collect(t));
    return t;
  }();
  return table;
}
