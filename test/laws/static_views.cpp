// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <varve_test.hpp>

TEST_CASE("views, joins and indexing: static values and tensors give the same", "[laws]") {
  auto const agrees = []<class F, class... O>(char const* name, F f, bool constant, sample::shapes const&, O...) {
    INFO(name);
    CHECK(world::against_static<F, O...>(f, constant) == "");
  };
  sample::visit_views(agrees);
  sample::visit_regions(agrees);
}
