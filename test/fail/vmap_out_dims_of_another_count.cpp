// SPDX-License-Identifier: BSL-1.0
// expect: out_dims must have one entry, or one per result
// scenario: TR-S08
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>

#include <tuple>
namespace vv = varve;

constexpr auto both = [](auto x) { return std::tuple(x * x, 3.0 * x); };
static_assert(vv::equal(std::get<1>(vv::vmap(both, vv::out_dims<0, 0>)(vv::array<double, 2>{1, 2})),
                        vv::array<double, 2>{3, 6}));
#ifdef FAIL
constexpr auto y = vv::vmap(both, vv::out_dims<0, 0, 0>)(vv::array<double, 2>{1, 2});
#endif
