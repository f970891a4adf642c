// SPDX-License-Identifier: BSL-1.0
#include "../sample/op.hpp"

namespace sample {
void add_views(std::vector<row>& to) {
  visit_views(collect(to));
  visit_regions(collect(to));
  visit_convolutions(collect(to));
}
} // namespace sample
