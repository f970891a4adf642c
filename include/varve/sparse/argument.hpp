// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/transform/closure.hpp>
#include <varve/transform/grad.hpp>

#include <utility>

/// @file
/// Which argument a sparse derivative is taken by. The derivative itself is always taken by argument 0 of a function
/// whose arguments are reordered.
namespace varve::detail {

/// The function `(v, rest...)` that calls f with v as argument K and the others in their order.
template <class F, int K>
struct argument_first {
  [[no_unique_address]] F f;
  template <class V, class... R>
  constexpr auto operator()(V const& v, R const&... rest) const {
    return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
      return f(nth<I>(rest...)..., v, nth<static_cast<std::size_t>(K) + J>(rest...)...);
    }(std::make_index_sequence<static_cast<std::size_t>(K)>{},
           std::make_index_sequence<sizeof...(R) - static_cast<std::size_t>(K)>{});
  }
};
template <class F, int K>
constexpr auto captures_of(argument_first<F, K> const& f) {
  return captures_of(f.f);
}
template <class F, int K>
constexpr auto without_captures(argument_first<F, K> const& f) {
  using bare = std::remove_cvref_t<decltype(without_captures(f.f))>;
  return argument_first<bare, K>{without_captures(f.f)};
}

template <int A, std::size_t Count>
consteval bool require_argument() {
  constexpr bool exists = argnums_are_valid<static_cast<int>(Count), A>();
  static_assert(exists, "varve: sparsity, sparse_jacobian: the number of an argument must name an existing one");
  return exists;
}
/// Calls `call(g, x, rest...)`, where g is f with argument A first, and x is that argument. A negative number counts
/// from the last argument.
template <int A, class F, class Call, class... X>
constexpr auto with_argument_first(F const& f, Call const& call, X const&... x) {
  constexpr int k = wrap_argnum(A, static_cast<int>(sizeof...(X)));
  if constexpr (k == 0) return call(f, x...);
  else
    return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
      return call(argument_first<F, k>{f}, nth<k>(x...), nth<I>(x...)...,
                  nth<static_cast<std::size_t>(k) + 1 + J>(x...)...);
    }(std::make_index_sequence<static_cast<std::size_t>(k)>{},
           std::make_index_sequence<sizeof...(X) - static_cast<std::size_t>(k) - 1>{});
}

} // namespace varve::detail
