// SPDX-License-Identifier: BSL-1.0
// expect: must have two returns
// scenario: AF-S12
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

struct twice : vv::function<twice> {
  static constexpr auto forward(auto x) { return x * 2; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 2; }
#ifdef FAIL
  static constexpr auto vmap(vv::vmap_info const&, auto const&, auto x) { return x * 2; }
#else
  static constexpr auto vmap(vv::vmap_info const&, auto const&, auto x) { return std::pair(x * 2, true); }
#endif
};
constexpr auto y = vv::vmap([](auto x) { return twice::apply(x); })(vv::array<double, 2>{1, 2});
#ifndef FAIL
static_assert(y[1] == 4);
#endif
