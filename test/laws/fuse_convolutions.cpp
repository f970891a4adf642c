// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <varve_test.hpp>

TEST_CASE("convolutions: a fused call gives what the call gives", "[laws]") {
  sample::visit_convolutions([]<class F, class... O>(char const* name, F f, bool, sample::shapes const&, O...) {
    INFO(name);
    CHECK(world::against_fuse<F, O...>(f) == "");
  });
}
