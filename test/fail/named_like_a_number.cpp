// SPDX-License-Identifier: BSL-1.0
// A name that is no identifier.
#include <varve/graph/named.hpp>
#include <varve/op/mul.hpp>
#include <varve/trace/trace.hpp>

// expect: varve: named: a name is letters, digits and underscores, and does not begin with a digit
constexpr auto g = varve::trace([](auto x) { return varve::mul(x, x); }, varve::spec<float, 2>);
#ifdef FAIL
constexpr auto h = varve::named<"2x">(g);
#else
constexpr auto h = varve::named<"x2">(g);
#endif
static_assert(h.names.count == 1);
