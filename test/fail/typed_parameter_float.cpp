// SPDX-License-Identifier: BSL-1.0
// expect: the parameters of the function must be auto
#include <varve/varve.hpp>
namespace vv = varve;

static_assert(vv::grad([](auto x) { return x * x; })(3.0f) == 6);
#ifdef FAIL
constexpr auto wrong = vv::grad([](float x) { return x * x; })(3.0f);
#endif
