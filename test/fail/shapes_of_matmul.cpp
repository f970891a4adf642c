// SPDX-License-Identifier: BSL-1.0
// expect: shapes_do_not_match
#include <varve/core/dims.hpp>
#include <varve/op/matmul.hpp>
namespace vv = varve;

constexpr vv::array<double, 2, 3> a{};
constexpr auto b = vv::matmul(a, vv::array<double, 3, 4>{});
#ifdef FAIL
constexpr auto c = vv::matmul(a, vv::array<double, 2, 3>{});
#endif
