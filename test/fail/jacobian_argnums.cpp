// SPDX-License-Identifier: BSL-1.0
// expect: varve: jacfwd, jacrev: argnums must be distinct and name existing arguments
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto f = [](auto x, auto y) { return x * y; };
static_assert(std::get<1>(vv::jacfwd<0, 1>(f)(2.0, 3.0)) == 2.0);
#ifdef FAIL
constexpr auto wrong = vv::jacfwd<0, 2>(f)(2.0, 3.0);
#endif
