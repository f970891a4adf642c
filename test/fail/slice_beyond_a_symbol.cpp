// SPDX-License-Identifier: BSL-1.0
// expect: bound_lies_beyond_what_a_symbolic_size_is_while_traced
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto right = vv::trace([](auto x) { return vv::slice(x, 0, 0, 60000); }, vv::spec<float, vv::dim<"n">>);
#ifdef FAIL
constexpr auto wrong = vv::trace([](auto x) { return vv::slice(x, 0, 0, 70000); }, vv::spec<float, vv::dim<"n">>);
#endif
