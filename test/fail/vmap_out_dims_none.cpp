// SPDX-License-Identifier: BSL-1.0
// expect: a result is mapped although out_dims says none
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

constexpr vv::array<double, 2> x{};
constexpr auto a = vv::vmap([](auto) { return 1.0; }, vv::out_dims<vv::none>)(x);
#ifdef FAIL
constexpr auto b = vv::vmap([](auto v) { return v + 1; }, vv::out_dims<vv::none>)(x);
#endif
