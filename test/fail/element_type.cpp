// SPDX-License-Identifier: BSL-1.0
// expect: this element type has no dtype; use bool, uint8_t, int32_t, int64_t, float or double
#include <varve/op/operators.hpp>
namespace vv = varve;

constexpr auto a = vv::array<float, 2>{} + 1;
#ifdef FAIL
constexpr auto b = vv::array<short, 2>{} + vv::array<short, 2>{};
#endif
