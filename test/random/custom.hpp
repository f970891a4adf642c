// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Custom functions whose derivatives are not those of their texts: whoever differentiates the text is found out.
#include <varve/varve.hpp>

namespace random_programs {
namespace vv = varve;

/// x², of derivative 7.
struct square_by_seven : vv::function<square_by_seven> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto const& x) { return x * x; }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto const& g) { return g * 7.0; }
  static constexpr auto jvp(auto&, auto const& t) { return t * 7.0; }
};
/// sin x, of derivative x.
struct sine_by_argument : vv::function<sine_by_argument> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto const& x) { return vv::sin(x); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static constexpr auto backward(auto& ctx, auto const& g) {
    auto [x] = ctx.saved();
    return g * x;
  }
  static constexpr auto jvp(auto& ctx, auto const& t) {
    auto [x] = ctx.saved_for_forward();
    return t * x;
  }
};
/// x y and x + y, of derivatives 3 and y; y is not asked for in the sum.
struct product_and_sum : vv::function<product_and_sum> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto const& x, auto const& y) { return std::tuple(x * y, x + y); }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<1>(in)).save_for_forward(std::get<1>(in));
  }
  static constexpr auto backward(auto& ctx, auto const& p, auto const& s) {
    auto [y] = ctx.saved();
    return std::tuple(p * 3.0 + s * y, p * y);
  }
  static constexpr auto jvp(auto& ctx, auto const& tx, auto const& ty) {
    auto [y] = ctx.saved_for_forward();
    return std::tuple(tx * 3.0 + ty * y, tx * y);
  }
};
/// 2 x and, as a constant to derivatives, x³; the first has derivative 5.
struct double_and_mark : vv::function<double_and_mark> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto const& x) { return std::tuple(x * 2.0, x * x * x); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) {
    return ctx.template mark_non_differentiable<1>();
  }
  static constexpr auto backward(auto&, auto const& g, auto const&) { return g * 5.0; }
  static constexpr auto jvp(auto&, auto const& t) { return std::tuple(t * 5.0, t * 0.0); }
};
/// Is x positive, as a number: a step of derivative 1.
struct step_through : vv::function<step_through> {
  static constexpr bool generate_vmap_rule = true;
  static constexpr auto forward(auto const& x) { return vv::where(x > 0.0, vv::ones_like(x), vv::zeros_like(x)); }
  static constexpr auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static constexpr auto backward(auto&, auto const& g) { return g * 1.0; }
  static constexpr auto jvp(auto&, auto const& t) { return t * 1.0; }
};
} // namespace random_programs
