// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>
#include <varve/transform/scope.hpp>

namespace varve {

/// `with(mode, f, x...)`: f(x...) with every operator on values that come from x handed to the mode first, resolved by the compiler. The mode sits above the
/// transforms already around it and below those that f applies. On tensors it is a `mode_guard` around the call.
template <class M, class F, class... X>
constexpr auto with(M& mode, F const& f, X const&... x) {
  if constexpr (any_dynamic<X...>) {
    mode_guard const on{mode};
    return f(x...);
  } else {
    using I = mode_interpreter<static_level<detail::next_level<F, X...>, F>, M>;
    I in{};
    in.mode = &mode;
    auto const close = [&](auto const& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (value<V>) return seen<I, std::remove_cvref_t<decltype(detail::plain(v))>>{detail::plain(v), in, {}};
      else return v;
    };
    auto const open = [](auto const& y) {
      using Y = std::remove_cvref_t<decltype(y)>;
      if constexpr (value<Y>) detail::check_exit<I::level, Y>();
      if constexpr (at_level<Y, I::level>) return y.value;
      else return y;
    };
    return tree_map(open, f(tree_map(close, x)...));
  }
}

} // namespace varve
