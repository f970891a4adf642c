// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/varve.hpp>

namespace sample {
/// An operator of a user.
struct bump_t : varve::promoting_operator<bump_t> {
  static constexpr auto op_name = "bump";
};
inline constexpr bump_t bump{};
} // namespace sample
template <>
struct varve::rules<sample::bump_t> : varve::rule::pointwise<1, varve::promotion::floating> {
  static constexpr auto kernel(auto x) { return varve::kernel::exp(-(x * x)); }
  static constexpr auto partial(varve::arg_t<0>, auto const& y, auto const& x) { return -2.0 * x * y; }
};
