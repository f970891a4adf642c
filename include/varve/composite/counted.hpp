// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/create.hpp>
#include <varve/op/factory.hpp>

namespace varve::detail {
/// Returns 0, 1, ..., n - 1 as int64, of a kind of value that can be combined with `x`.
template <fact N, value X>
constexpr auto counted(N const& n, X const& x) {
  if constexpr (is_ints<N> && !dynamic_value<X> && is_ints<std::remove_cvref_t<decltype(type_fact(x))>>)
    return arange<std::int64_t, N::to_dims()[0].number()>();
  else return backend<typename decltype(base_tag<X>())::type>::arange(base_value(x), to_dims(n));
}
} // namespace varve::detail
