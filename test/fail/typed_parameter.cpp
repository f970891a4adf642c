// SPDX-License-Identifier: BSL-1.0
// expect: taken for a plain double; write auto for double where it is declared
#include <varve/varve.hpp>
namespace vv = varve;

static_assert(vv::grad([](auto x) { return x * x; })(3.0) == 6);
#ifdef FAIL
constexpr auto wrong = vv::grad([](double x) { return x * x; })(3.0);
#endif
