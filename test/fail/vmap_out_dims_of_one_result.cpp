// SPDX-License-Identifier: BSL-1.0
// expect: out_dims must have one entry, since there is one result
// scenario: TR-S08
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto square = [](auto x) { return x * x; };
static_assert(vv::equal(vv::vmap(square, vv::out_dims<0>)(vv::array<double, 2>{1, 2}), vv::array<double, 2>{1, 4}));
#ifdef FAIL
constexpr auto y = vv::vmap(square, vv::out_dims<0, 0>)(vv::array<double, 2>{1, 2});
#endif
