// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/rule/pointwise.hpp>

namespace varve {

/// x + y. Linear in both operands.
template <>
struct rules<add_t> : rule::pointwise<2> {
  static constexpr auto kernel(auto x, auto y) { return x + y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return one; }
};

/// x - y. Linear in both operands.
template <>
struct rules<sub_t> : rule::pointwise<2> {
  static constexpr auto kernel(auto x, auto y) { return x - y; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&...) { return one; }
  static constexpr auto partial(arg_t<1>, auto const&, auto const&...) { return minus_one; }
};

/// -x.
template <>
struct rules<neg_t> : rule::pointwise<1> {
  static constexpr auto kernel(auto x) { return -x; }
  static constexpr auto partial(arg_t<0>, auto const&, auto const&) { return minus_one; }
};

} // namespace varve
