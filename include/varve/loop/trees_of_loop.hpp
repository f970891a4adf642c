// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/op/permute.hpp>
#include <varve/transform/closure.hpp>

/// @file
/// Conversions between the trees of values in users' loops and the flat values that interpreters process.
namespace varve {

/// A number of steps for a `scan` that walks through nothing: `scan(f, init, steps<100>)` calls `f(carried)`.
template <index_t N>
struct steps_t {};
template <index_t N>
inline constexpr steps_t<N> steps{};

/// A number of steps for a `scan` that walks through nothing, known at run time only.
struct step_count {
  constexpr explicit step_count(index_t k) : n(k) {}
  index_t n;
};

namespace detail {
template <class X>
inline constexpr bool is_steps = std::is_same_v<X, step_count>;
template <index_t N>
inline constexpr bool is_steps<steps_t<N>> = true;
template <index_t N>
constexpr ints<N> length_of(steps_t<N>) {
  return {};
}
constexpr dims length_of(step_count const& s) { return dims{s.n}; }

inline constexpr auto walked_size = [](dims const& s) {
  if (s.n == 0) refuse::argument_is_invalid("scan, map", "a value of rank 0 has no dimension to walk through");
  return dims{s[0]};
};
inline constexpr auto axis_to_front = [](dims const& s, dims const& axis) {
  dims r{wrap_axis(axis[0], s.n)};
  for (int k = 0; k < s.n; ++k)
    if (k != r[0]) r.push_back(k);
  return r;
};

inline constexpr auto without_first = [](dims const& s, dims const& drop) {
  return s.sub(static_cast<int>(drop[0]), s.n);
};
/// Returns a static value with the logical shape and dtype of another, without the first dimension if it is a row. Only
/// its type is used, to find the structure of a step's result. These are functions because clang 14 crashes on lambdas
/// within decltype.
template <bool Row, class V>
constexpr auto alike(V const& v) {
  if constexpr (is_ints<decltype(shape_of(v))>) {
    using S = decltype(on_dims(without_first, shape_of(v), ints<Row>{}));
    return static_value<type_of<static_cast<dtype>(decltype(type_fact(v))::to_dims()[0])>, S>{};
  } else {
    return base_of<V>{};
  }
}
template <bool Row, class T>
constexpr auto all_alike(T const& t) {
  return tree_map([](auto const& v) { return alike<Row>(v); }, t);
}
template <bool Row, class T>
using tree_alike = decltype(all_alike<Row>(std::declval<T const&>()));

template <class N, class... V>
constexpr void same_lengths(char const* who, N const& n, std::tuple<V...> const& rows) {
  index_t const length = to_dims(n)[0];
  if (sizeof...(V) && length == 0)
    refuse::argument_is_invalid(who, "there is nothing to walk through: the length is 0");
  auto const check = [&](auto const& v) {
    if (walked_size(to_dims(shape_of(v)))[0] != length) refuse::lengths_differ(who, dims{length}, to_dims(shape_of(v)));
  };
  [&]<std::size_t... K>(std::index_sequence<K...>) { // without std::apply, so that compiler messages stay short
    (
        [&] {
          if constexpr (is_tree_node<V>) tree_for_each(check, std::get<K>(rows));
          else check(std::get<K>(rows));
        }(),
        ...);
  }(std::index_sequence_for<V...>{});
}

/// Returns the values of a tree as one tuple; operators that stand for a value become that value.
template <class T>
constexpr auto flat_values(T const& tree) {
  return call_with([](auto const&... v) { return std::tuple<std::remove_cvref_t<decltype(plain(v))>...>(plain(v)...); },
                   tree_leaves(tree));
}
/// Returns `closure(g, c...)` for the elements c of a tuple.
template <class G, class T>
constexpr auto capturing(G const& g, T const& captures) {
  return call_with([&](auto const&... c) { return closure(g, c...); }, captures);
}

/// Returns the values of a tree of outputs, in which some leaves may be `none`.
template <class Y>
constexpr auto leaves_of_outputs(Y const& y) {
  if constexpr (is_none<Y>) return std::tuple<>{};
  else if constexpr (tuple_node<Y>)
    return call_with([](auto const&... e) { return detail::joined(leaves_of_outputs(e)...); }, y);
  else return tree_leaves(y);
}
template <class Y>
inline constexpr std::size_t output_count = std::tuple_size_v<decltype(leaves_of_outputs(std::declval<Y const&>()))>;
/// Returns the tree of outputs of structure `Y` whose values are the elements of a flat tuple from `First` on.
template <class Y, std::size_t First, class L>
constexpr auto outputs_from(L const& leaves) {
  if constexpr (is_none<Y>) {
    return none;
  } else if constexpr (tuple_node<Y>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr auto before = []<std::size_t I>(std::integral_constant<std::size_t, I>) {
        return []<std::size_t... J>(std::index_sequence<J...>) {
          return (output_count<std::tuple_element_t<J, elements_of<Y>>> + ... + First);
        }(std::make_index_sequence<I>{});
      };
      return remake(
          std::type_identity<Y>{},
          outputs_from<std::tuple_element_t<K, elements_of<Y>>, before(std::integral_constant<std::size_t, K>{})>(
              leaves)...);
    }(std::make_index_sequence<std::tuple_size_v<elements_of<Y>>>{});
  } else {
    return tree_unflatten<Y, First>(leaves);
  }
}

/// True if the step of a scan returns a pair, as it must.
template <class Y>
inline constexpr bool gives_pair = requires(Y const& y) { y.first, y.second; };
/// A user's step as a step of flat values.
template <class F, class Init, class Xs, class Captures>
struct flat_step {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y = call(std::tie(v...));
    return copied(detail::joined(tree_leaves(y.first), leaves_of_outputs(y.second)));
  }
  template <class L>
  constexpr auto call(L const& leaves) const {
    constexpr std::size_t c = leaf_count<Init>();
    auto const apply = [&](auto const&... captured) {
      if constexpr (is_steps<Xs>) return f(tree_unflatten<Init>(leaves), captured...);
      else return f(tree_unflatten<Init>(leaves), tree_unflatten<Xs, c>(leaves), captured...);
    };
    if constexpr (is_steps<Xs>) return call_with(apply, tree_unflatten<Captures, c>(leaves));
    else return call_with(apply, tree_unflatten<Captures, c + leaf_count<Xs>()>(leaves));
  }

private:
  template <class... V>
  static constexpr std::tuple<V...> copied(std::tuple<V const&...> const& t) {
    return t;
  }
};
} // namespace detail

} // namespace varve
