// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/fwd.hpp>

namespace varve {

/// A value filled with a number, with the shape and dtype of another (`torch.full_like`). It is a constant: seen through no interpreter.
inline constexpr struct full_like_t {
  template <value X, number N>
  constexpr auto operator()(X const& x, N v) const {
    return backend<typename decltype(detail::base_tag<X>())::type>::full(shape_of(x), type_fact(x), v);
  }
} full_like{};

/// Zeros with the shape and dtype of another value.
inline constexpr struct zeros_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 0);
  }
} zeros_like{};

/// Ones with the shape and dtype of another value.
inline constexpr struct ones_like_t {
  template <value X>
  constexpr auto operator()(X const& x) const {
    return full_like(x, 1);
  }
} ones_like{};

} // namespace varve
