// SPDX-License-Identifier: BSL-1.0
// expect: must override setup_context
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

struct twice : vv::function<twice> {
  static constexpr auto forward(auto x) { return x * 2; }
#ifndef FAIL
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
#endif
  static constexpr auto backward(auto&, auto g) { return g * 2; }
};
constexpr auto y = vv::grad([](auto x) { return twice::apply(x); })(3.0);
#ifndef FAIL
static_assert(y == 2);
#endif
