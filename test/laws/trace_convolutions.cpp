// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <varve_test.hpp>

TEST_CASE("convolutions: a trace that is run gives what the call gives", "[laws]") {
  sample::visit_convolutions(
      []<class F, class... O>(char const* name, F f, bool constant, sample::shapes const& further, O...) {
        INFO(name);
        CHECK(world::against_trace<F, O...>(f, constant, further) == "");
      });
}
