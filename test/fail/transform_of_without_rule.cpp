// SPDX-License-Identifier: BSL-1.0
// expect: varve: a transform of your own has no rule for an operator
#include "../../examples/interval_bounds.hpp"
constexpr auto a = bounds([](auto const& x) { return x + x; }, 1.0, 2.0);
static_assert(a.payload == 4);
#ifdef FAIL
constexpr auto b = bounds([](auto const& x) { return varve::sin(x); }, 1.0, 2.0);
#endif
