// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/pack.hpp>
#include <varve/op/permute.hpp>
#include <varve/transform/closure.hpp>

/// @file
/// Between the trees that users write loops with and the flat values that interpreters see.
namespace varve {

/// A number of steps, for a `scan` that walks through nothing: `scan(f, init, steps<100>)` calls `f(carried)`.
template <index_t N>
struct steps_t {};
template <index_t N>
inline constexpr steps_t<N> steps{};

/// ... known at run time only.
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
  if (s.n == 0) refuse::argument_is_invalid("scan", "a value of rank 0 has no dimension to walk through");
  return dims{s[0]};
};
inline constexpr auto axis_to_front = [](dims const& s, dims const& axis) {
  dims r{wrap_axis(axis[0], s.n)};
  for (int k = 0; k < s.n; ++k)
    if (k != r[0]) r.push_back(k);
  return r;
};

inline constexpr auto without_first = [](dims const& s, dims const& drop) { return s.sub(static_cast<int>(drop[0]), s.n); };
/// A static value of the logical shape and dtype of another, without the first dimension when it is a row: as types, to ask a step for the structure
/// of its result. (Functions, since clang 14 does not survive lambdas within decltype.)
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
constexpr void same_lengths(N const& n, std::tuple<V...> const& rows) {
  index_t const length = to_dims(n)[0];
  if (sizeof...(V) && length == 0) refuse::argument_is_invalid("scan", "there is nothing to walk through: the length is 0");
  tree_for_each(
      [&](auto const& v) {
        if (walked_size(to_dims(shape_of(v)))[0] != length)
          refuse::shapes_do_not_match("scan (lengths of what is walked through)", dims{length}, to_dims(shape_of(v)));
      },
      rows);
}
template <class F>
constexpr F const& without_captures(F const& f) {
  return f;
}
template <class F, class... C>
constexpr F const& without_captures(closure_t<F, C...> const& f) {
  return f.f;
}

/// A step of the user's as one of flat values.
template <class F, class Init, class Xs, class Captures>
struct flat_step {
  [[no_unique_address]] F f;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y = call(std::tie(v...));
    return copied(std::tuple_cat(tree_leaves(y.first), leaves_of_output(y.second)));
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
  template <class Y>
  static constexpr auto leaves_of_output(Y const& y) {
    if constexpr (is_none<Y>) return std::tuple<>{};
    else return tree_leaves(y);
  }
  template <class... V>
  static constexpr std::tuple<V...> copied(std::tuple<V const&...> const& t) {
    return t;
  }
};
} // namespace detail

} // namespace varve
