// SPDX-License-Identifier: BSL-1.0
// expect: a custom function that is once_differentiable was differentiated twice; its backward cannot be differentiated
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
namespace vv = varve;

struct cube : vv::function<cube> {
  static constexpr bool once_differentiable = true;
  static constexpr auto forward(auto x) { return x * x * x; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in));
  }
  static constexpr auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return g * 3.0 * x * x;
  }
};
constexpr auto f = [](auto x) { return cube::apply(x); };
static_assert(vv::grad(f)(2.0) == 12);
#ifdef FAIL
constexpr auto h = vv::grad(vv::grad(f))(2.0);
#endif
