// SPDX-License-Identifier: BSL-1.0
// expect: in_dims must have one entry, or one per argument
// scenario: TR-S04
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr auto f = [](auto x, auto y, auto z) { return x + y + z; };
constexpr vv::array<double, 2> x{};
constexpr auto a = vv::vmap(f, vv::in_dims<0, vv::none, 0>)(x, 1.0, x);
#ifdef FAIL
constexpr auto b = vv::vmap(f, vv::in_dims<0, vv::none>)(x, 1.0, x);
#endif
