// SPDX-License-Identifier: BSL-1.0
// expect: clamp needs at least one of min and max
#include <varve/op/clamp.hpp>
namespace vv = varve;

static_assert(vv::clamp(3.0, vv::none, 1.0) == 1);
#ifdef FAIL
constexpr auto a = vv::clamp(3.0, vv::none, vv::none);
#endif
