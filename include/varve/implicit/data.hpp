// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/transform/scope.hpp>
#include <varve/value/tensor.hpp>

#include <tuple>
#include <vector>

/// @file
/// The data that a solution depends on, as one value: a flat tuple of static values, or a list of tensors. Functions of
/// data are written once for both.
namespace varve::implicit::detail {

using tensors = std::vector<tensor>;

template <class First, class... R>
constexpr auto const& head_of(std::tuple<First, R...> const& t) {
  return std::get<0>(t);
}
inline tensor const& head_of(tensors const& t) { return t[0]; }

template <class First, class... R>
constexpr std::tuple<R...> tail_of(std::tuple<First, R...> const& t) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple<R...>(std::get<K + 1>(t)...);
  }(std::index_sequence_for<R...>{});
}
inline tensors tail_of(tensors const& t) { return tensors(t.begin() + 1, t.end()); }

template <class V, class... R>
constexpr std::tuple<V, R...> with_first(V const& v, std::tuple<R...> const& t) {
  return varve::detail::joined(std::tuple<V>(v), t);
}
inline tensors with_first(tensor const& v, tensors const& t) {
  tensors r{v};
  r.insert(r.end(), t.begin(), t.end());
  return r;
}

/// The data that derivatives are taken by, out of all: of static values the floating ones.
struct floating_data {
  template <class... T>
  static consteval std::size_t count(std::size_t before) {
    bool const floating[] = {varve::detail::differentiable_leaf<T>..., false};
    std::size_t n = 0;
    for (std::size_t k = 0; k < before; ++k) n += floating[k];
    return n;
  }
  template <class... T>
  static consteval bool is_empty(std::type_identity<std::tuple<T...>>) {
    return count<T...>(sizeof...(T)) == 0;
  }
  /// Returns those elements of `from` at whose places `all` has chosen ones.
  template <class... T, class From>
  static constexpr auto part(std::tuple<T...> const&, From const& from) {
    auto const one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      if constexpr (varve::detail::differentiable_leaf<std::tuple_element_t<K, std::tuple<T...>>>)
        return std::tuple<std::tuple_element_t<K, From>>(std::get<K>(from));
      else return std::tuple<>();
    };
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return varve::detail::joined(one(std::integral_constant<std::size_t, K>{})...);
    }(std::index_sequence_for<T...>{});
  }
  /// Returns all data, with the chosen ones replaced, and the others by `none` if `Alone`.
  template <bool Alone = false, class... T, class Part>
  static constexpr auto merged(std::tuple<T...> const& all, Part const& chosen) {
    auto const one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      if constexpr (varve::detail::differentiable_leaf<std::tuple_element_t<K, std::tuple<T...>>>)
        return std::get<count<T...>(K)>(chosen);
      else if constexpr (Alone) return none;
      else return std::get<K>(all);
    };
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::make_tuple(one(std::integral_constant<std::size_t, K>{})...);
    }(std::index_sequence_for<T...>{});
  }
};
/// The same for tensors: those at marked places.
struct marked_data {
  std::vector<bool> marks;
  bool is_empty() const {
    for (bool const m : marks)
      if (m) return false;
    return true;
  }
  tensors part(tensors const&, tensors const& from) const {
    tensors r;
    for (std::size_t k = 0; k < from.size(); ++k)
      if (marks[k]) r.push_back(from[k]);
    return r;
  }
  template <bool Alone = false>
  tensors merged(tensors const& all, tensors const& chosen) const {
    tensors r;
    std::size_t at = 0;
    for (std::size_t k = 0; k < all.size(); ++k) r.push_back(marks[k] ? chosen[at++] : Alone ? tensor() : all[k]);
    return r;
  }
};
template <class... T>
constexpr auto nothing_chosen(floating_data, std::tuple<T...> const&) {
  return std::bool_constant<floating_data::is_empty(std::type_identity<std::tuple<T...>>{})>{};
}
inline bool nothing_chosen(marked_data const& s, tensors const&) { return s.is_empty(); }

} // namespace varve::implicit::detail
