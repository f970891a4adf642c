// SPDX-License-Identifier: BSL-1.0
// expect: at most 7 characters
#include <varve/trace/trace.hpp>
namespace vv = varve;

constexpr auto a = vv::spec<float, vv::dim<"seven__">>;
#ifdef FAIL
constexpr auto b = vv::spec<float, vv::dim<"eight___">>;
#endif
