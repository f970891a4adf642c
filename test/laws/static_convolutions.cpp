// SPDX-License-Identifier: BSL-1.0
#include "world.hpp"

#include <varve_test.hpp>

TEST_CASE("convolutions: static values and tensors give the same", "[laws]") {
  sample::visit_convolutions(
      []<class F, class... O>(char const* name, F f, bool constant, sample::shapes const&, O...) {
        INFO(name);
        CHECK(world::against_static<F, O...>(f, constant) == "");
      });
}
