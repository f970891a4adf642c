// SPDX-License-Identifier: BSL-1.0
// expect: dtype_is_not_supported
#include <varve/varve.hpp>
namespace vv = varve;

auto right = vv::array<float, 3>{} - 1;
#ifdef FAIL
auto wrong = vv::array<float, 3>{} - true;
#endif
