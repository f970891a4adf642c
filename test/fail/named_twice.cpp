// SPDX-License-Identifier: BSL-1.0
// Two arguments of a graph with one name.
#include <varve/graph/named.hpp>
#include <varve/op/mul.hpp>
#include <varve/trace/trace.hpp>

// expect: varve: named: two values have one name; give each its own
constexpr auto g =
    varve::trace([](auto x, auto y) { return varve::mul(x, y); }, varve::spec<float, 2>, varve::spec<float, 2>);
#ifdef FAIL
constexpr auto h = varve::named<"x", "x">(g);
#else
constexpr auto h = varve::named<"x", "y">(g);
#endif
static_assert(h.names.count == 2);
