// SPDX-License-Identifier: BSL-1.0
// expect: must return one gradient for each argument of forward
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

struct product : vv::function<product> {
  static constexpr auto forward(auto x, auto y) { return x * y; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x, y] = ctx.saved();
#ifdef FAIL
    return g * y;
#else
    return std::tuple(g * y, g * x);
#endif
  }
};
constexpr auto y = vv::grad([](auto a, auto b) { return product::apply(a, b); })(3.0, 5.0);
#ifndef FAIL
static_assert(y == 5);
#endif
