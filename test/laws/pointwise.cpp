// SPDX-License-Identifier: BSL-1.0
#include "rows.hpp"

void sample::add_pointwise(std::vector<row>& to) { visit_pointwise(collect(to)); }
