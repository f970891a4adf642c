// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <varve_test.hpp>

TEST_CASE("views, joins and indexing: a trace that is run gives what the call gives", "[laws]") {
  auto const agrees = []<class F, class... O>(char const* name, F f, bool constant, sample::shapes const& further,
                                              O...) {
    INFO(name);
    CHECK(world::against_trace<F, O...>(f, constant, further) == "");
  };
  sample::visit_views(agrees);
  sample::visit_regions(agrees);
}
