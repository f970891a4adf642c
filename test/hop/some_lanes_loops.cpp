// SPDX-License-Identifier: BSL-1.0
// Derivatives of a loop in a loop that lanes of a static vmap leave one after the other.
#include "some_lanes_test.hpp"

#include <varve_test.hpp>

using namespace some_lanes_test;

TEST_CASE("a loop in a loop, mapped: derivatives inside and outside of the vmap") { check_derivatives(loop_in_loop); }
