// SPDX-License-Identifier: BSL-1.0
// expect: results and flags of incompatible structure
// scenario: AF-S13
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/vmap.hpp>
namespace vv = varve;

struct both : vv::function<both> {
  static constexpr auto forward(auto x) { return std::tuple(x * 2, x * 3); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
#ifdef FAIL
  static constexpr auto vmap(vv::vmap_info const&, auto const&, auto x) {
    return std::pair(std::tuple(x * 2, x * 3), std::tuple(true, true, true));
  }
#else
  static constexpr auto vmap(vv::vmap_info const&, auto const&, auto x) {
    return std::pair(std::tuple(x * 2, x * 3), std::tuple(true, true));
  }
#endif
};
constexpr auto y = vv::vmap([](auto x) { return std::get<1>(both::apply(x)); })(vv::array<double, 2>{1, 2});
#ifndef FAIL
static_assert(y[1] == 6);
#endif
