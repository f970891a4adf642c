// SPDX-License-Identifier: BSL-1.0
// expect: dtype_is_not_supported
#include <varve/dispatch/static_eval.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto a = -vv::array<float, 2>{};
#ifdef FAIL
constexpr auto b = -vv::array<bool, 2>{};
#endif
