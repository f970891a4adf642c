// SPDX-License-Identifier: BSL-1.0
// expect: argument_is_invalid
// expect: the stride must be positive
#include <varve/core/dims.hpp>
#include <varve/op/conv.hpp>
namespace vv = varve;

constexpr vv::array<double, 1, 1, 5> x{};
constexpr auto y = vv::conv1d(x, vv::array<double, 1, 1, 3>{}, vv::none, vv::ints<1>{});
#ifdef FAIL
constexpr auto z = vv::conv1d(x, vv::array<double, 1, 1, 3>{}, vv::none, vv::ints<0>{});
#endif
