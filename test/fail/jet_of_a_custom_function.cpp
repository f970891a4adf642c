// SPDX-License-Identifier: BSL-1.0
// expect: jet: this operator with functions has no rule for jet
#include <varve/autograd/function.hpp>
#include <varve/jet/jet.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

struct twice : vv::function<twice> {
  static constexpr auto forward(auto x) { return x * 2.0; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto g) { return g * 2.0; }
};
constexpr auto square = [](auto const& x) { return x * x; };
constexpr auto a = vv::jet(square, std::tuple{2.0}, std::tuple{1.0});
#ifdef FAIL
constexpr auto own = [](auto const& x) { return twice::apply(x); };
constexpr auto b = vv::jet(own, std::tuple{2.0}, std::tuple{1.0});
#endif
