// SPDX-License-Identifier: BSL-1.0
// Derivatives of loops in branches that only some lanes of a static vmap run.
#include "some_lanes_test.hpp"

#include <varve_test.hpp>

using namespace some_lanes_test;

TEST_CASE("loops in branches of a mapped cond: derivatives inside and outside of the vmap") {
  check_derivatives(either);
  check_derivatives(nested);
}
