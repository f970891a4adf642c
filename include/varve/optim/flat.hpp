// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/optim/step.hpp>

/// @file
/// Conversion of parameter trees to one vector and back, for methods that need inner products over all parameters.
namespace varve::optim {

namespace detail {
/// Returns the number of vector elements of a leaf, taken from its type.
template <class X>
consteval index_t elements_of_leaf() {
  if constexpr (!is_parameter<X>) return 0;
  else return numel(decltype(shape_of(std::declval<X const&>()))::to_dims()).number();
}
/// Returns the position of the first element of leaf `K` in the vector.
template <class Leaves, std::size_t... J>
consteval index_t elements_before(std::index_sequence<J...>) {
  return (elements_of_leaf<std::remove_cvref_t<std::tuple_element_t<J, Leaves>>>() + ... + index_t{0});
}
template <class X>
constexpr auto as_vector(X const& x) {
  if constexpr (is_parameter<X>)
    return std::make_tuple(
        varve::detail::reshape_to(x, on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(x))));
  else return std::tuple<>();
}
/// Returns all parameters of a tree as one vector, in order.
template <class Tree>
constexpr auto flat(Tree const& tree) {
  if constexpr (is_of_tensors<Tree>()) {
    using T = std::conditional_t<is_of_tensors<Tree>(), tensor, Tree>; // of the tree, so that no unit has `cat` unused
    std::vector<T> parts;
    tree_for_each(
        [&](auto const& x) {
          using X = std::remove_cvref_t<decltype(x)>;
          if constexpr (std::is_same_v<X, tensor>) parts.push_back(T(reshape(x, dims{-1})));
          else
            static_assert(!is_parameter<X>, "varve: a tree of parameters holds tensors, or numbers and arrays of a "
                                            "size that its type tells, not both; std::vector is for tensors");
        },
        tree);
    return cat(parts, 0);
  } else {
    auto const parts = std::apply([](auto const&... x) { return std::tuple_cat(as_vector(x)...); }, tree_leaves(tree));
    static_assert(std::tuple_size_v<decltype(parts)> != 0, "varve: there is no floating value in this tree");
    if constexpr (std::tuple_size_v<decltype(parts)> == 1) return std::get<0>(parts);
    else return cat(parts, axis<0>);
  }
}
/// Returns the tree of such a vector; its leaves have the shapes of those of `like`.
template <class V, class Tree>
constexpr auto unflat(V const& v, Tree const& like) {
  if constexpr (is_of_tensors<Tree>()) {
    index_t at = 0;
    return tree_map(
        [&](auto const& x) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, tensor>) {
            index_t const from = at;
            at += x.numel();
            return reshape(slice(v, axis<0>, from, at), x.sizes());
          } else return x;
        },
        like);
  } else {
    using Leaves = decltype(tree_leaves(like));
    return tree_map_indexed(
        [&]<std::size_t K>(arg_t<K>, auto const& x) {
          using X = std::remove_cvref_t<decltype(x)>;
          constexpr index_t from = elements_before<Leaves>(std::make_index_sequence<K>{});
          constexpr index_t to = from + elements_of_leaf<X>();
          if constexpr (is_parameter<X>)
            return varve::detail::reshape_to(slice(v, axis<0>, range<from, to>), shape_of(x));
          else return x;
        },
        like);
  }
}
/// Returns the vector that a method starts from. It has no autograd history, which would grow with every step.
template <class Tree>
constexpr auto flat_start(Tree const& tree) {
  auto const v = flat(tree);
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return v.detach();
  else return v;
}
/// Returns a value of one element as a number.
template <class X>
constexpr double as_number(X const& x) {
  if constexpr (std::is_same_v<X, tensor>) return x.item();
  else return static_cast<double>(x);
}
template <class A, class B>
constexpr double dot(A const& a, B const& b) {
  return as_number(sum(a * b));
}
/// Returns the tree of a vector with the types of `like`; leaves that are numbers become numbers again.
template <class V, class Tree>
constexpr Tree as_tree(V const& v, Tree const& like) {
  return tree_map(
      [](auto const& p, auto const& x) {
        using P = std::remove_cvref_t<decltype(p)>;
        if constexpr (!is_parameter<P>) return p;
        else if constexpr (std::is_same_v<P, tensor>) return x.dtype() == p.dtype() ? x : to(x, p.dtype());
        else if constexpr (number<P>) return static_cast<P>(x);
        else return P{to(x, type_fact(p))};
      },
      like, unflat(v, like));
}
} // namespace detail

} // namespace varve::optim

#pragma GCC diagnostic pop
