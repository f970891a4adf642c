// SPDX-License-Identifier: BSL-1.0
// expect: shapes_do_not_match
#include <varve/core/dims.hpp>
#include <varve/op/conv.hpp>
namespace vv = varve;

constexpr vv::array<double, 1, 4, 5> x{};
constexpr auto y =
    vv::conv1d(x, vv::array<double, 6, 2, 3>{}, vv::none, vv::ints<1>{}, vv::ints<0>{}, vv::ints<1>{}, vv::ints<2>{});
#ifdef FAIL
constexpr auto z = vv::conv1d(x, vv::array<double, 6, 2, 3>{});
#endif
