// SPDX-License-Identifier: BSL-1.0
// expect: argument_is_invalid
// expect: refuse_bound_beyond_symbolic_size
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = vv::trace([](auto x) { return vv::slice(x, 0, 0, 60000); }, vv::spec<float, vv::dim<"n">>);
#ifdef FAIL
constexpr auto wrong = vv::trace([](auto x) { return vv::slice(x, 0, 0, 70000); }, vv::spec<float, vv::dim<"n">>);
#endif
